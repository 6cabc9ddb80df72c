package resolve

import (
	"bytes"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/loc"
)

// ChosenSince looks at the lists of the variables around the site that are what the function was called with: at where one ends to be in a register.
func (e *evidence) ChosenSince() (bool, error) {
	entry := entryValueIn(e.c.Expr)
	if e.s.Kind != entries.Inline {
		return false, nil
	}
	if entry == nil {
		return e.chosenCopy()
	}
	c, err := e.ev.instructionsOf(e.s)
	if err != nil {
		return false, err
	}
	return e.s.OfCallers(func(x *entries.Scoped) (bool, error) {
		if x.Location.Form == 0 || x.Location.IsBlock() {
			return false, nil
		}
		chosen := false
		var last dw.LocEntry
		l := e.s.U.Locations(x.Location, x.Views)
		for v := (dw.LocEntry{}); l.Next(&v); last = v {
			if r, in := register(last.Expr); in && v.Lo == last.Hi && v.Lo <= e.s.At.Addr && bytes.Equal(entryValueIn(v.Expr), entry) {
				chosen = chosen || c.ChoosesBefore(r, v.Lo)
			}
		}
		return chosen, nil
	})
}

// chosenCopy is ChosenSince of an argument's register that the code has left as it is: behind the probe the note is the entry value. Of "if (n == 0) n = 16" GCC has made a move to
// another register, and a conditional move there.
func (e *evidence) chosenCopy() (bool, error) {
	s, r := e.s, e.v.Loc.Expr
	if e.v.Loc.Kind != loc.KindRegister || !slices.Contains(e.ev.Arch.Args, uint16(r.K)) || e.x.Location.Form == 0 || e.x.Location.IsBlock() {
		return false, nil
	}
	entered := false
	l := s.U.Locations(e.x.Location, e.x.Views)
	for v := (dw.LocEntry{}); !entered && l.Next(&v); {
		if entry := entryValueIn(v.Expr); entry != nil && v.Lo > s.At.Addr {
			was, in := register(entry[2:])
			entered = in && was == r.K
		}
	}
	if !entered {
		return false, nil
	}
	ranges, err := s.U.Extent(&s.PCs)
	if err != nil {
		return false, err
	}
	c, err := e.ev.instructionsOf(s)
	return err == nil && c.ChosenCopy(r.K, s.At.Addr, ranges), err
}

// entryValueIn returns the operation with which an expression begins, if that is DW_OP_entry_value, as GCC writes it of a register.
func entryValueIn(expr []byte) []byte {
	if len(expr) < 3 || expr[0] != eval.OpEntryValue && expr[0] != eval.OpGNUEntryValue || int(expr[1]) > len(expr)-2 {
		return nil
	}
	return expr[:2+int(expr[1])]
}
