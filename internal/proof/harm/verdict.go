package harm

import (
	"encoding/binary"
	"syscall"

	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/probed"
)

// Verdict is what a run says about the table of instructions.
type Verdict string

const (
	// Agrees means that the probe changed nothing and is allowed, or it is refused for what the kernel did.
	Agrees Verdict = ""
	// Harmed means that the table allows a probe that changed what the instruction does.
	Harmed Verdict = "harmed"
	// Overrefused means that the table refuses a probe that did nothing.
	Overrefused Verdict = "refused without need"
	// Unforeseen means that the kernel refused a probe that the table allows, at an instruction that the processor knows.
	Unforeseen Verdict = "refused by the kernel, unforeseen"
	// Taken means that the kernel took a probe that the table says it refuses.
	Taken Verdict = "taken, unforeseen"
	// Repeated means several hits for one run, unforeseen; or one where several are foreseen.
	Repeated Verdict = "hits unforeseen"
)

// Verdict compares an outcome with the table of package probed.
func (o *Outcome) Verdict() Verdict {
	does, _ := probed.For(o.Arch).Uprobe(o.Code)
	illegal := o.Without.Signal == uint32(syscall.SIGILL)
	switch {
	case o.Differs() && o.deadCall():
		return Agrees
	case o.Differs() && does != probed.UprobeHarms && does != probed.UprobeCalls:
		return Harmed
	case does == probed.UprobeRefuses:
		if o.Hits > 0 && !illegal && (o.Differs() || !o.leadsOn()) {
			return Taken
		}
	case o.Hits == 0 && does != probed.UprobeHarms && !illegal:
		return Unforeseen
	case does == probed.UprobeHarms && !o.Differs() && !o.Undetermined && !illegal && o.Without.Signal == 0:
		return Overrefused
	case o.Hits > 3 && does != probed.UprobeRepeats && does != probed.UprobeHarms && !o.leadsBack() && !o.resumed():
		return Repeated
	}
	return Agrees
}

// leadsOn reports whether the instruction is a jump to the next one: with prefixes Linux 7.2 takes it for a NOP of five bytes, and others
// refuse it.
func (o *Outcome) leadsOn() bool {
	if o.Arch != "amd64" {
		return false
	}
	x, ok := insn.DecodeX86(o.Code)
	to, jumps := x.Branch()
	return ok && jumps && to == int64(x.Size)
}

// resumed reports whether the instruction is a gather or a scatter of AVX-512 that ends in a fault: where it faults in its middle the
// processor has done a part, and stops for the single step before it comes to the rest, so the probe is hit again. What it does is
// the same.
func (o *Outcome) resumed() bool {
	if o.Arch != "amd64" || o.Without.Signal != uint32(syscall.SIGSEGV) {
		return false
	}
	x, ok := insn.DecodeX86(o.Code)
	return ok && x.EVEX && o.Code[1]&7 == 2 && (x.Opcode[0]&^3 == 0x90 || x.Opcode[0]&^3 == 0xa0)
}

// leadsBack reports whether the instruction may be one that branches to itself: on arm64 a distance of 0 is frequent here.
func (o *Outcome) leadsBack() bool {
	const branches, mask = 5 << 26, 7 << 26 // also what is no branch
	return o.Arch == "arm64" && binary.LittleEndian.Uint32(o.Code)&mask == branches
}

// deadCall reports whether the instruction is a call that ends in a fault, and nothing but the return address in the dead part of the
// stack differs.
func (o *Outcome) deadCall() bool {
	if o.Arch != "amd64" {
		return false
	}
	x, ok := insn.DecodeX86(o.Code)
	with := o.With
	with.Stack = o.Without.Stack
	return ok && !x.VEX && x.OpcodeSize == 1 && x.Opcode[0] == 0xff && o.Without.Signal == uint32(syscall.SIGSEGV) && with == o.Without
}
