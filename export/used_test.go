package export_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/export"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestCUsed: programs of C's output are compiled, loaded and attached as its comment says, and see every run.
func TestCUsed(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	clang, gcc := testenv.Tool(t, "clang-14"), testenv.Tool(t, "gcc-12")
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.Command(name, args...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
	}
	run(gcc, "-O2", "-g", "-o", target, "../examples/libbpf/target.c")
	img := testenv.Open(t, target)
	p := plantest.New(t, img, "my_func_*_abcd arg1", plan.Options{})
	var b bytes.Buffer
	if err := export.C(&b, p, export.Options{Path: target}); err != nil {
		t.Fatal(err)
	}
	// The function of each declaration adds what it gets.
	declared := prototype.FindAllStringSubmatch(b.String(), -1)
	if len(declared) != 4 {
		t.Fatalf("%d functions are declared, not one for each type", len(declared))
	}
	fmt.Fprint(&b, "long hits, sum;\n")
	for _, d := range declared {
		fmt.Fprintf(&b, "%s\n{\n\t__sync_fetch_and_add(&hits, 1);\n\t__sync_fetch_and_add(&sum, err ? 0 : arg1);\n\treturn 0;\n}\n", d[1])
	}
	for i := range p.Instances {
		function := declared[0][2] // they do the same with the same registers
		for _, d := range declared {
			if name := p.Sites[p.Instances[i].Sites[0]].Function; strings.Contains(b.String(), "For "+name+". */\n/* SEC(\"func=my_func_*_abcd arg1\") */\n"+d[1]) {
				function = d[2]
			}
		}
		fmt.Fprintf(&b, "PROLOGUE_%d(program%d, %s, \"uprobe\")\n", i, i, function)
	}
	fmt.Fprint(&b, "char _license[] __attribute__((section(\"license\"), used)) = \"GPL\";\n")
	src, obj := filepath.Join(dir, "p.c"), filepath.Join(dir, "p.o")
	if err := os.WriteFile(src, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	run(clang, "-target", "bpf", "-O2", "-g", "-Wall", "-Werror", "-I/usr/include/x86_64-linux-gnu", "-c", src, "-o", obj)
	spec, err := ebpf.LoadCollectionSpec(obj)
	if err != nil {
		t.Fatal(err)
	}
	c, err := ebpf.NewCollection(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	x, err := link.OpenExecutable(target)
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Sites {
		s := &p.Sites[i]
		offset, err := s.FileOffset()
		if err != nil {
			t.Fatal(err)
		}
		l, err := x.Uprobe("", c.Programs[fmt.Sprintf("program%d", s.Instance)], &link.UprobeOptions{Address: offset})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	run(target)
	var hits, sum int64
	if err := c.Variables["hits"].Get(&hits); err != nil {
		t.Fatal(err)
	}
	if err := c.Variables["sum"].Get(&sum); err != nil {
		t.Fatal(err)
	}
	if hits != 10000 || sum != 5259008 {
		t.Errorf("%d hits, sum %d: want 10000 and 5259008", hits, sum)
	}
}

// TestGoUsed: a program with what Go writes loads the prologues before instructions that count, attaches them at the sites' offsets, and sees
// every run.
func TestGoUsed(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	target := compile(t)
	var b bytes.Buffer
	if err := export.Go(&b, plantest.New(t, testenv.Open(t, target), "my_func_*_abcd arg1", plan.Options{})); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := []string{filepath.Join(dir, "main.go"), filepath.Join(dir, "prologues.go")}
	for i, text := range []string{goLoader, strings.Replace(b.String(), "package prologues", "package main", 1)} {
		if err := os.WriteFile(files[i], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	loader := filepath.Join(dir, "loader")
	if out, err := exec.Command("go", append([]string{"build", "-o", loader}, files...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, &b)
	}
	got, err := exec.Command(loader, target).CombinedOutput()
	if want := "[10000 5259008]\n"; err != nil || string(got) != want {
		t.Errorf("%v: %s, want %s", err, got, want)
	}
}

const goLoader = `package main

import (
	"fmt"
	"os"
	"os/exec"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	values, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 16, MaxEntries: 1})
	must(err)
	x, err := link.OpenExecutable(os.Args[1])
	must(err)
	// R2 has a bit for each argument that could not be read, and R3 the first argument.
	count := asm.Instructions{
		asm.JNE.Imm(asm.R2, 0, "end"),
		asm.LoadMapValue(asm.R1, values.FD(), 0),
		asm.Mov.Imm(asm.R2, 1),
		asm.AddAtomic.Mem(asm.R1, asm.R2, asm.DWord, 0),
		asm.AddAtomic.Mem(asm.R1, asm.R3, asm.DWord, 8),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("end"),
		asm.Return(),
	}
	for _, s := range sites {
		insns := append(prologues[s.instance](0), count...)
		p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.Kprobe, License: "GPL", Instructions: insns})
		must(err)
		l, err := x.Uprobe("", p, &link.UprobeOptions{Address: s.offset})
		must(err)
		defer l.Close()
	}
	must(exec.Command(os.Args[1]).Run())
	var out [2]int64
	must(values.Lookup(uint32(0), &out))
	fmt.Println(out)
}
`

// TestTracefsUsed: the kernel takes the definitions, and the filters of a condition, and its events have every run and the values.
func TestTracefsUsed(t *testing.T) {
	root := t.TempDir() // not all machines have it at /sys/kernel/tracing
	if err := unix.Mount("none", root, "tracefs", 0, ""); err != nil {
		testenv.Missing(t, "tracefs cannot be mounted: "+err.Error())
	}
	t.Cleanup(func() {
		if err := unix.Unmount(root, 0); err != nil {
			t.Error(err)
		}
	})
	target := compile(t)
	group := fmt.Sprintf("used%d", os.Getpid())
	var b bytes.Buffer
	p := plantest.New(t, testenv.Open(t, target), "if=arg1 < 1000;"+group+":c=my_func_c_abcd arg1", plan.Options{})
	if err := export.Tracefs(&b, p, export.Options{Path: target}); err != nil {
		t.Fatal(err)
	}
	shell := func(text string) string {
		t.Helper()
		out, err := exec.Command("sh", "-ec", text).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", text, err, out)
		}
		return string(out)
	}
	file := filepath.Join(t.TempDir(), "events")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	instance := root + "/instances/" + group
	shell("cat " + file + " >>" + root + "/uprobe_events; mkdir " + instance)
	t.Cleanup(func() {
		shell("echo 0 >" + instance + "/events/" + group + "/enable; rmdir " + instance + "; echo '-:" + group + "/' >>" + root + "/uprobe_events")
	})
	filters := strings.ReplaceAll(shell("sed -n 's/^# echo/echo/p' "+file), "/sys/kernel/tracing/events", instance+"/events")
	shell(filters + "echo 1 >" + instance + "/events/" + group + "/enable; " + target)
	hits, sum := 0, 0
	for line := range strings.Lines(shell("cat " + instance + "/trace")) {
		if _, value, ok := strings.Cut(line, "arg1="); ok {
			n := 0
			if _, err := fmt.Sscan(value, &n); err != nil {
				t.Fatal(err)
			}
			hits, sum = hits+1, sum+n
		}
	}
	if hits != 1000 || sum != 499500 {
		t.Errorf("%d hits, sum %d, want 1000 and 499500:\n%s", hits, sum, &b)
	}
}
