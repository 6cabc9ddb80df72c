package body

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/flow"
)

// LLVM gives an instruction the place of the statement that it is for, also where it has put two statements together: then that of the last one. What it has moved has line 0, or no
// row of its own, and stands under that of the instruction before it. So an instruction with a row of its own that is of the caller's scope is none of the body's, unless the caller
// itself computes what the body does, and LLVM has kept the caller's.

// maxMoves bounds how often a number is followed from a register to the one that it was moved from, and to those that it is moved to.
const maxMoves = 4

// ComputedOutside reports whether instructions that are not a body's, with rows of their own in the line table, have computed the number that a register has at an instruction,
// wherever execution comes from. With only, no other instructions than the body's use the number: the caller computes it to pass it.
func (c *Code) ComputedOutside(i int, register, at uint64, only bool) bool {
	n, ok := c.Graph.At(at)
	return ok && c.Why == "" && register < Followed && c.computedOutside(i, register, int32(n), only, maxMoves)
}

func (c *Code) computedOutside(i int, register uint64, from int32, only bool, moves int) bool {
	kept := c.Preserved().Has(register)
	return c.Graph.WrittenBy(c.Arch, from, uint16(register), kept, func(at int32) bool {
		s, addr := c.Arch.State(), c.Graph.Insns[at].Addr
		s.Step(c.Graph.Bytes(at), addr)
		v, ok := s.Register(register)
		if !ok {
			return false
		}
		if computes, _ := s.Computes(v); computes {
			return c.placed(at, register) && !c.Bodies[i].Has(c.Owner[at]) && (!only || c.onlyUsed(i, register, at+1, maxMoves))
		}
		of, _, moved := s.Input(v)
		if !moved {
			return !c.Bodies[i].Has(c.Owner[at]) && (!only || c.onlyUsed(i, register, at+1, maxMoves)) // it was loaded, or a call returned it
		}
		return moves > 0 && c.computedOutside(i, of, at, only, moves-1)
	})
}

// MadeInside reports whether an instruction of a body has computed or loaded what a register has at an instruction, with none but the body's from there on: the body has begun before it.
// From a slot of the frame a register gets what was passed again. An instruction that is followed by others may have been moved up, or be one of the caller's that does the same.
func (c *Code) MadeInside(i int, register, at uint64) bool {
	n, ok := c.Graph.At(at)
	if !ok || c.Why != "" {
		return false
	}
	s, first := c.Arch.State(), c.Graph.Blocks[c.Graph.Block(int32(n))].First
	for before := int32(n) - 1; before >= first && c.Bodies[i].Has(c.Owner[before]); before-- {
		code := c.Graph.Bytes(before)
		if w, ok := c.Arch.Writes(code); !ok || w.Registers.Has(register) {
			s.Step(code, c.Graph.Insns[before].Addr)
			v, known := s.Register(register)
			return ok && known && s.Made(v)
		}
	}
	return false
}

// placed reports whether an instruction has a place of its own. Where it changes a register in place, LLVM puts a copy to that before it, with the same place.
func (c *Code) placed(at int32, register uint64) bool {
	row := c.RowAt(at)
	if row == nil || row.Line == 0 {
		return false
	}
	if row.Addr == c.Graph.Insns[at].Addr || at == 0 {
		return row.Addr == c.Graph.Insns[at].Addr
	}
	code := c.Graph.Bytes(at - 1)
	_, w, _ := c.Arch.Accesses(code)
	return row.Addr == c.Graph.Insns[at-1].Addr && w.Registers.Has(register) && c.moves(code)
}

// onlyUsed reports whether no instruction uses the number that a register has at one, on any path from there, but those of a body, and such as only move it to where that is so.
func (c *Code) onlyUsed(i int, register uint64, from int32, moves int) bool {
	g, arch := c.Graph, c.Unit.Image.Arch()
	kept := c.Preserved().Has(register)
	result, argument := slices.Contains(arch.Results, uint16(register)), slices.Contains(arch.Args, uint16(register))
	begin := from
	uses := func(at int32) (settled, ok bool) {
		code := g.Bytes(at)
		in, known := c.Arch.Next(code)
		reads, w, accessed := c.Arch.Accesses(code)
		own := c.Bodies[i].Has(c.Owner[at])
		switch kind := g.Insns[at].Kind; {
		case !known:
			return true, false
		case in.Call:
			return !kept, kept || own
		case kind == flow.Leave || kind == flow.Quit:
			return kind == flow.Leave, !result && (!argument || !in.Branches && !in.Lost) // a jump to another function may pass it
		case kind != flow.Plain:
			return false, true
		case !accessed:
			return true, false
		case reads.Has(register) && c.moves(code):
			for r := range uint64(Followed) {
				if w.Registers.Has(r) && r != register && (moves == 0 || !c.onlyUsed(i, r, at+1, moves-1)) {
					return true, false
				}
			}
		case reads.Has(register) && !own:
			return true, false
		}
		return w.Registers.Has(register), true
	}
	return g.AllPaths(g.Block(min(from, int32(len(g.Insns)-1))), func(n int32) (settled, ok bool) {
		b := &g.Blocks[n]
		at := max(begin, b.First)
		for begin = 0; at < b.Last; at++ {
			if settled, ok := uses(at); settled || !ok {
				return true, ok
			}
		}
		return len(b.Succs) == 0, true
	})
}
