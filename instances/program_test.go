package instances_test

import (
	"bytes"
	_ "embed"
	"fmt"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

//go:embed testdata/func.o
var funcObject []byte

func loadSpec(t *testing.T) *ebpf.ProgramSpec {
	t.Helper()
	coll, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(funcObject))
	if err != nil {
		t.Fatal(err)
	}
	spec := coll.Programs["func"]
	if spec == nil {
		t.Fatal("testdata/func.o has no program func")
	}
	return spec
}

// TestProgramSpecs puts prologues before a program that clang made, and looks
// at what the kernel then knows of it.
func TestProgramSpecs(t *testing.T) {
	spec := loadSpec(t)
	before := spec.Instructions.String()
	p, err := plantest.Fixture(t, "basic-gcc12-O2-dwarf5.elf", spec.SectionName, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	specs, err := instances.ProgramSpecs(p, spec)
	if err != nil {
		t.Fatal(err)
	}
	if len(specs) != len(p.Instances) {
		t.Fatalf("%d programs for %d instances", len(specs), len(p.Instances))
	}
	if spec.Instructions.String() != before || spec.Instructions[0].Symbol() != "func" || btf.FuncMetadata(&spec.Instructions[0]) == nil {
		t.Error("ProgramSpecs changed the user's program")
	}
	names := make(map[string]bool)
	for i, s := range specs {
		n := len(p.Instances[i].Prologue.Insns)
		if names[s.Name] || len(s.Name) > 15 {
			t.Errorf("instance %d: name %q is not distinct in 15 characters", i, s.Name)
		}
		names[s.Name] = true
		if got := s.Instructions[0].Symbol(); got != "func" {
			t.Errorf("instance %d begins with symbol %q, want func", i, got)
		}
		if btf.FuncMetadata(&s.Instructions[0]) == nil || btf.FuncMetadata(&s.Instructions[n]) != nil {
			t.Errorf("instance %d: the function's type is not at its first instruction", i)
		}
		for j, ins := range spec.Instructions {
			if got := s.Instructions[n+j].Source(); got != ins.Source() {
				t.Errorf("instance %d: instruction %d lost its source line %v: %v", i, j, ins.Source(), got)
			}
		}
	}

	bpfexec.RequireOrSkip(t)
	for i, s := range specs {
		prog, err := ebpf.NewProgram(s)
		if err != nil {
			t.Errorf("instance %d: %+v", i, err)
			continue
		}
		info, err := prog.Info()
		if err != nil {
			t.Fatal(err)
		}
		funcs, err := info.FuncInfos()
		if err != nil || len(funcs) != 1 || funcs[0].Func.Name != fmt.Sprintf("func_%d", i) || funcs[0].Offset != 0 {
			t.Errorf("instance %d: the kernel knows functions %+v (%v), want func_%d at 0", i, funcs, err, i)
		}
		lines, err := info.LineInfos()
		if err != nil {
			t.Fatal(err)
		}
		user := 0
		for _, l := range lines {
			if l.Offset >= asm.RawInstructionOffset(len(p.Instances[i].Prologue.Insns)) && bytes.HasSuffix([]byte(l.Line.FileName()), []byte("func.c")) {
				user++
			}
		}
		if user == 0 {
			t.Errorf("instance %d: no line of func.c is left: %+v", i, lines)
		}
		_ = bpfexec.Close(prog)
	}
}

func TestPreprocessErrors(t *testing.T) {
	p, err := plantest.Fixture(t, "basic-gcc12-O2-dwarf5.elf", "my_func_one_abcd arg1", plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := instances.Preprocess(p, len(p.Instances), asm.Instructions{asm.Return()}); err == nil {
		t.Error("an instance that is not there was preprocessed")
	}
	if _, err := instances.Preprocess(p, 0, nil); err == nil {
		t.Error("a program without instructions was preprocessed")
	}
}

// TestSlide: addresses of the image move, other constants do not.
func TestSlide(t *testing.T) {
	p, err := plantest.Fixture(t, "basic-gcc12-O2-dwarf5.elf", "queue_send budget pkt", plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	user := asm.Instructions{asm.Return()}
	a, err := instances.Preprocess(p, 0, user)
	if err != nil {
		t.Fatal(err)
	}
	slid, err := plantest.Fixture(t, "basic-gcc12-O2-dwarf5.elf", "queue_send budget pkt", plan.Options{Target: plan.Target{Slide: 0x1000}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := instances.Preprocess(slid, 0, user)
	if err != nil {
		t.Fatal(err)
	}
	moved := 0
	for i := range a {
		switch b[i].Constant - a[i].Constant {
		case 0:
		case 0x1000:
			moved++
			if uint64(a[i].Constant) != 0xffffffff81001000 {
				t.Errorf("instruction %d moved, which is no address of budget: %v", i, a[i])
			}
		default:
			t.Errorf("instruction %d: %v became %v", i, a[i], b[i])
		}
	}
	if moved != 1 {
		t.Errorf("%d addresses moved, want 1:\n%v", moved, a)
	}
}
