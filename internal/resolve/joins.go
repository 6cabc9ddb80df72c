package resolve

import (
	"bytes"

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
	if s.Kind != entries.Inline {
		return false, nil
	}
	var c *body.Code
	return s.OfCallers(func(x *entries.Scoped) (bool, error) {
		if x.Location.Form == 0 || x.Location.IsBlock() {
			return false, nil
		}
		if its, ok := s.Placed(x); !ok || x.Tag != dw.TagVariable || !bytes.Equal(its.Expr, e.c.Expr) {
			return false, nil
		}
		if c == nil {
			var err error
			if c, err = e.ev.instructionsOf(s); err != nil {
				return false, err
			}
		}
		n, ok := c.Graph.At(s.At.Addr)
		if !ok || c.Why != "" {
			return false, nil
		}
		for range maxBefore {
			block := c.Graph.Block(int32(n))
			first := c.Graph.Blocks[block].First
			if at, ok := notedAt(s.U, x, c.Graph.Insns[first].Addr); !ok || at.VLo > 0 && at.Lo == c.Graph.Insns[first].Addr || !bytes.Equal(at.Expr, e.c.Expr) {
				return false, nil // a statement assigns it, or it is noted as something else
			}
			if c.Graph.Meets(first) {
				return c.Graph.OnlyBehind(block, func(last int32) bool {
					in := &c.Graph.Insns[last]
					_, noted := notedAt(s.U, x, in.Addr+uint64(in.Size)-1)
					return !noted && !e.writes(c, c.Graph.Block(last))
				}), nil
			}
			before, ok := c.Graph.OnlyBefore(first)
			if !ok {
				return false, nil
			}
			n = int(before)
		}
		return false, nil
	})
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

// maxBefore bounds how many blocks before the site are looked at.
const maxBefore = 8

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
