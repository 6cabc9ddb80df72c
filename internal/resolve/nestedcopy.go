package resolve

import (
	"cmp"
	"slices"

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
// it, the address of its frame, which says where the structure is; and the nested function accesses the place by its pointer to the structure. GCC compiles both stores for the place
// where the function is declared, and none of its calls. "int saved = n", or "other = n", of which only the first is used inside, is stored so too, and is of a statement.

// nestedCopy answers about a parameter of the function, which has a record, in which the spot's is nested. frame is what the static link says, and given the register in which it is given.
// ok is false if the code does not show a copy that the spot's function uses.
func (ev *Evaluator) nestedCopy(a *Answer, x *entries.Var, around int32, frame *loc.Expr, given uint64) (ok bool, err error) {
	size := int64(0)
	if t, err := a.Type.Resolve(); err == nil {
		size = t.Size
	}
	from, plus, ok := readBy(frame)
	if !ok || from.Op != ops.Reg || x.Tag != dw.TagFormalParameter || size <= 0 || size > int64(ev.Arch.WordSize) || ev.spot.U.Img.LeftOut.Has(rule.Moved) {
		return false, nil
	}
	link, err := ev.linkStored(around, given, plus)
	if link == nil || err != nil {
		return false, err
	}
	home, ok, err := ev.copyOf(x, around, size, link.by)
	if !ok || err != nil {
		return false, err
	}
	own, err := ev.instructionsOf(ev.spot)
	if err != nil || own.Why != "" || !uses(own, given, home-(link.at-plus), size) {
		return false, err
	}
	a.Loc = loc.Location{Kind: loc.KindMemory, Rule: rule.Moved, Expr: ev.Binary(ops.Add, frame, ev.Const(uint64(home)))}
	a.Reason, a.Because = loc.Reason{}, "the function around this one has copied it into its frame, where this one uses it by the static link"
	return true, nil
}

// readBy returns the address, and the distance from it, of the memory from which a static link is read.
func readBy(link *loc.Expr) (from *loc.Expr, plus int64, ok bool) {
	if link.Op != ops.Deref {
		return nil, 0, false
	}
	if from = link.A; from.Op == ops.Add && from.B.Op == ops.Const {
		from, plus = from.A, int64(from.B.K)
	}
	return from, plus, true
}

// copyOf returns where the code with which a function begins copies its parameter to, from the address of its frame on. linked is the instruction that stores that address.
func (ev *Evaluator) copyOf(x *entries.Var, around int32, size int64, linked uint64) (home int64, ok bool, err error) {
	copies, copied := 0, uint64(0)
	var of error
	err = ev.storesOf(around, true, func(f *stores, w written) {
		if w.size != size || of != nil {
			return
		}
		var chosen entries.Chosen
		if chosen, of = x.U.Choose(x.Location, x.Views, entries.Place{Addr: w.by}, false); of != nil {
			return
		}
		if r, ok := eval.RegisterOf(chosen.Expr); ok && r < body.Followed && f.value(w) == f.t.Low(f.t.Regs[r], uint8(8*w.size)) {
			home, copied, copies = w.at, w.by, copies+1
		}
	}, nil)
	if err = cmp.Or(err, of); err != nil || copies != 1 {
		return 0, false, err
	}
	calls, err := callsOf(ev.spot.U, around)
	if err != nil || calls.why != "" {
		return 0, false, err
	}
	rows, err := ev.spot.U.Rows()
	place := dw.RowAt(rows, linked)
	if c := dw.RowAt(rows, copied); err != nil || place == nil || c == nil || !c.SamePlace(place) {
		return 0, false, err
	}
	return home, !slices.ContainsFunc(calls.in, func(addr uint64) bool {
		c := dw.RowAt(rows, addr)
		return c == nil || c.SamePlace(place)
	}), nil
}

// linkStored returns what stores the address of its frame in the function, which has a record, in which the spot's is nested: so many bytes behind
// the beginning of the structure whose address it has in the register in which it gives it, or stores for a trampoline. It is nil if the code does not show that, and is found once for all variables. Where no
// nested function reads it, nothing does but the static link, and GCC leaves the store out. What is passed on the stack begins at the same address, which is stored for that too.
func (ev *Evaluator) linkStored(around int32, given uint64, plus int64) (*written, error) {
	type key struct {
		around int32
		given  uint64
		plus   int64
	}
	return entries.Remembered(&ev.spot.U.Derived, key{around, given, plus}, func() (*written, error) { return ev.findLink(around, given, plus) })
}

// findLink is linkStored, the first time.
func (ev *Evaluator) findLink(around int32, given uint64, plus int64) (link *written, err error) {
	var links []written
	var passed, stored []int64
	err = ev.storesOf(around, false, func(f *stores, w written) {
		if w.size != int64(ev.Arch.WordSize) {
			return
		}
		switch v, ok := f.by(f.value(w)); {
		case ok && v == 0:
			links = append(links, w)
		case ok:
			stored = append(stored, v)
		}
	}, func(f *stores) {
		if given < body.Followed {
			if v, ok := f.by(f.t.Regs[given]); ok {
				passed = append(passed, v)
			}
		}
	})
	if len(passed) == 0 {
		passed = stored
	}
	for i := range links {
		if l := &links[i]; slices.Contains(passed, l.at-plus) {
			if link != nil && l.at != link.at {
				return nil, nil
			}
			link = l
		}
	}
	return link, err
}

// stores are what code stores in its frame.
type stores struct {
	t   *body.Trace
	cfa dw.CFARule // where the path begins
}

// written is what an instruction stores: where, from the address of the frame on, and how many bytes.
type written struct {
	by   uint64 // the instruction
	at   int64
	to   body.Value // the address
	size int64
}

// value returns what is there.
func (f *stores) value(w written) body.Value { return f.t.Load(w.to, uint8(8*w.size)) }

// by returns how far from the address of the frame a value is.
func (f *stores) by(v body.Value) (by int64, ok bool) {
	register, added, ok := f.t.Offset(v)
	return int64(added) - f.cfa.Off, ok && register == f.cfa.Reg
}

// storesOf follows each block of a function's code, or the first one alone, and calls f behind each instruction that stores in the frame, at a distance from its address, and g in front of
// each call, and at the end of each block.
func (ev *Evaluator) storesOf(rec int32, first bool, f func(s *stores, w written), g func(s *stores)) error {
	u := ev.spot.U
	c, err := u.Body.InstructionsIn(new(body.Code), rec)
	var s entries.Spot
	if err != nil || c.Why != "" {
		return err
	}
	if ok, err := u.Read(rec, &s); !ok || err != nil {
		return err
	}
	for b := range c.Graph.Blocks {
		block := &c.Graph.Blocks[b]
		if first && c.Graph.Insns[block.First].Addr != s.Fun.Start {
			continue
		}
		cfa, known, err := u.Img.Data.CFA(c.Graph.Insns[block.First].Addr)
		if err != nil {
			return err
		}
		if !known || cfa.Expr != nil {
			continue
		}
		in := stores{c.Arch.Begin(), cfa}
		for n := block.First; n < block.Last; n++ {
			code, addr := c.Graph.Bytes(n), c.Graph.Insns[n].Addr
			if i, ok := c.Arch.Next(code); ok && i.Call && g != nil {
				g(&in)
			}
			m, touches := c.Arch.Touches(in.t, code, addr)
			c.Arch.Follow(in.t, code, addr)
			if at, ok := in.by(m.At); touches && m.Writes && ok {
				f(&in, written{addr, at, m.At, m.Size})
			}
		}
		if g != nil {
			g(&in)
		}
	}
	return nil
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
