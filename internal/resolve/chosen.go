package resolve

import (
	"bytes"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
)

// ChosenSince looks at the lists of the variables around the site that are what the function was called with: at where one ends to be in a register.
func (e *evidence) ChosenSince() (bool, error) {
	entry := entryValueIn(e.c.Expr)
	if entry == nil || e.s.Kind != entries.Inline {
		return false, nil
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

// entryValueIn returns the operation with which an expression begins, if that is DW_OP_entry_value, as GCC writes it of a register.
func entryValueIn(expr []byte) []byte {
	if len(expr) < 3 || expr[0] != eval.OpEntryValue && expr[0] != eval.OpGNUEntryValue || int(expr[1]) > len(expr)-2 {
		return nil
	}
	return expr[:2+int(expr[1])]
}
