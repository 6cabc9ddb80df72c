package instances

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// TestTargetMismatch: a plan is attached only where it was made for. A kernel's is stood
// for by a Running that nothing else would return here.
func TestTargetMismatch(t *testing.T) {
	img, other := testenv.Fixture(t, "basic-gcc12-O2-dwarf5.elf"), testenv.Fixture(t, "basic-gcc12-O2-dwarf5.elf")
	kernel := &Running{img: img, pmu: "kprobe", target: plan.Target{Slide: 0x2000000, Reads: prologue.ReadKernel, KprobeMulti: true}}
	loading := &Running{img: img, pmu: "kprobe", target: plan.Target{Slide: 0x2000000, Reads: prologue.ReadCast, KprobeMulti: true}}
	for _, c := range []struct {
		what    string
		target  plan.Target
		running *Running
		want    string // "" if it is right
	}{
		{"the target of where it runs", kernel.Target(), kernel, ""},
		{"reads of older kernels, single probes", plan.Target{Slide: 0x2000000, Reads: prologue.ReadLegacy}, kernel, ""},
		{"helpers where loads are best", plan.Target{Slide: 0x2000000, Reads: prologue.ReadKernel}, loading, ""},
		{"loads", plan.Target{Slide: 0x2000000, Reads: prologue.ReadCast}, loading, ""},
		{"loads where they are not known", plan.Target{Slide: 0x2000000, Reads: prologue.ReadCast}, kernel, "its programs read memory by cast reads, and it runs where they must by kernel reads"},
		{"no slide", plan.Target{}, kernel, "0x0 bytes from its link-time addresses, and they are 0x2000000"},
		{"another slide", plan.Target{Slide: 0x1000000}, kernel, "0x1000000 bytes from its link-time addresses, and they are 0x2000000"},
		{"user memory", plan.Target{Slide: 0x2000000, Reads: prologue.ReadUser}, kernel, "its programs read memory by user reads, and it runs where they must by kernel reads"},
		{"uprobes", plan.Target{Slide: 0x2000000, UprobeMulti: true}, kernel, "its programs are for uprobe.multi, which is not for kprobes"},
		{"another image", kernel.Target(), &Running{img: other, pmu: "kprobe", target: kernel.target}, "it is of basic-gcc12-O2-dwarf5.elf, which is not what runs"},
		{"nowhere", kernel.Target(), nil, "it is not known where that is"},
	} {
		p := plantest.New(t, img, "my_func_*_abcd arg1", plan.Options{Target: c.target})
		err := c.running.check(p)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.what, err)
			}
			continue
		}
		if !errors.Is(err, ErrTargetMismatch) || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: %v, want ... %s", c.what, err, c.want)
		}
		a, err := Attach(context.Background(), p, make([]*ebpf.Program, len(p.Instances)), c.running, AttachOptions{})
		if !errors.Is(err, ErrTargetMismatch) || a != nil {
			t.Errorf("%s: attached: %v", c.what, err)
		}
	}
	p := plantest.New(t, img, "my_func_*_abcd arg1", plan.Options{Target: kernel.Target()})
	if _, err := Attach(context.Background(), p, make([]*ebpf.Program, len(p.Instances)), kernel, AttachOptions{PID: 1}); !errors.Is(err, ErrNotSupported) {
		t.Errorf("kprobes of one process: %v", err)
	}
}

// TestExpandTarget: the plans of a collection are made for where the image runs.
func TestExpandTarget(t *testing.T) {
	img := testenv.Fixture(t, "basic-gcc12-O2-dwarf5.elf")
	kernel := &Running{img: img, pmu: "kprobe", target: plan.Target{Slide: 0x2000000, Reads: prologue.ReadKernel, KprobeMulti: true}}
	spec := &ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{"p": {
		Name: "p", SectionName: "e=queue_send budget", License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	}}}
	c, err := Expand(context.Background(), spec, func(*probe.Definition) (Subject, error) { return Subject{Image: img, Running: kernel}, nil })
	if err != nil {
		t.Fatal(err)
	}
	p := c.Definitions["p"]
	if p.Plan.Target != kernel.target {
		t.Errorf("target %+v, want %+v", p.Plan.Target, kernel.target)
	}
	linked, slid := p.Plan.Instances[0].Prologue, 0
	for _, i := range linked.Addrs {
		if uint64(p.Specs[0].Instructions[i].Constant-linked.Insns[i].Constant) == kernel.target.Slide {
			slid++
		}
	}
	if slid == 0 || slid != len(linked.Addrs) {
		t.Errorf("%d of %d addresses of the image were moved:\n%v", slid, len(linked.Addrs), p.Specs[0].Instructions)
	}
}

// TestExplain: each refusal has its explanation.
func TestExplain(t *testing.T) {
	const nowhere = "no probe can be at this instruction"
	for _, c := range []struct {
		err  error
		want string
	}{
		{enotsupp, nowhere},
		{errors.New("something else"), "something else"},
	} {
		if got := explain(c.err); !errors.Is(got, c.err) || !strings.HasSuffix(got.Error(), c.want) {
			t.Errorf("%v becomes %v", c.err, got)
		}
	}
}
