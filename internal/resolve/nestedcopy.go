package resolve

import (
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/loc"
)

// GCC copies a parameter that nested functions use into a structure of its function's frame where that begins, and all of them use the copy from then on (gcc/tree-nested.cc). Its
// notes go on about what was passed. The code shows the copy: the function stores the register that has the parameter, and, at the offset where the static link reads
// it, the address of its frame, which says where the structure is; and the nested function accesses the place by its pointer to the structure.

// nestedCopy answers about a parameter of the function, which has a record, in which the spot's is nested. frame is what the static link says. ok is false if the code does not
// show a copy that the spot's function uses.
func (ev *Evaluator) nestedCopy(a *Answer, x *entries.Var, around int32, frame *loc.Expr) (ok bool, err error) {
	size := int64(0)
	if t, err := a.Type.Resolve(); err == nil {
		size = t.Size
	}
	chain, plus, ok := readBy(frame)
	if !ok || x.Tag != dw.TagFormalParameter || size <= 0 || size > int64(ev.Arch.WordSize) || ev.spot.U.Img.LeftOut.Has(rule.Moved) {
		return false, nil
	}
	home, structure, ok, err := ev.copiesOf(x, around, size, plus)
	if !ok || err != nil {
		return false, err
	}
	own, err := ev.instructionsOf(ev.spot)
	if err != nil || own.Why != "" || !uses(own, chain, home-structure, size) {
		return false, err
	}
	a.Loc = loc.Location{Kind: loc.KindMemory, Rule: rule.Moved, Expr: ev.Binary(ops.Add, frame, ev.Const(uint64(home)))}
	a.Reason, a.Because = loc.Reason{}, "the function around this one has copied it into its frame, where this one uses it by the static link"
	return true, nil
}

// readBy returns the register, and the distance from it, of the memory from which a static link is read.
func readBy(link *loc.Expr) (register uint64, plus int64, ok bool) {
	if link.Op != ops.Deref {
		return 0, 0, false
	}
	e := link.A
	if e.Op == ops.Add && e.B.Op == ops.Const {
		e, plus = e.A, int64(e.B.K)
	}
	return e.K, plus, e.Op == ops.Reg
}

// copiesOf returns where the code with which a function begins copies its parameter to, and where the structure is in which the address of the frame is so many bytes on: both from that
// address on.
func (ev *Evaluator) copiesOf(x *entries.Var, around int32, size, plus int64) (home, structure int64, ok bool, err error) {
	var s entries.Spot
	if ok, err = ev.spot.U.Read(around, &s); !ok || err != nil {
		return 0, 0, false, err
	}
	frame, known, err := ev.spot.U.Img.Data.CFA(s.Addr)
	if !known || err != nil || frame.Expr != nil {
		return 0, 0, false, err
	}
	c, err := ev.spot.U.Body.InstructionsIn(new(body.Code), around)
	if err != nil || c.Why != "" {
		return 0, 0, false, err
	}
	first, ok := c.Graph.At(s.Addr)
	if !ok {
		return 0, 0, false, nil
	}
	t, copies, links := c.Arch.Begin(), 0, 0
	fromFrame := func(v body.Value) (by int64, ok bool) {
		register, by64, ok := t.Offset(v)
		return int64(by64) - frame.Off, ok && register == frame.Reg
	}
	for n := int32(first); n < c.Graph.Blocks[c.Graph.Block(int32(first))].Last; n++ {
		code, addr := c.Graph.Bytes(n), c.Graph.Insns[n].Addr
		m, touches := c.Arch.Touches(t, code, addr)
		c.Arch.Follow(t, code, addr)
		at, ok := fromFrame(m.At)
		if !touches || !m.Writes || !ok || m.Size > int64(ev.Arch.WordSize) {
			continue
		}
		bits := uint8(8 * m.Size)
		stored := t.Load(m.At, bits)
		if by, ok := fromFrame(stored); ok && by == 0 {
			structure, links = at-plus, links+1
		}
		if m.Size != size {
			continue
		}
		chosen, err := x.U.Choose(x.Location, x.Views, entries.Place{Addr: addr}, false)
		if err != nil {
			return 0, 0, false, err
		}
		if r, ok := eval.RegisterOf(chosen.Expr); ok && r < body.Followed && stored == t.Low(t.Regs[r], bits) {
			home, copies = at, copies+1
		}
	}
	return home, structure, copies == 1 && links == 1, nil
}

// uses reports whether a function's code accesses memory of a size, at a distance from what a register had where the function begins.
func uses(c *body.Code, register uint64, off, size int64) bool {
	for n := range c.Graph.Insns {
		m, _, ok := c.Arch.Operand(c.Graph.Bytes(int32(n)))
		if !ok || m.Off != off || m.Size != size {
			continue
		}
		if of, ok := c.Held().Was(m.Base, c.Graph.Insns[n].Addr); ok && of == register {
			return true
		}
	}
	return false
}
