package resolve

import (
	"bytes"
	"slices"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
)

// A statement that makes a number of a number makes one of another number too, which GCC then knows. Where the list goes on with a place that has to be read, what is passed is
// no number: GCC has lost the statements that made the caller's variable another one than it was at first.

// OfNumber looks at how the list goes on at the same address, behind a statement of which another body of the function shows that it makes a number of a number. Another parameter
// that the statement reads too could be a number there, and none here.
func (e *evidence) OfNumber() (bool, error) {
	s, c, x := e.s, e.c, e.x
	if s.Kind != entries.Inline || c.Lo != s.At.Addr || c.Hi != s.At.Addr || x.Location.IsBlock() {
		return false, nil
	}
	var last, next dw.LocEntry
	l := s.U.Locations(x.Location, x.Views)
	for v := (dw.LocEntry{}); l.Next(&v) && v.Viewed; last = v {
		if last.Lo == c.Lo && last.Hi == c.Hi && bytes.Equal(last.Expr, c.Expr) && goesOn(&last, &v) && !signOf(s.U, v.Expr).constant {
			next = v
			break
		}
	}
	if len(next.Expr) == 0 {
		return false, l.Err
	}
	entry, err := s.Entry()
	if err != nil {
		return false, err
	}
	at, err := statementsOf(s.U, s.Rec, entry, nil)
	if err != nil {
		return false, err
	}
	function := s.U.Recs[s.Rec].Root
	known, err := entries.Remembered(&s.U.Derived, numbersOf(function), func() (map[uint64][]assignment, error) { return numbersMade(s.U, function) })
	if len(known) == 0 || err != nil {
		return false, err
	}
	root, err := x.Ultimate(nil)
	for k := 1; k < len(at); k++ {
		if begins(&next, &at[k-1], &at[k]) && slices.Contains(known[root], assignment{at[k-1].Place, at[k].Place}) {
			return true, err
		}
	}
	return false, err
}

// numbersOf is a key of what a unit's bodies of a function show, by the function's record.
type numbersOf int32

// numbersMade returns the statements of a function that make a number of one, by the entry that declares the parameter: a list has a number before and behind the statement, or a register
// before, and what is computed of that alone behind or as the next entry.
func numbersMade(u *entries.Unit, function int32) (map[uint64][]assignment, error) {
	out := make(map[uint64][]assignment)
	var before, made dw.LocEntry // the entries around a statement of this list
	err := eachList(u, function, func(rec int32, entry dw.Entry, x *entries.Var, last, v *dw.LocEntry) error {
		its := v
		switch {
		case goesOn(last, v) && (signOf(u, last.Expr).constant && signOf(u, v.Expr).constant || computedOf(u, v.Expr, last.Expr)):
		case made.Expr != nil && made.Hi == v.Lo && made.Lo == last.Lo && bytes.Equal(made.Expr, last.Expr) && computedOf(u, v.Expr, before.Expr):
			its = &made
		default:
			if made = (dw.LocEntry{}); goesOn(last, v) {
				before, made = *last, *v
			}
			return nil
		}
		at, err := statementsOf(u, rec, entry, nil)
		if err != nil {
			return err
		}
		root, err := x.Ultimate(nil)
		for k := 1; k < len(at); k++ {
			if begins(its, &at[k-1], &at[k]) {
				out[root] = append(out[root], assignment{at[k-1].Place, at[k].Place})
			}
		}
		made = dw.LocEntry{}
		return err
	})
	return out, err
}

// computedOf reports whether an expression is a number that is computed of a register, which another expression is.
func computedOf(u *entries.Unit, expr, of []byte) bool {
	n, ok := eval.RegisterOf(of)
	if !ok || !signOf(u, expr).computes {
		return false
	}
	enc, reads := u.Encoding(), false
	for at := 0; at < len(expr); {
		o, err := eval.Decode(expr, at, enc)
		if err != nil {
			return false
		}
		c := op.Opcode(o.Code)
		switch its := c >= op.DW_OP_breg0 && c <= op.DW_OP_breg31; {
		case its && uint64(c-op.DW_OP_breg0) == n:
			reads = true
		case its, !o.IsConstant() && !o.IsConversion() && c != op.DW_OP_stack_value && c != op.DW_OP_and && !computesNumber(c):
			return false
		}
		at = o.Next
	}
	return reads
}

// begins reports whether an entry of a list begins behind a statement, and with the next one at the latest, all at one address.
func begins(v *dw.LocEntry, s, next *statementAt) bool {
	return v.Lo == s.addr && s.addr == next.addr && s.view < v.VLo && v.VLo <= next.view
}
