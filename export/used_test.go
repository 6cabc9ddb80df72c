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
	if len(declared) != 3 {
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
	if hits != 7500 || sum != 10935000 {
		t.Errorf("%d hits, sum %d: want 7500 and 10935000", hits, sum)
	}
}
