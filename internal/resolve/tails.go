package resolve

import (
	"slices"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/caller"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// jumped adds what functions pass that end with a jump to this one. Their own frames have ended, so what they pass is a constant, or what they
// were called with themselves.
func (d *described) jumped(u *entries.Unit, x *caller.Unit, w wanted) error {
	if w.place == "" || w.data {
		return nil
	}
	tails, err := x.Tails(w.rec)
	if err != nil {
		return err
	}
	for i := range tails {
		t := &tails[i]
		v, ok, err := t.Passes([]byte(w.place))
		if err != nil {
			return err
		}
		if !ok || slices.ContainsFunc(d.passed, func(p eval.Passed) bool { return p.Return == t.From.Return }) {
			continue
		}
		value, err := jumpedWith(u, t, v, w.nested+1)
		if err != nil {
			return err
		}
		if value == nil {
			continue
		}
		d.passed = append(d.passed, eval.Passed{Return: t.From.Return, Value: value})
		for j := len(d.passed) - 1; j > 0 && d.passed[j-1].Return > d.passed[j].Return; j-- { // they are looked up by address
			d.passed[j-1], d.passed[j] = d.passed[j], d.passed[j-1]
		}
	}
	return nil
}

// jumpedWith returns what a jump passes, in the frame of what called the function that jumps, or nil.
func jumpedWith(u *entries.Unit, t *caller.Tail, v caller.Value, nested int) (*loc.Expr, error) {
	if place, ok := entryValue(v.Expr); ok {
		passed, ok, err := t.From.At(place, false)
		if !ok || err != nil {
			return nil, err
		}
		value, err := valueAt(u.Img.Of(t.From.Unit), &t.From, passed, nested)
		if value == nil || err != nil {
			return nil, err
		}
		return unchanged(&t.From, string(place), value)
	}
	value, err := valueIn(u, t.Rec, t.Start, v, nested)
	if value == nil || err != nil {
		return nil, err
	}
	fixed := true
	value.Walk(func(e *loc.Expr) {
		switch e.Op {
		case ops.Reg, ops.Deref, ops.Caller, ops.Task, ops.Text, ops.Glob:
			fixed = false
		}
	})
	if !fixed {
		return nil, nil
	}
	return value, nil
}

// entryValue returns the register of which an expression is the value where its function was called.
func entryValue(expr []byte) (place []byte, ok bool) {
	if n := len(expr); n > 0 && expr[n-1] == uint8(op.DW_OP_stack_value) {
		expr = expr[:n-1]
	}
	if len(expr) < 3 || expr[0] != eval.OpEntryValue && expr[0] != eval.OpGNUEntryValue || int(expr[1]) != len(expr)-2 {
		return nil, false
	}
	_, ok = register(expr[2:])
	return expr[2:], ok
}
