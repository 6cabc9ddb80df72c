// Package convention says where a calling convention puts the parameters of a function, as its debug information declares them, and whether the
// function's code takes them so.
package convention

import (
	"slices"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/abi"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
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

// ForAnother reports whether a parameter's location is the register in which another one is passed, by the convention; noted is set if that is by its note too. Of a
// statement that assigns it to the parameter nothing else is left in LLVM's notes.
func (c *Passed) ForAnother(s *entries.Spot, x *entries.Var, l *loc.Location) (is, noted bool, err error) {
	if c.signature == Changed || l.Kind != loc.KindRegister {
		return false, false, nil
	}
	root, err := x.Ultimate(nil)
	if err != nil {
		return false, false, err
	}
	at := slices.IndexFunc(c.params, func(p param) bool {
		return p.root != root && p.reason.Code == reasons.None && p.loc.Kind == loc.KindRegister && p.loc.Expr.K == l.Expr.K
	})
	if at < 0 {
		return false, false, nil
	}
	e, err := s.Entry()
	if err != nil {
		return false, false, err
	}
	err = s.U.Img.EachParam(e, func(other *entries.Var) (bool, error) {
		root, err := other.Ultimate(nil)
		if err == nil && root == c.params[at].root {
			expr, found := note(s, other)
			noted = found && plain(expr, l.Expr.K)
		}
		return !noted && err == nil, err
	})
	return true, noted, err
}

// passParams appends where the parameters are at the site.
func passParams(s *entries.Spot, to *[]param) (k Signature, err error) {
	u := s.U
	if !platforms(u.Lang) {
		return Changed, nil
	}
	e, err := u.Entry(s.DIE())
	if err != nil {
		return Changed, err
	}
	k, parts, err := signature(s, e)
	if err != nil || k == Changed {
		return Changed, err
	}
	known, err := Assign(u, e, func(f func(d *entries.Var) (bool, error)) error { return s.DeclaredParams(e, f) },
		func(d *entries.Var, l *loc.Location, r loc.Reason) (bool, error) {
			p := param{loc: *l, reason: r}
			p.root, err = d.Ultimate(nil)
			*to = append(*to, p)
			return err == nil, err
		})
	if !known || parts && err != nil {
		return Changed, err
	}
	if parts {
		if same, err := inPlace(s, e, *to); err != nil || !same {
			return Changed, err
		}
	} else if k == Local {
		if moved, readErr := movedUp(s, e, *to); readErr != nil || moved {
			return Changed, readErr
		}
	}
	return k, err // of a parameter that cannot be read: those before it are known
}

// platforms reports whether functions of a language have the platform's calling convention, or its registers in that order at least. Go's are in another one.
func platforms(lang uint64) bool { return dw.IsC(lang) || dw.IsCPlusPlus(lang) || lang == dw.LangRust }

// inPlace reports whether the function's code reads, before it sets them, all registers in which parameters are passed, and notes have those that they have whole in no
// others: then there are as many arguments as are declared, and none is made of another one, as LLVM makes numbers of pointers.
func inPlace(s *entries.Spot, e dw.Entry, params []param) (same bool, err error) {
	for i := range params {
		if params[i].reason.Code != reasons.None || !s.Takes(&params[i].loc) {
			return false, nil
		}
	}
	same = true
	err = s.U.Img.EachParam(e, func(x *entries.Var) (bool, error) {
		is, part := whole(s, x)
		if part {
			return true, nil
		}
		root, err := x.Ultimate(nil)
		if err != nil || !is {
			same = false
			return false, err
		}
		at := slices.IndexFunc(params, func(p param) bool { return p.root == root })
		expr, found := note(s, x)
		same = at >= 0 && found && params[at].loc.Kind == loc.KindRegister && plain(expr, params[at].loc.Expr.K)
		return same, nil
	})
	return same, err
}

// plain reports whether a note is a register alone.
func plain(expr []byte, register uint64) bool {
	return register < 32 && len(expr) == 1 && uint64(expr[0]) == uint64(op.DW_OP_reg0)+register
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
// longer passed, and those after it move up (seen with clang 14). parts is set if one there lacks parts.
func signature(s *entries.Spot, e dw.Entry) (k Signature, parts bool, err error) {
	if s.Clone() != "" {
		return Changed, false, nil
	}
	nocall, external, err := s.U.Callable(e)
	switch {
	case err != nil || nocall:
		return Changed, false, err
	case external || s.U.Body.GNU():
		return Kept, false, nil
	}
	k = Local
	err = s.U.Img.EachParam(e, func(x *entries.Var) (bool, error) {
		is, part := whole(s, x)
		if parts = parts || part; !is && !part {
			k = Changed
		}
		return k != Changed, nil
	})
	return k, parts, err
}

// note returns what the debug information has of a parameter at the site. found is false if it is no location, or cannot be read.
func note(s *entries.Spot, x *entries.Var) (expr []byte, found bool) {
	if !x.Described() || x.Fixed() || x.Literal() {
		return nil, false
	}
	expr, err := s.Note(x)
	return expr, err == nil
}

// whole reports whether a parameter has a location, which is no constant, and has no part
// that is missing; or whether one is.
func whole(s *entries.Spot, x *entries.Var) (is, lacks bool) {
	expr, found := note(s, x)
	if !found {
		return false, false
	}
	part, bits := 0, uint64(0)
	for at := 0; at < len(expr); {
		o, err := eval.Decode(expr, at, s.U.Encoding())
		if err != nil {
			return false, false
		}
		if c := op.Opcode(o.Code); c == op.DW_OP_piece || c == op.DW_OP_bit_piece {
			if part == at {
				return false, true
			}
			if bits += o.A; c == op.DW_OP_piece {
				bits += 7 * o.A
			}
			part = o.Next
		}
		at = o.Next
	}
	if bits == 0 {
		return true, false
	}
	t, err := x.U.TypeOf(x.Type)
	if err != nil {
		return false, false
	}
	size, err := t.ByteSize()
	lacks = err == nil && bits < 8*uint64(size) // LLVM leaves out the last ones
	return err == nil && !lacks, lacks
}
