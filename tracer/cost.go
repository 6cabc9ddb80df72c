package tracer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/kernelerr"
	"github.com/bpfprologue/bpfprologue/internal/mapped"
	"github.com/bpfprologue/bpfprologue/internal/probed"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// A run's duration has in it what the probes cost between the two times that their programs take: the kernel goes back to the program, does
// what the instruction under the probe would do, and comes for the other probe. That differs by more than ten times between machines, and
// between instructions that the kernel steps and those that it emulates. So it is measured, with an empty function of this process.

// measureCost measures what the probes of spans in programs add to a run: the least and the most of all sites.
func measureCost(list []*plan.Span) (c [2]time.Duration, err error) {
	for _, steps := range []bool{false, true} {
		if !slices.ContainsFunc(list, func(p *plan.Span) bool { return beginsWith(p.Begin, steps) }) {
			continue
		}
		d, err := emptyRun(steps)
		if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
			return c, nil // not allowed for a single probe, without links for many
		}
		if err != nil {
			return c, fmt.Errorf("measure what probes cost: %w", kernelerr.Explain(err))
		}
		if c[0] == 0 || d < c[0] {
			c[0] = d
		}
		c[1] = max(c[1], d)
	}
	return c, nil
}

// beginsWith reports whether there is a site in a program whose instruction the kernel steps, or one whose it does not.
func beginsWith(p *plan.Plan, steps bool) bool {
	file := inside.File(p.Image)
	rules := probed.For(file.Instructions())
	if !p.Target.UserSpace() || rules == nil {
		return false
	}
	const longest = 16
	return slices.ContainsFunc(p.Sites, func(s plan.Site) bool {
		sec := file.SectionAt(s.Addr)
		if s.Instance < 0 || sec == nil {
			return false
		}
		code, err := file.Bytes(s.Addr, min(longest, sec.Addr+sec.Size-s.Addr))
		if err != nil {
			return false
		}
		does, _ := rules.Uprobe(code)
		return (does == probed.UprobeSteps || does == probed.UprobeRepeats) == steps
	})
}

// samples is how many runs are measured: a power of two.
const samples = 1 << 10

// emptyRun returns what a run of an empty function takes that has probes.
func emptyRun(steps bool) (d time.Duration, err error) {
	before, after := emptyFunctions(steps)
	if before == nil {
		return 0, nil
	}
	x := &spans{sizes: []int{8}, plans: []*plan.Span{{
		Definition: new(probe.Definition),
		Begin:      &plan.Plan{Definition: new(probe.Definition), Convention: prologue.ConventionRecord},
	}}}
	defer func() { err = errors.Join(append(x.close(), err)...) }()
	if err := x.makeMaps(); err != nil {
		return 0, err
	}
	taken, err := ebpf.NewMap(&ebpf.MapSpec{Name: "taken", Type: ebpf.Array, KeySize: 4, ValueSize: 8 + 8*samples, MaxEntries: 1})
	if err != nil {
		return 0, err
	}
	defer taken.Close()
	who := processes{limits: new(limits)}
	this, err := thisProcess()
	if err != nil {
		return 0, err
	}
	who.only = []*process{this} // others run the same file
	empty := record{size: 8}    // of a frame
	end := x.ended(0, empty, who, 0, 0)
	end = append(end,
		asm.LoadMapValue(asm.R1, taken.FD(), 0),
		asm.LoadMem(asm.R2, asm.R1, 0, asm.DWord),
		asm.Add.Imm(asm.R2, 1),
		asm.StoreMem(asm.R1, 0, asm.R2, asm.DWord),
		asm.And.Imm(asm.R2, samples-1),
		asm.LSh.Imm(asm.R2, 3),
		asm.Add.Reg(asm.R1, asm.R2),
		asm.LoadMem(asm.R2, asm.RFP, spanDuration, asm.DWord),
		asm.StoreMem(asm.R1, 8, asm.R2, asm.DWord),
		asm.Ja.Label(labelOwn),
	)
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		return 0, err
	}
	defer exe.Close()
	self, err := link.OpenExecutable(fmt.Sprintf("/proc/self/fd/%d", exe.Fd()))
	if err != nil {
		return 0, err
	}
	for _, at := range []struct {
		pc    uintptr
		insns asm.Instructions
	}{{*before, x.begin(nil, 0, empty, who)}, {*after, append(end, x.left(0)...)}} {
		offset, err := ownOffset(uint64(at.pc))
		if err != nil {
			return 0, err
		}
		done, err := attachOwn(self, offset, append(emptyRecord(), at.insns...))
		if err != nil {
			return 0, err
		}
		defer done()
	}
	for range samples {
		call(before)
		call(after)
	}
	value := make([]byte, 8+8*samples)
	if err := taken.Lookup(uint32(0), &value); err != nil {
		return 0, err
	}
	if n := binary.NativeEndian.Uint64(value); n != samples {
		return 0, fmt.Errorf("%d of %d runs were seen", n, samples)
	}
	all := make([]uint64, samples)
	for i := range all {
		all[i] = binary.NativeEndian.Uint64(value[8+8*i:])
	}
	slices.Sort(all)
	return time.Duration(all[samples/2]), nil
}

// attachOwn attaches a program in this process, by the kind of link that needs least privileges where the kernel has it.
func attachOwn(self *link.Executable, offset uint64, insns asm.Instructions) (done func(), err error) {
	spec := &ebpf.ProgramSpec{Name: "cost", Type: ebpf.Kprobe, License: "GPL", Instructions: insns}
	for _, spec.AttachType = range []ebpf.AttachType{ebpf.AttachTraceUprobeMulti, 0} {
		var prog *ebpf.Program
		if prog, err = ebpf.NewProgram(spec); err != nil {
			continue
		}
		var l link.Link
		if spec.AttachType != 0 {
			l, err = self.UprobeMulti(nil, prog, &link.UprobeMultiOptions{Addresses: []uint64{offset}, Cookies: []uint64{1}})
		} else {
			l, err = self.Uprobe("", prog, &link.UprobeOptions{Address: offset, Cookie: 1})
		}
		if err == nil {
			return func() { _, _ = l.Close(), prog.Close() }, nil
		}
		_ = prog.Close()
	}
	return nil, err
}

// emptyRecord makes the registers what a prologue makes them that fetches the frame: 0.
func emptyRecord() asm.Instructions {
	const at = -spanStack - 64 // below what programs of spans use
	return asm.Instructions{
		asm.Mov.Imm(asm.R2, 0),
		asm.StoreMem(asm.RFP, at, asm.R2, asm.DWord),
		asm.Mov.Reg(asm.R3, asm.RFP),
		asm.Add.Imm(asm.R3, at),
	}
}

// ownOffset returns where an address of this process's code is in its executable.
func ownOffset(pc uint64) (uint64, error) {
	maps, err := mapped.Of(os.Getpid())
	for _, m := range maps {
		if pc >= m.Start && pc < m.End {
			return pc - m.Start + m.Offset, nil
		}
	}
	return 0, errors.Join(err, fmt.Errorf("/proc/self/maps: nothing at %#x", pc))
}
