package resolve

import (
	"bytes"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/judge"
)

// A function out of line that assigns its parameter has two values of it, and its return is behind both. So where its debug information says that the
// parameter is, in all of the function, in a register that no instruction writes, or in several to which the code moves it, or in the end what it was at the
// entry, no statement assigns it. A body that was inlined does not show that: what a statement assigns can be computed by its last instruction, and be noted
// nowhere.

// Kept asks the bodies of the function in the unit.
func (e *evidence) Kept() (bool, error) {
	if a, err := e.Assigned(); a != judge.Never || err != nil {
		return false, err
	}
	u, function := e.s.U, e.s.U.Recs[e.s.Rec].Root
	if function < 0 {
		return false, nil
	}
	kept, err := entries.Remembered(&u.Derived, keptOf(function), func() (map[uint64]bool, error) { return keeping(u, function, e.ev) })
	if err != nil {
		return false, err
	}
	root, err := e.x.Ultimate(nil)
	return kept[root], err
}

// keeping returns the parameters of a function, by the entries that declare them, that a body of it in the unit has to its end as they were passed.
func keeping(u *entries.Unit, function int32, ev *Evaluator) (map[uint64]bool, error) {
	out := make(map[uint64]bool)
	f := changes{u: u, ev: ev}
	for i := range u.Recs {
		r := &u.Recs[i]
		if r.Root != function || r.Flags&index.HasPC == 0 || entries.Inlined(r) {
			continue
		}
		var s entries.Spot
		if ok, err := u.Read(int32(i), &s); err != nil {
			return nil, err
		} else if !ok {
			continue
		}
		f.rec, f.spot = int32(i), &s
		if err := f.keeps(out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// keeps adds the parameters that the body at a spot has to its end as they were passed.
func (f *changes) keeps(out map[uint64]bool) error {
	u, s := f.u, f.spot
	ranges, err := u.Extent(&s.PCs)
	if err != nil || len(ranges) != 1 || len(s.CloneMarks()) > 0 {
		return err
	}
	e, err := s.Entry()
	if err != nil {
		return err
	}
	return u.Img.EachParam(e, func(x *entries.Var) (bool, error) {
		root, err := x.Ultimate(nil)
		if err != nil || out[root] || x.Location.Form == 0 {
			return true, nil //nolint:nilerr // damage is reported where the parameter is asked for
		}
		if f.entered(x, ranges[0]) {
			out[root] = true
		}
		return true, nil
	})
}

// entered reports whether debug information says of a parameter of a function out of line that it is in one register, which no instruction writes, or in
// several to which the code moves it, or what it was at the entry.
func (f *changes) entered(x *entries.Var, r dw.Range) bool {
	code := f.u.Img.Code
	if x.Location.IsBlock() {
		n, ok := register(x.Location.Bytes())
		return ok && code.Untouched(r.Lo, r.Hi, n, false)
	}
	at := r.Lo
	var last dw.LocEntry
	var moved body.Registers // registers to which it was moved
	f.size = 0
	l := f.u.Locations(x.Location, x.Views)
	for v := (dw.LocEntry{}); l.Next(&v); {
		if v.Default || v.Viewed || v.Lo != at || len(v.Expr) == 0 {
			return false
		}
		at = v.Hi
		if bytes.Equal(last.Expr, v.Expr) {
			v.Lo = last.Lo // one entry: what writes the register between is inside
		}
		n, in := register(v.Expr)
		switch entry := v.Expr[0] == eval.OpEntryValue || v.Expr[0] == eval.OpGNUEntryValue; {
		case entry && last.Expr != nil && !isValue(f.u, v.Expr):
			last = v
			continue
		case !in || !code.Untouched(v.Lo, v.Hi, n, true):
			return false
		}
		if _, was := register(last.Expr); last.Expr != nil && !bytes.Equal(last.Expr, v.Expr) && (was || !moved.Has(n)) {
			if same, _, err := f.compare(x, &last, &v); !same || err != nil {
				return false
			}
		}
		moved |= 1 << n
		last = v
	}
	return l.Err == nil && at == r.Hi
}

// register returns the register that an expression is.
func register(expr []byte) (n uint64, ok bool) {
	if len(expr) != 1 || op.Opcode(expr[0]) < op.DW_OP_reg0 || op.Opcode(expr[0]) > op.DW_OP_reg31 {
		return 0, false
	}
	return uint64(op.Opcode(expr[0]) - op.DW_OP_reg0), true
}
