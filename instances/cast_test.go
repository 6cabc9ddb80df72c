package instances_test

import (
	"errors"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/kernelhas"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// TestCast loads programs after prologues that load kernel memory, one for each instance and
// dispatched: one that clang made, with types of its functions, and one without.
func TestCast(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	own := loadSpec(t)
	nothing := &ebpf.ProgramSpec{Name: "nothing", License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}}
	for c, spec := range map[prologue.Convention]*ebpf.ProgramSpec{prologue.ConventionRegisters: own, prologue.ConventionRecord: nothing} {
		o := plan.Options{Convention: c, Target: plan.Target{Reads: prologue.ReadCast, SignExtends: kernelhas.SignExtends()}}
		p, err := plantest.Fixture(t, "basic-gcc12-O0-dwarf5.elf", own.SectionName, o)
		if err != nil {
			t.Fatal(err)
		}
		specs, err := instances.ProgramSpecs(p, spec)
		if !kernelhas.Casts() {
			if !errors.Is(err, instances.ErrNotSupported) {
				t.Errorf("the kernel cannot do that: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		d, err := instances.NewDispatch(p, func(int) *ebpf.ProgramSpec { return spec })
		if err != nil {
			t.Fatal(err)
		}
		maps := make(map[string]*ebpf.Map)
		for name, spec := range d.Maps {
			if maps[name], err = ebpf.NewMap(spec); err != nil {
				t.Fatal(err)
			}
			defer maps[name].Close()
		}
		calls := 0
		for i, s := range append(specs, d.Specs...) {
			for j := range s.Instructions {
				ins := &s.Instructions[j]
				if ins.IsKfuncCall() {
					calls++
				}
				if m := maps[ins.Reference()]; m != nil {
					if err := ins.AssociateMap(m); err != nil {
						t.Fatal(err)
					}
				}
			}
			prog, err := ebpf.NewProgram(s)
			if err != nil {
				t.Errorf("%v, program %d: %+v", c, i, err)
				continue
			}
			if err := bpfexec.Close(prog); err != nil {
				t.Error(err)
			}
		}
		if calls == 0 {
			t.Errorf("%v: nothing is loaded from memory", c)
		}
	}
}
