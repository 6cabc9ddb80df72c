// Package convention says where a calling convention puts the parameters of a function, as its debug information declares them, and whether the
// function's code takes them so.
package convention

import (
	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/abi"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Signature says whether a function takes its parameters as they are declared.
type Signature uint8

const (
	// Changed means no, or that it is not known.
	Changed Signature = iota
	// Local means yes as far as can be seen, but only its unit calls it.
	Local
	// Kept means yes.
	Kept
)

// Passed is where the calling convention puts the parameters at a spot, which is its
// function's first instruction. Its memory can be reused for the next spot.
type Passed struct {
	known     bool // the other fields are set
	signature Signature
	params    []param // those before the first one of which it is not known
	err       error   // from reading that one
}

type param struct {
	root   uint64 // see Var.Ultimate
	loc    loc.Location
	reason loc.Reason
}

// Forget prepares for another spot.
func (c *Passed) Forget() { c.known = false }

// Of returns where the calling convention puts a parameter at the spot, which is its
// function's first instruction. k is Changed if that is not known: the compiler may
// have changed the signature, or the language has a convention of its own.
func (c *Passed) Of(s *entries.Spot, x *entries.Var) (l loc.Location, r loc.Reason, k Signature, err error) {
	if !c.known {
		*c = Passed{known: true, params: c.params[:0]}
		c.signature, c.err = passParams(s, &c.params)
	}
	if c.signature == Changed {
		return l, r, Changed, c.err
	}
	root, err := x.Ultimate(nil)
	if err != nil {
		return l, r, Changed, err
	}
	for i := range c.params {
		if p := &c.params[i]; p.root == root {
			return p.loc, p.reason, c.signature, nil
		}
	}
	return l, r, Changed, c.err
}

// passParams appends where the parameters are at the site.
func passParams(s *entries.Spot, to *[]param) (k Signature, err error) {
	u := s.U
	if !dw.IsC(u.Lang) && !dw.IsCPlusPlus(u.Lang) && u.Lang != dw.LangRust {
		return Changed, nil
	}
	e, err := u.Entry(s.DIE())
	if err != nil {
		return Changed, err
	}
	if k, err = signature(s, e); err != nil || k == Changed {
		return Changed, err
	}
	known, err := Assign(u, e, func(f func(d *entries.Var) (bool, error)) error { return s.DeclaredParams(e, f) },
		func(d *entries.Var, l *loc.Location, r loc.Reason) (bool, error) {
			p := param{loc: *l, reason: r}
			p.root, err = d.Ultimate(nil)
			*to = append(*to, p)
			return err == nil, err
		})
	if !known {
		return Changed, err
	}
	return k, err // of a parameter that cannot be read: those before it are known
}

// Assign calls f with where the calling convention puts parameters of a function, up to one of which that is not known. It calls each for all of
// them, in order. known is false if the convention is not.
func Assign(u *entries.Unit, e dw.Entry, each func(func(d *entries.Var) (more bool, err error)) error, f func(d *entries.Var, l *loc.Location, r loc.Reason) (more bool, err error)) (known bool, err error) {
	a := u.Img.Arch()
	if len(a.Args) == 0 {
		return false, nil
	}
	next := abi.NewAssigner(u.Img.Machine)
	result, err := u.ResultType(e)
	if err != nil {
		return false, err
	}
	variadic, err := entries.IsVariadic(e)
	if err != nil {
		return false, err
	}
	if known, err := next.Result(result, u.Lang, variadic); err != nil || !known {
		return false, err
	}
	return true, each(func(d *entries.Var) (more bool, err error) {
		t, err := d.U.TypeOf(d.Type)
		if err != nil {
			return false, err
		}
		p, known, err := abi.PassingOf(t, u.Lang, u.Img.Machine)
		if err != nil || !known || variadic && p.Vectors > 0 && abi.Of(a).VariadicWords {
			return false, err
		}
		if p.Nothing() {
			return true, nil // nothing is passed
		}
		l, r := next.Next(&p)
		return f(d, &l, r)
	})
}

// signature returns whether the code of a function takes its parameters as they are declared.
// GCC marks all functions for which that is not so, and LLVM does since version 15 (DW_CC_nocall).
// With older ones, in a function that only its own unit calls, each parameter must at least
// have a whole location: one that is not used any more, or always has the same value, is no
// longer passed, and those after it move up (seen with clang 14).
func signature(s *entries.Spot, e dw.Entry) (Signature, error) {
	if s.Clone() != "" {
		return Changed, nil
	}
	nocall, external, err := s.U.Callable(e)
	switch {
	case err != nil || nocall:
		return Changed, err
	case external || s.U.Body.GNU():
		return Kept, nil
	}
	k := Local
	err = s.U.Img.EachParam(e, func(x *entries.Var) (bool, error) {
		if !whole(s, x) {
			k = Changed
		}
		return k != Changed, nil
	})
	return k, err
}

// whole reports whether a parameter has a location, which is no constant, and has no part
// that is missing.
func whole(s *entries.Spot, x *entries.Var) bool {
	if !x.Described() || x.Fixed() || x.Literal() {
		return false
	}
	expr := x.Location.Bytes()
	if !x.Location.IsBlock() {
		c, err := s.U.Choose(x.Location, x.Views, s.At, true)
		if err != nil {
			return false
		}
		expr = c.Expr
	}
	part := 0
	for at := 0; at < len(expr); {
		o, err := eval.Decode(expr, at, s.U.Encoding())
		if err != nil {
			return false
		}
		if c := op.Opcode(o.Code); c == op.DW_OP_piece || c == op.DW_OP_bit_piece {
			if part == at {
				return false
			}
			part = o.Next
		}
		at = o.Next
	}
	return true
}
