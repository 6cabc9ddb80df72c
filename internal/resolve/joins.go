package resolve

import (
	"bytes"

	"github.com/bpfprologue/bpfprologue/internal/arithmetic"
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// firstNotedAtJoin reports whether a variable of a caller has the same place, and it is first noted where paths meet, before any statement there, and on none of those paths. Then it has what
// it was assigned on each, of which the notes are lost. GCC can go on that this is what it was on one of them: a computation that no path has changed would be known before.
func (e *evidence) firstNotedAtJoin() (bool, error) {
	s := e.s
	if s.Kind != entries.Inline || forCall(&e.v.Loc) {
		return false, nil
	}
	c, err := e.ev.instructionsOf(s)
	if err != nil {
		return false, err
	}
	join, ok := meetsBefore(c, s.At.Addr)
	if !ok || !c.Graph.OnlyBehind(join, func(last int32) bool { return !e.writes(c, c.Graph.Block(last)) }) {
		return false, nil
	}
	begins := c.Graph.Insns[c.Graph.Blocks[join].First].Addr
	return s.OfCallers(func(x *entries.Scoped) (bool, error) {
		if x.Location.Form == 0 || x.Location.IsBlock() {
			return false, nil
		}
		if its, ok := s.Placed(x); !ok || x.Tag != dw.TagVariable || !bytes.Equal(its.Expr, e.c.Expr) {
			return false, nil
		}
		at, ok := notedAt(s.U, x, begins)
		if !ok || at.VLo > 0 && at.Lo == begins || !bytes.Equal(at.Expr, e.c.Expr) {
			return false, nil // a statement assigns it there, or later
		}
		return c.Graph.OnlyBehind(join, func(last int32) bool {
			in := &c.Graph.Insns[last]
			_, noted := notedAt(s.U, x, in.Addr+uint64(in.Size)-1)
			return !noted
		}), nil
	})
}

// forCall reports whether a location is of a number that callers compute for a call, mostly: the sum of what one place has and a number, or a conversion.
func forCall(l *loc.Location) bool {
	e := l.Expr
	if e == nil {
		return true
	}
	switch e.Op {
	case ops.Add:
		return e.B.Op == ops.Const && (e.A.Op == ops.Reg || e.A.Op == ops.Deref)
	case ops.And:
		return e.B.Op == ops.Const && arithmetic.MaskBytes(e.B.K) > 0
	case ops.ZExt, ops.SExt:
		return true
	}
	return arithmetic.Extends(e)
}

// meetsBefore returns the block where paths meet from which alone execution comes to an address.
func meetsBefore(c *body.Code, addr uint64) (block int32, ok bool) {
	if c.Graph == nil || c.Why != "" {
		return 0, false
	}
	at, ok := c.Graph.At(addr)
	for n := int32(at); ok; n, ok = c.Graph.OnlyBefore(c.Graph.Blocks[block].First) {
		if block = c.Graph.Block(n); c.Graph.Meets(c.Graph.Blocks[block].First) {
			return block, true
		}
	}
	return 0, false
}

// writes reports whether an instruction of a block writes a register that the value is computed from: that can be what the variable was assigned there.
func (e *evidence) writes(c *body.Code, block int32) (found bool) {
	b := &c.Graph.Blocks[block]
	for n := b.First; n < b.Last && !found; n++ {
		next, ok := c.Arch.Next(c.Graph.Bytes(n))
		w, known := c.Arch.Writes(c.Graph.Bytes(n))
		if ok && next.Branches && !next.Call {
			continue // nothing else
		}
		if found = !ok || next.Call || !known; found {
			break
		}
		e.v.Loc.Exprs(func(x *loc.Expr) {
			x.Walk(func(r *loc.Expr) { found = found || r.Op == ops.Reg && w.Registers.Has(r.K) })
		})
	}
	return found
}

// notedAt returns what a variable is noted as at an address.
func notedAt(u *entries.Unit, x *entries.Scoped, addr uint64) (at dw.LocEntry, ok bool) {
	l := u.Locations(x.Location, x.Views)
	for v := (dw.LocEntry{}); l.Next(&v); {
		if v.Lo <= addr && addr < v.Hi {
			return v, true
		}
	}
	return at, false
}
