package instances_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/probe"
)

// hitsObjectBytes is the example's object, which clang made.
func hitsObjectBytes(t *testing.T) []byte {
	t.Helper()
	object, err := os.ReadFile("../examples/hits/bpf/hits.o")
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func hitsObject(t *testing.T) *ebpf.CollectionSpec {
	t.Helper()
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(hitsObjectBytes(t)))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// TestCollection loads an object in one call, attaches it, and finds its counts in the
// one map that all instances share.
func TestCollection(t *testing.T) {
	for _, dispatch := range []bool{false, true} {
		t.Run(fmt.Sprintf("dispatch=%v", dispatch), func(t *testing.T) { collection(t, dispatch) })
	}
}

func collection(t *testing.T, dispatch bool) {
	bpfexec.RequireOrSkip(t)
	path, img := testenv.Program(t, "run-gcc12-O2-dwarf5.exe")
	spec := hitsObject(t)
	spec.Programs["other"] = &ebpf.ProgramSpec{
		Name: "other", Type: ebpf.SocketFilter, SectionName: "socket", License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	}
	expanded, err := instances.Expand(context.Background(), spec, func(*probe.Definition) (instances.Subject, error) {
		running, err := instances.Find(img, instances.FindOptions{})
		return instances.Subject{Image: img, Running: running, Dispatch: dispatch}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := expanded.Definitions["func"].Dispatch; (d != nil) != dispatch || dispatch && len(d.Specs) != 1 {
		t.Fatalf("dispatched: %+v", d)
	}
	if spec.Programs["func"] == nil || expanded.Programs["func"] != nil || expanded.Programs["other"] == nil {
		t.Error("the specification given was changed, or another program was")
	}
	c, err := instances.NewCollection(expanded, ebpf.CollectionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p := c.Definitions["func"].Plan
	if len(c.Definitions["func"].Instances) != len(p.Instances) || c.Programs["other"] == nil {
		t.Fatalf("%d programs for %d instances", len(c.Definitions["func"].Instances), len(p.Instances))
	}
	for i, prog := range c.Definitions["func"].Instances {
		info, err := prog.Info()
		if err != nil {
			t.Fatal(err)
		}
		if dispatch {
			i = -1 // several have the program
		}
		for _, kernelName := range append(symbolsOf(t, prog), info.Tag, info.Name) {
			if name, n, ok := c.InstanceByName(kernelName); !ok || name != "func" || n != i {
				t.Errorf("%s is instance %d of %q, want %d of func", kernelName, n, name, i)
			}
		}
	}
	for _, unknown := range []string{"", "bpf_prog_", "bpf_prog_0123456789abcdef_func", "bpf_prog_0123456789abcdef_func_9", "other", "func"} {
		if name, n, ok := c.InstanceByName(unknown); ok {
			t.Errorf("%q is instance %d of %s", unknown, n, name)
		}
	}
	if _, err := c.Attach(context.Background(), instances.AttachOptions{}, "other"); err == nil || !strings.Contains(err.Error(), "no program with a definition") {
		t.Errorf("attaching a program without a definition: %v", err)
	}
	all, err := c.Attach(context.Background(), instances.AttachOptions{All: true})
	if err != nil {
		t.Fatal(err)
	}
	defer all["func"].Close()
	cmd := exec.Command(path)
	cmd.Stdin = strings.NewReader("x")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	want := map[string][3]uint64{"many": {1, 0, 1}, "mix inlined in first": {1, 41, 0}, "mix inlined in second": {1, 80, 0}}
	for i := range p.Sites {
		var got struct{ Hits, Sum, Missing uint64 }
		if err := c.Maps["counts"].Lookup(uint32(i), &got); err != nil {
			t.Fatal(err)
		}
		if s := p.Sites[i].String(); [3]uint64{got.Hits, got.Sum, got.Missing} != want[s] {
			t.Errorf("%s: %+v, want %v", s, got, want[s])
		}
	}
	if len(p.Sites) != len(want) {
		t.Errorf("%d sites, want %d", len(p.Sites), len(want))
	}
}

// symbolsOf are the names that /proc/kallsyms has for a program's functions.
func symbolsOf(t *testing.T, p *ebpf.Program) (names []string) {
	t.Helper()
	info, err := p.Info()
	if err != nil {
		t.Fatal(err)
	}
	addrs, ok := info.JitedKsymAddrs()
	if !ok || len(addrs) == 0 {
		testenv.Missing(t, "the kernel tells no addresses of compiled programs (net.core.bpf_jit_enable)")
	}
	text, err := os.ReadFile("/proc/kallsyms")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if addr, err := strconv.ParseUint(f[0], 16, 64); err == nil && slices.Contains(addrs, uintptr(addr)) {
			names = append(names, f[2])
		}
	}
	if len(names) != len(addrs) {
		testenv.Missing(t, "/proc/kallsyms has %q for %d functions (net.core.bpf_jit_kallsyms)", names, len(addrs))
	}
	return names
}

// TestOpenCollection: names stay distinct, and errors name the program.
func TestOpenCollection(t *testing.T) {
	img := testenv.Fixture(t, "basic-gcc12-O2-dwarf5.elf")
	user := func(section string) *ebpf.ProgramSpec {
		return &ebpf.ProgramSpec{Name: "p", SectionName: section, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}}
	}
	find := func(*probe.Definition) (instances.Subject, error) { return instances.Subject{Image: img}, nil }
	open := func(programs map[string]*ebpf.ProgramSpec) (*instances.CollectionSpec, error) {
		for name, p := range programs {
			p.Name = name
		}
		return instances.Expand(context.Background(), &ebpf.CollectionSpec{Programs: programs}, find)
	}
	l, err := open(map[string]*ebpf.ProgramSpec{
		"a_long_name_of_one":     user("e=my_func_*_abcd arg1"),
		"a_long_name_of_another": user("e=my_func_*_abcd arg1"),
		"a_long_name_o_0":        user("kprobe/x"),
	})
	if err != nil {
		t.Fatal(err)
	}
	n := len(l.Definitions["a_long_name_of_one"].Specs)
	kept := make(map[string]bool)
	for name := range l.Programs {
		kept[name[:min(len(name), 15)]] = true
	}
	if len(l.Programs) != 2*n+1 || len(kept) != 2*n+1 {
		t.Errorf("%d programs, %d names of 15 characters, want %d", len(l.Programs), len(kept), 2*n+1)
	}
	for section, want := range map[string]string{
		"e=my_func_one_abcd ->x": "program p: column ",
		"e=no_such_function x":   "program p: column 3: ",
		"e=my_func_one_abcd a":   "program p: column 20: no variable",
	} {
		if _, err := open(map[string]*ebpf.ProgramSpec{"p": user(section)}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s...", section, err, want)
		}
	}
}
