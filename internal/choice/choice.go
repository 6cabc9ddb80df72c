// Package choice writes the instructions by which one program runs the prologue of the probe that fired: the attach cookie has its number.
//
//	insns := choice.Instructions([]choice.Group{{Prologues: prologues}})
package choice

import (
	"slices"

	"github.com/cilium/ebpf/asm"
)

// What is in an attach cookie: who attaches gives the lowest bits.
const (
	CookieBits = 48
	numberBits = 14
	// MaxPrologues is how many prologues a program has at most.
	MaxPrologues = 1 << numberBits
	// Again is set in the cookie of a site that is also reached while a run goes on.
	Again = 1 << 63
)

// Cookie returns the cookie of a site, by the number of its prologue.
func Cookie(site, prologue uint64, again bool) uint64 {
	c := site | prologue<<CookieBits
	if again {
		c |= Again
	}
	return c
}

// MaxSize is how many instructions, of 8 bytes, prologues have together at most: jumps reach 32,767
// (Documentation/bpf/standardization/instruction-set.rst).
const MaxSize = 32000

// Group is prologues of one program that follow each other.
type Group struct {
	Before    asm.Instructions // run before them; R1 is the context and R0 the number, which they must leave
	Prologues []asm.Instructions
}

// Instructions returns instructions that run one of the groups' prologues, by the number in the cookie, and end after it. The first prologue
// has the number 0.
func Instructions(groups []Group) asm.Instructions {
	head := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1).WithSource(asm.Comment("choose a prologue by the attach cookie")),
		asm.FnGetAttachCookie.Call(),
		asm.LSh.Imm(asm.R0, 64-CookieBits-numberBits),
		asm.RSh.Imm(asm.R0, 64-numberBits),
		asm.Mov.Reg(asm.R1, asm.R6),
	}
	firsts := make([]int, len(groups)+1)
	for k := range groups {
		firsts[k+1] = firsts[k] + len(groups[k].Prologues)
	}
	last := firsts[len(groups)] - 1
	var ends []int // instructions that jump to the end
	// tree calls leaf for lo up to hi, each where execution comes for a number of at least its first
	// and below the next one's.
	var tree func(out asm.Instructions, lo, hi int, first func(int) int, leaf func(asm.Instructions, int) asm.Instructions) asm.Instructions
	tree = func(out asm.Instructions, lo, hi int, first func(int) int, leaf func(asm.Instructions, int) asm.Instructions) asm.Instructions {
		if hi-lo == 1 {
			return leaf(out, lo)
		}
		mid, at := (lo+hi)/2, len(out)
		out = tree(append(out, asm.JGE.Imm(asm.R0, int32(first(mid)), "")), lo, mid, first, leaf)
		out[at] = Jump(out[at], Size(out[at+1:]))
		return tree(out, mid, hi, first, leaf)
	}
	group := func(out asm.Instructions, k int) asm.Instructions {
		g := &groups[k]
		return tree(append(out, g.Before...), firsts[k], firsts[k+1], func(n int) int { return n }, func(out asm.Instructions, n int) asm.Instructions {
			out = append(out, g.Prologues[n-firsts[k]]...)
			if n < last {
				ends = append(ends, len(out))
				out = append(out, asm.Ja.Label(""))
			}
			return out
		})
	}
	out := tree(nil, 0, len(groups), func(k int) int { return firsts[k] }, group)
	// From the last to the first, so that each size is found once.
	size, next := 0, len(out)
	for _, at := range slices.Backward(ends) {
		size += Size(out[at+1 : next])
		out[at] = Jump(out[at], size)
		next = at + 1
	}
	return append(head, out...)
}

// Jump returns a jump over n instructions of 8 bytes.
func Jump(ins asm.Instruction, n int) asm.Instruction {
	ins = ins.WithReference("")
	ins.Offset = int16(n)
	return ins
}

// Size returns how many instructions of 8 bytes there are.
func Size(insns asm.Instructions) int {
	n := 0
	for i := range insns {
		n += int(insns[i].Size() / asm.InstructionSize)
	}
	return n
}
