package resolve

import (
	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/judge"
)

// A function out of line that assigns its parameter has two values of it, and its return is behind both. So where its debug information says that the
// parameter is, in all of the function, in registers that have on all paths what it was called with, or in the end what it was at the
// entry, no statement assigns it. A body that was inlined does not show that: what a statement assigns can be computed by its last instruction, and be noted
// nowhere.

// Kept asks the bodies of the function in the unit.
func (e *evidence) Kept() (bool, error) {
	if a, err := e.Assigned(); a == judge.Inside || err != nil {
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
	var passed [32]int // how many parameters are noted in a register at the entry: of two, a statement may have made one the other
	var kept [32]uint64
	err = u.Img.EachParam(e, func(x *entries.Var) (bool, error) {
		root, err := x.Ultimate(nil)
		if err != nil || x.Location.Form == 0 {
			return true, nil //nolint:nilerr // damage is reported where the parameter is asked for
		}
		if n, ok := f.entersIn(x); ok {
			passed[n]++
			if !out[root] && f.entered(x, ranges[0]) {
				kept[n] = root
			}
		}
		return true, nil
	})
	for n, root := range kept {
		if root != 0 && passed[n] == 1 {
			out[root] = true
		}
	}
	return err
}

// entersIn returns the register in which a parameter is at the entry.
func (f *changes) entersIn(x *entries.Var) (n uint64, ok bool) {
	expr, err := f.spot.Note(x)
	if err != nil {
		return 0, false
	}
	return register(expr)
}

// entered reports whether debug information says of a parameter of a function out of line that it is in registers, which have on all paths what it was called
// with, or what it was at the entry.
func (f *changes) entered(x *entries.Var, r dw.Range) bool {
	code, err := f.ev.codeOf(f.spot)
	if err != nil || code.Why != "" {
		return false
	}
	size, err := bitsOf(x)
	if err != nil || size == 0 {
		return false
	}
	if x.Location.IsBlock() {
		n, ok := register(x.Location.Bytes())
		return ok && code.Held().Keeps(n, n, size, r.Lo, r.Hi)
	}
	at, was := r.Lo, uint64(0)
	l := f.u.Locations(x.Location, x.Views)
	for v := (dw.LocEntry{}); l.Next(&v); at = v.Hi {
		if v.Default || v.Viewed || v.Lo != at || len(v.Expr) == 0 {
			return false
		}
		n, in := register(v.Expr)
		if at == r.Lo {
			was = n
		}
		entry := v.Expr[0] == eval.OpEntryValue || v.Expr[0] == eval.OpGNUEntryValue
		if entry && at != r.Lo && !isValue(f.u, v.Expr) {
			continue
		}
		if !in || !code.Held().Keeps(n, was, size, v.Lo, v.Hi) {
			return false
		}
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
