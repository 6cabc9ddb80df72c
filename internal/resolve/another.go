package resolve

import (
	"bytes"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/arithmetic"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/judge"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/passed"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/loc"
)

// ForAnother looks for a parameter that has the same place, or that the clone lost: parts of that may be passed in its stead. And for two parts of a structure that have
// one place: of "s.a = s.b" that is left.
func (e *evidence) ForAnother() (bool, error) {
	shared, err := e.shared()
	if shared || err != nil || !e.ev.candidate.Clone || e.ev.candidate.Note != judge.Later {
		return shared, err
	}
	return e.unpassed()
}

// shared is ForAnother by the notes alone.
func (e *evidence) shared() (bool, error) {
	if e.s.U.Body.IsGo() { // a slice's length often is its capacity, and a result what was passed
		return false, nil
	}
	if doubled(&e.v.Loc) {
		return true, nil
	}
	entry, err := e.s.Entry()
	if err != nil {
		return false, err
	}
	found := false
	err = e.s.U.Img.EachParam(entry, func(x *entries.Var) (bool, error) {
		if x.Off == e.x.Off || x.Location.Form == 0 {
			return true, nil
		}
		expr, err := e.s.Note(x)
		if err != nil {
			return true, nil //nolint:nilerr // the error is reported where that parameter is asked for
		}
		found = bytes.Equal(expr, e.c.Expr) || len(expr) > 0 && expr[0] == eval.OpGNUParameterRef
		return !found, nil
	})
	return found, err
}

// unpassedOf is the key of what calls of a clone name by its entry, by the clone's record.
type unpassedOf int32

// unpassed reports whether calls of the clone name the parameter by its entry, which they do of what the clone is not passed. GCC -flto, without markers, notes what
// "k = p->v" makes at the clone's first instruction, where it is passed as a part of p.
func (e *evidence) unpassed() (bool, error) {
	u, rec := e.s.U, e.s.Rec
	named, err := entries.Remembered(&u.Derived, unpassedOf(rec), func() (map[uint64]bool, error) {
		out := make(map[uint64]bool)
		x, err := u.Calls()
		if err != nil {
			return nil, err
		}
		calls, _, err := x.Of(rec)
		for i := 0; i < len(calls) && err == nil; i++ {
			err = calls[i].Named(func(of *dw.Unit, off uint64) error {
				from := u.Img.Of(of)
				entry, err := from.Entry(off)
				if err != nil {
					return err
				}
				v, err := from.ReadVar(entry)
				if err != nil {
					return err
				}
				root, err := v.Ultimate(nil)
				out[root] = true
				return err
			})
		}
		return out, err
	})
	if err != nil {
		return false, err
	}
	root, err := e.x.Ultimate(nil)
	return named[root], err
}

// PassedOther looks at what calls say of what the clone is not passed. GCC 16 can lose the 2 of "f(2)" where it makes a clone of f for 2, and then notes what f makes of it for the whole body.
// And GCC 11 and 12 note so the 1 that f makes of any truth value, in a clone for another parameter's number: a clone for a number is passed that by each call, and a call that passes what
// is no number refutes it.
func (e *evidence) PassedOther() (bool, error) {
	u, n := e.s.U, e.v.Loc.Expr
	if e.v.Loc.Kind != loc.KindConstant || n.Op != ops.Const || u.Img.LeftOut.Has(rule.Caller) {
		return false, nil
	}
	size, err := e.v.Type.ByteSize()
	if err != nil || size <= 0 || size > 8 {
		return false, nil //nolint:nilerr // the type is asked for elsewhere
	}
	root, err := e.x.Ultimate(nil)
	if err != nil {
		return false, err
	}
	d, err := passed.Of(u, passed.Wanted{Rec: u.Body.Outermost(e.s.Rec), Parameter: root, Nested: e.ev.nested}, valueIn)
	if err != nil {
		return false, err
	}
	for i := range d.Passed {
		if v := d.Passed[i].Value; v.Op != ops.Caller && (v.Op != ops.Const || (v.K^n.K)<<(64-8*size) != 0) { // what the caller was passed may be that number
			return true, nil
		}
	}
	return false, nil
}

// doubled reports whether two parts of an object are in one register.
func doubled(l *loc.Location) bool {
	for i := range l.Pieces {
		p := &l.Pieces[i]
		if p.Loc.Kind == loc.KindRegister && slices.ContainsFunc(l.Pieces[:i], func(o loc.Piece) bool { return o.BitOffset == p.BitOffset && arithmetic.EqualLocation(&o.Loc, &p.Loc) }) {
			return true
		}
	}
	return false
}
