package export_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/export"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/references"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// definitions have registers, memory, constants, arithmetic, members, bit-fields,
// strings, and arguments without a location.
var definitions = []string{
	"my_func_*_abcd arg1",
	"note_value value",
	"note_kind traced prio zone",
	"note_narrow tiny small plain",
	"note_text text len",
	"note_text text:string",
	"page_fault page->map[1][2] page->age page->tree.left->index",
	"ref_get ref->count by",
	"queue_audit %ax \\5 @toy_ticks",
	"note_text $params text:string", // a record
	"queue_route $params",
}

func plans(t *testing.T, image string) []*plan.Plan {
	t.Helper()
	var out []*plan.Plan
	o := plan.Options{Target: plan.Target{SignExtends: image == images[2]}}
	for _, text := range definitions {
		p, err := plantest.Fixture(t, image, text, o)
		if err != nil {
			t.Logf("%s: %v", text, err)
			continue
		}
		out = append(out, p)
	}
	if len(out) < 6 {
		t.Fatalf("only %d plans of %s", len(out), image)
	}
	return out
}

var images = []string{"basic-gcc12-O2-dwarf5.elf", "basic-clang14-O2-dwarf5.elf", "basic-gcc12-O0-dwarf5.elf"}

// TestGo compiles what Go writes, and compares the instructions with the plan's.
func TestGo(t *testing.T) {
	if testing.Short() {
		t.Skip("runs go")
	}
	dir := t.TempDir()
	const slide = 0x1234000
	var want strings.Builder
	main := "package main\n\nimport \"fmt\"\n\nfunc main() {\n"
	files := []string{filepath.Join(dir, "main.go")}
	addresses := 0
	for i, p := range plans(t, images[0]) {
		var b bytes.Buffer
		if err := export.Go(&b, p); err != nil {
			t.Fatal(err)
		}
		// Each into a program of one package, under other names.
		text := strings.NewReplacer("package prologues", "package main", "prologue", fmt.Sprintf("p%dx", i), "var sites", fmt.Sprintf("var sites%d", i)).Replace(b.String())
		file := filepath.Join(dir, fmt.Sprintf("p%d.go", i))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
		main += fmt.Sprintf("for _, f := range p%[1]dxs { for _, i := range f(%#[2]x) { fmt.Println(uint16(i.OpCode), i.Dst, i.Src, i.Offset, i.Constant) } }\nfmt.Println(len(sites%[1]d))\n", i, slide)
		served := 0
		for j := range p.Instances {
			in := &p.Instances[j]
			served += len(in.Sites)
			addresses += len(in.Prologue.Addrs)
			for _, ins := range in.Prologue.Slid(slide) {
				fmt.Fprintln(&want, uint16(ins.OpCode), ins.Dst, ins.Src, ins.Offset, ins.Constant)
			}
		}
		fmt.Fprintln(&want, served)
	}
	if addresses == 0 {
		t.Error("no prologue has an address that moves")
	}
	if err := os.WriteFile(files[0], []byte(main+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", append([]string{"vet"}, files...)...).CombinedOutput(); err != nil {
		t.Fatalf("go vet: %v\n%s", err, out)
	}
	got, err := exec.Command("go", append([]string{"run"}, files...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("go run: %v\n%s", err, got)
	}
	if string(got) != want.String() {
		t.Errorf("the program has other instructions than the plan:\n%s\nwant\n%s", got, want.String())
	}
}

// prototype is a declaration of Plan.Header.
var prototype = regexp.MustCompile(`(?m)^(static __attribute__\(\(noinline\)\) int (\w+)\(.*\));$`)

// TestC compiles what C writes with clang, and compares the bytes of the programs with
// those of the plan's instructions.
func TestC(t *testing.T) {
	clang := testenv.Tool(t, "clang-14")
	objcopy := testenv.Tool(t, "llvm-objcopy-14")
	for _, image := range images {
		for i, p := range plans(t, image) {
			var b bytes.Buffer
			if err := export.C(&b, p, export.Options{Kernel: true}); err != nil {
				t.Fatal(err)
			}
			// The declarations become definitions.
			text := prototype.ReplaceAllString(b.String(), "$1\n{\n\treturn 0;\n}")
			user := prototype.FindStringSubmatch(b.String())
			if user == nil {
				t.Fatalf("%s: no function is declared", p.Definition)
			}
			b.Reset()
			b.WriteString(text)
			dir := t.TempDir()
			made := 0
			for j := range p.Instances {
				if len(p.Instances[j].Prologue.Addrs) == 0 {
					fmt.Fprintf(&b, "PROLOGUE_%[1]d(prog%[1]d, %[2]s, \"kprobe/%[1]d\")\n", j, user[2])
					made++
				}
			}
			src, obj := filepath.Join(dir, "p.c"), filepath.Join(dir, "p.o")
			if err := os.WriteFile(src, b.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(clang, "-target", "bpf", "-O2", "-Wall", "-Werror", "-I/usr/include/x86_64-linux-gnu", "-c", src, "-o", obj).CombinedOutput(); err != nil {
				t.Fatalf("%s: %s: clang: %v\n%s", image, definitions[i], err, out)
			}
			for j := range p.Instances {
				if len(p.Instances[j].Prologue.Addrs) > 0 {
					continue
				}
				bin := filepath.Join(dir, "bin")
				if out, err := exec.Command(objcopy, "-O", "binary", "--only-section", fmt.Sprintf("kprobe/%d", j), "--set-section-flags", fmt.Sprintf("kprobe/%d=alloc", j), obj, bin).CombinedOutput(); err != nil {
					t.Fatalf("llvm-objcopy: %v\n%s", err, out)
				}
				got, err := os.ReadFile(bin)
				if err != nil {
					t.Fatal(err)
				}
				want := encoded(t, p.Instances[j].Prologue.Insns)
				// Behind the prologue: the call of the function, and exit.
				if len(got) != len(want)+16 || !bytes.Equal(got[:len(want)], want) {
					t.Errorf("%s: %s, instance %d: %x, want %x and two instructions more", image, p.Definition, j, got, want)
				}
			}
			if made == 0 && i == 0 {
				t.Errorf("%s: no program was made", image)
			}
		}
	}
}

// TestCast: what only the running kernel knows the number of is not exported.
func TestCast(t *testing.T) {
	p, err := plantest.Fixture(t, images[0], definitions[0], plan.Options{Target: plan.Target{Reads: prologue.ReadCast}})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := export.C(&b, p, export.Options{Kernel: true}); err == nil || !strings.Contains(err.Error(), references.CastFunction) {
		t.Errorf("C: %v", err)
	}
	if err := export.Go(&b, p); err == nil || b.Len() > 0 {
		t.Errorf("Go: %v, %s", err, &b)
	}
}

// TestBpftrace lets bpftrace parse and compile what Bpftrace writes.
func TestBpftrace(t *testing.T) {
	tool := testenv.Tool(t, "bpftrace")
	if os.Getuid() != 0 {
		testenv.Missing(t, "bpftrace runs as root only")
	}
	for _, image := range images {
		for _, p := range plans(t, image) {
			var b bytes.Buffer
			if err := export.Bpftrace(&b, p, export.Options{Kernel: true}); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(b.String(), "kprobe:") {
				t.Logf("%s: %s: no probe", image, p.Definition)
				continue
			}
			file := filepath.Join(t.TempDir(), "p.bt")
			if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			// Debug mode stops before the kernel.
			if out, err := exec.Command(tool, "-d", file).CombinedOutput(); err != nil {
				t.Errorf("%s: %s: bpftrace: %v\n%s\n%.2000s", image, p.Definition, err, b.String(), out)
			}
		}
	}
}

// TestUser: a program's places are in its file.
func TestUser(t *testing.T) {
	img := testenv.Fixture(t, "lib-gcc12-O2-dwarf5.elf")
	p := plantest.New(t, img, "session_write bytes s:symbol", plan.Options{})
	for _, tt := range []struct {
		f    func(*bytes.Buffer) error
		want string
	}{
		{func(b *bytes.Buffer) error { return export.Tracefs(b, p, export.Options{Path: "/lib/x.so"}) }, "p:probe/session_write /lib/x.so:0x"},
		{func(b *bytes.Buffer) error { return export.Bpftrace(b, p, export.Options{Path: "/lib/x.so"}) }, "uprobe:/lib/x.so:session_write"},
	} {
		var b bytes.Buffer
		// The kernel knows symbols of its own only.
		if err := tt.f(&b); err != nil || !strings.HasPrefix(b.String(), tt.want) || strings.Contains(b.String(), ":symbol") {
			t.Errorf("%q, %v; want %q", b.String(), err, tt.want)
		}
	}
}

// TestFloats: the kernel has no floating point numbers, so it prints their bits.
func TestFloats(t *testing.T) {
	const source = `
struct numbers { float f; _Complex float c; int i; };
volatile int sink;
__attribute__((noinline)) void take(struct numbers *n) { sink = n->i; }
int main(void) { take(&(struct numbers){1, 2, 3}); return 0; }
`
	gcc := testenv.Tool(t, "gcc-12")
	dir := t.TempDir()
	file, path := filepath.Join(dir, "s.c"), filepath.Join(dir, "program")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(gcc, "-O2", "-g", "-o", path, file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var b bytes.Buffer
	p := plantest.New(t, testenv.Open(t, path), "take n->f n->c n->i", plan.Options{})
	if err := export.Tracefs(&b, p, export.Options{Path: path}); err != nil {
		t.Fatal(err)
	}
	if want := "f=+0(%di):x32 c=+4(%di):x64 i=+12(%di):s32\n"; !strings.HasSuffix(b.String(), want) {
		t.Errorf("%q, want %q at its end", b.String(), want)
	}
}
