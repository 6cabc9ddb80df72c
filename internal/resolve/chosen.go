package resolve

import (
	"bytes"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/loc"
)

// ChosenSince looks at the lists of the variables around the site that are what the function was called with: at where one ends to be in a register. And it looks at the
// instructions before the site, for one that has chosen in a copy of what is noted.
func (e *evidence) ChosenSince() (bool, error) {
	entry := entryValueIn(e.c.Expr)
	switch {
	case e.s.Kind != entries.Inline:
		return false, nil
	case entry == nil:
		return e.chosenInCopy()
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

// chosenInCopy reports whether a register that had what the noted one has still was changed by a conditional move of the caller's, and no variable is noted there: "if (n == 0)
// n = 4064" is then lost, and the note is of what n was before. "f(n, max(n, 16))" has a variable in the register, which is that of the maximum.
func (e *evidence) chosenInCopy() (bool, error) {
	s := e.s
	if e.v.Loc.Kind != loc.KindRegister || e.v.Loc.Expr.K >= body.Followed {
		return false, nil
	}
	noted := e.v.Loc.Expr.K
	choices, err := e.ev.choicesNear(s)
	copied := func(x body.Choice) bool {
		return (x.Copies | x.Before).Has(noted) && x.Register != noted && !x.Since.Has(noted)
	}
	if err != nil || !slices.ContainsFunc(choices, copied) {
		return false, err
	}
	ranges, err := s.U.Extent(&s.PCs)
	if err != nil {
		return false, err
	}
	for _, x := range choices {
		if !copied(x) || dw.Covers(ranges, x.Addr) {
			continue
		}
		known, err := e.hasVariable(x.Register)
		if err != nil {
			return false, err
		}
		if known {
			continue
		}
		if x.Copies.Has(noted) {
			return true, nil
		}
		c, err := e.ev.instructionsOf(s)
		if err != nil || c.Held().Alike(noted, x.Addr).Has(x.Register) {
			return err == nil, err
		}
	}
	return false, nil
}

// hasVariable reports whether a register has a variable of the callers at the site, or another parameter of the body.
func (e *evidence) hasVariable(n uint64) (bool, error) {
	s := e.s
	found, err := s.OfCallers(func(x *entries.Scoped) (bool, error) {
		its, ok := s.Placed(x)
		r, in := register(its.Expr)
		return ok && in && r == n, nil
	})
	if found || err != nil {
		return found, err
	}
	entry, err := s.U.Entry(s.U.Off + uint64(s.U.Recs[s.Rec].Off))
	if err != nil {
		return false, err
	}
	err = s.U.Img.EachParam(entry, func(x *entries.Var) (bool, error) {
		its := entries.Chosen{Expr: x.Location.Bytes()}
		if x.Location.Form != 0 && !x.Location.IsBlock() {
			var err error
			if its, err = s.U.Choose(x.Location, x.Views, s.At, false); err != nil {
				return true, nil //nolint:nilerr // damage is reported where that parameter is asked for
			}
		}
		r, in := register(its.Expr)
		found = in && r == n
		return !found, nil
	})
	return found, err
}

// entryValueIn returns the operation with which an expression begins, if that is DW_OP_entry_value, as GCC writes it of a register.
func entryValueIn(expr []byte) []byte {
	if len(expr) < 3 || expr[0] != eval.OpEntryValue && expr[0] != eval.OpGNUEntryValue || int(expr[1]) > len(expr)-2 {
		return nil
	}
	return expr[:2+int(expr[1])]
}
