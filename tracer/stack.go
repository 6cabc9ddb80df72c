package tracer

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/plan"
)

// Stacks says which stacks are taken at a hit, by frame pointers in programs, and by what the kernel
// has (ORC, frame pointers) in itself. They can be combined.
//
//   - StackKernel is the kernel's: at a probe in a program it is empty
//   - StackUser is the program's: at a probe in the kernel, where it entered it
type Stacks uint8

const (
	// StackKernel is the kernel's stack: at a probe in a program it is empty.
	StackKernel Stacks = 1 << iota
	// StackUser is the program's stack: at a probe in the kernel, where it entered it.
	StackUser
)

// Stack is where a hit came from: addresses, the innermost first. All but the first one are those to
// which calls return.
type Stack struct {
	Kernel, User []uint64
	PID          int // whose User is, in the initial PID namespace
	// Plan and Site are the probe that was hit.
	Plan *plan.Plan
	Site int
	// At is the address of the probe, if it is in a program: where the site is in this process.
	At uint64
}

// maxFrames is how many frames a stack has at most (PERF_MAX_STACK_DEPTH).
const maxFrames = 127

// The layout of a stack in a hit: what bpf_get_stack returned, then addresses. Before the program's there
// is what would be the return address at a function's first instruction, where its frame is not there yet
// and the function that called it is left out by frame pointers.
const stackSize = 8 + 8*maxFrames

// userStack is BPF_F_USER_STACK.
const userStack = 1 << 8

// each calls f for each kind of stack, with the flags of its helper.
func (s Stacks) each(f func(kind Stacks, flags int32)) {
	if s&StackKernel != 0 {
		f(StackKernel, 0)
	}
	if s&StackUser != 0 {
		f(StackUser, userStack)
	}
}

// size returns how many bytes the stacks of a hit have.
func (s Stacks) size() int {
	n := 0
	s.each(func(Stacks, int32) { n += stackSize })
	if s&StackUser != 0 {
		n += 8
	}
	return n
}

// write writes the stacks to an offset from R9. R6 is the context.
func (s Stacks) write(at int, a *arch.Arch) (insns asm.Instructions) {
	s.each(func(kind Stacks, flags int32) {
		if kind == StackUser {
			insns = append(insns, readReturnAddress(a, asm.R9, at, asm.FnProbeReadUser)...)
			at += 8
		}
		insns = append(insns,
			asm.Mov.Reg(asm.R1, asm.R6),
			asm.Mov.Reg(asm.R2, asm.R9),
			asm.Add.Imm(asm.R2, int32(at+8)),
			asm.Mov.Imm(asm.R3, stackSize-8),
			asm.Mov.Imm(asm.R4, flags),
			asm.FnGetStack.Call(),
			asm.StoreMem(asm.R9, int16(at), asm.R0, asm.DWord),
		)
		at += stackSize
	})
	return insns
}

// read reads the stacks of a hit. entry says that it was in a program, at a function's first instruction.
func (s Stacks) read(d []byte, entry bool) *Stack {
	var out Stack
	var caller uint64
	s.each(func(kind Stacks, _ int32) {
		if kind == StackUser {
			caller, d = binary.NativeEndian.Uint64(d), d[8:]
		}
		n := int64(binary.NativeEndian.Uint64(d))
		list := addresses(d[8 : 8+min(max(n, 0), stackSize-8)])
		if d = d[stackSize:]; kind == StackKernel {
			out.Kernel = list
		} else {
			out.User = list
		}
	})
	if entry {
		out.insertCaller(caller)
	}
	return &out
}

// insertCaller puts the return address, if it is not 0, into the stack of a program, unless it is there.
func (s *Stack) insertCaller(address uint64) {
	if u := s.User; address != 0 && len(u) > 0 && (len(u) == 1 || u[1] != address) {
		s.User = slices.Insert(u, 1, address)
	}
}

// readReturnAddress writes what is the return address at a function's first instruction to an offset from
// a register. R6 is the context.
func readReturnAddress(a *arch.Arch, to asm.Register, at int, read asm.BuiltinFunc) asm.Instructions {
	reg, onStack := returnAddress(a)
	load := asm.LoadMem(asm.R3, asm.R6, int16(reg.Offset), asm.DWord)
	if !onStack {
		return asm.Instructions{load, asm.StoreMem(to, int16(at), asm.R3, asm.DWord)}
	}
	return asm.Instructions{
		asm.Mov.Imm(asm.R0, 0),
		asm.StoreMem(to, int16(at), asm.R0, asm.DWord),
		load,
		asm.Mov.Imm(asm.R2, 8),
		asm.Mov.Reg(asm.R1, to),
		asm.Add.Imm(asm.R1, int32(at)),
		read.Call(), // writes 0 after a fault
	}
}

// addresses reads addresses up to the first that is 0.
func addresses(d []byte) []uint64 {
	var out []uint64
	for ; len(d) >= 8; d = d[8:] {
		a := binary.NativeEndian.Uint64(d)
		if a == 0 {
			break
		}
		out = append(out, a)
	}
	return slices.Clip(out)
}

// errStackOfRuns is the error for stacks of spans.
var errStackOfRuns = errors.New("stacks are of hits, not of whole runs")
