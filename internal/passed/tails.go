package passed

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/caller"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// jumped adds what functions pass that end with a jump to this one. Their own frames have ended, so what they pass is a constant, or what they
// were called with themselves.
func (d *Values) jumped(u *entries.Unit, x *caller.Unit, w Wanted, in Evaluate) error {
	if w.Place == "" || w.Data {
		return nil
	}
	tails, err := x.Tails(w.Rec)
	if err != nil {
		return err
	}
	for i := range tails {
		t := &tails[i]
		v, ok, err := t.Passes([]byte(w.Place))
		if err != nil {
			return err
		}
		if !ok || slices.ContainsFunc(d.Passed, func(p eval.Passed) bool { return p.Return == t.From.Return }) {
			continue
		}
		value, err := in.jumpedWith(u, t, v, w.Nested+1)
		if err != nil {
			return err
		}
		if value == nil {
			continue
		}
		d.Passed = append(d.Passed, eval.Passed{Return: t.From.Return, Value: value})
		for j := len(d.Passed) - 1; j > 0 && d.Passed[j-1].Return > d.Passed[j].Return; j-- { // they are looked up by address
			d.Passed[j-1], d.Passed[j] = d.Passed[j], d.Passed[j-1]
		}
	}
	return nil
}

// jumpedWith returns what a jump passes, in the frame of what called the function that jumps, or nil.
func (in Evaluate) jumpedWith(u *entries.Unit, t *caller.Tail, v caller.Value, nested int) (*loc.Expr, error) {
	if place, ok := eval.EntryValueOf(v.Expr); ok {
		passed, ok, err := t.From.At(place, false)
		if !ok || err != nil {
			return nil, err
		}
		value, err := in.at(u.Img.Of(t.From.Unit), &t.From, passed, nested)
		if value == nil || err != nil {
			return nil, err
		}
		return unchanged(&t.From, string(place), value)
	}
	value, err := in(u, t.Rec, t.Start, v, nested)
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
