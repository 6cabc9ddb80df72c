package prove

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/proof/oracle"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// Computed expressions, and conditions, are evaluated a second time here: with the second reader's values
// of parameters, and C's rules written once more, as numbers and not as expressions. What it does not know
// (texts, the task, addresses that are computed) is oracle.ErrNotRead, and counts as unchecked.

// conditionsOf returns a site's conditions as arguments: whether each holds. Their DefinitionArg is less
// than 0.
func conditionsOf(s *plan.Site) (out []plan.Argument) {
	for i := range s.If {
		v := s.If[i].Variable
		a := plan.Argument{DefinitionArg: -1 - i, Variable: v}
		a.Arg = prologue.Arg{Name: s.If[i].Expr.String(), Loc: v.Loc, Reason: v.Reason, Size: 4, Signed: true}
		a.Unfetched = v.Reason
		out = append(out, a)
	}
	return out
}

// expression returns the expression of an argument if it computes something.
func expression(def *probe.Definition, a *plan.Argument) *syntax.Expr {
	if def == nil {
		return nil
	}
	if n := a.DefinitionArg; n < 0 {
		not := &syntax.Expr{Kind: syntax.KindUnary, Name: "!", A: def.Options.If.Conjuncts()[-1-n]}
		return &syntax.Expr{Kind: syntax.KindUnary, Name: "!", A: not}
	}
	e := &def.Args[a.DefinitionArg].Expr
	switch e.Kind {
	case syntax.KindUnary, syntax.KindBinary, syntax.KindCast:
		return e
	}
	return nil
}

// second evaluates expressions at a site with the second reader.
type second struct {
	s    *dwarfloc.Site
	site *oracle.Site
	m    *oracle.Machine
}

// value evaluates an expression to a number of 64 bits.
func (x second) value(e *syntax.Expr, size int, signed bool) (uint64, bool, error) {
	n, err := x.number(e)
	if errors.Is(err, oracle.ErrFault) {
		return 0, false, nil
	}
	return oracle.Extend(n.Value, size, signed), err == nil, err
}

func notRead(e *syntax.Expr) error { return fmt.Errorf("%w: %s", oracle.ErrNotRead, e) }

func (x second) number(e *syntax.Expr) (n oracle.Number, err error) {
	switch e.Kind {
	case syntax.KindVariable:
		return x.parameter(e)
	case syntax.KindNumber:
		v, hex := e.Number, strings.HasPrefix(e.Name, "0x")
		switch {
		case int64(v) == int64(int32(v)):
			return oracle.Number{Value: v, Size: 4, Signed: true}, nil
		case hex && v>>32 == 0:
			return oracle.Number{Value: v, Size: 4}, nil
		}
		return oracle.Number{Value: v, Size: 8, Signed: int64(v) >= 0}, nil
	case syntax.KindUnary:
		if len(e.Path) > 0 || e.Name == "*" || e.Name == "&" {
			return n, notRead(e)
		}
		if n, err = x.number(e.A); err != nil {
			return n, err
		}
		switch e.Name {
		case "!":
			return truth(n.Value == 0), nil
		case "-":
			n.Value = -n.Value
		default:
			n.Value = ^n.Value
		}
		if n.Pointer {
			return n, notRead(e)
		}
		n.Value = oracle.Extend(n.Value, n.Size, n.Signed)
		return n, nil
	case syntax.KindCast:
		size, known := castSizes[e.Type.Name]
		if !known || e.Type.Pointers > 0 || len(e.Path) > 0 {
			return n, notRead(e)
		}
		if n, err = x.number(e.A); err != nil {
			return n, err
		}
		signed := size < 0
		size = max(size, -size)
		return promote(oracle.Number{Value: oracle.Extend(n.Value, size, signed), Size: size, Signed: signed}), nil
	case syntax.KindBinary:
		return x.binary(e)
	}
	return n, notRead(e)
}

// castSizes are the types that are known here: their bytes, less than 0 for signed ones.
var castSizes = map[string]int{
	"unsigned char": 1, "signed char": -1, "short": -2, "unsigned short": 2, "int": -4, "unsigned int": 4, "long": -8, "unsigned long": 8,
	"u8": 1, "u16": 2, "u32": 4, "u64": 8, "s8": -1, "s16": -2, "s32": -4, "s64": -8,
}

func truth(yes bool) oracle.Number {
	if yes {
		return oracle.Number{Value: 1, Size: 4, Signed: true}
	}
	return oracle.Number{Size: 4, Signed: true}
}

// promote is C's integer promotion: ISO C11 6.3.1.1.
func promote(n oracle.Number) oracle.Number {
	if n.Size < 4 || n.Bits > 0 && n.Bits < 32 && n.Size == 4 {
		n.Size, n.Signed = 4, true
	}
	n.Bits = 0
	return n
}

// parameter reads a parameter and what a path leads to.
func (x second) parameter(e *syntax.Expr) (n oracle.Number, err error) {
	q := parameter(x.site, e.Name, -1)
	steps, known := stepsOf(e.Path)
	if q == nil || !known {
		return n, notRead(e)
	}
	if early, err := x.site.TooEarly(q); err != nil || early && !x.s.AfterPrologue {
		return n, errors.Join(err, errNoValue)
	}
	res := whole(q)
	switch q.Source {
	case oracle.Constant:
	case oracle.Expression:
		if res, err = x.m.Eval(q.Expr); err != nil {
			return n, err
		}
	default:
		return n, errNoValue
	}
	o, err := q.Follow(x.m, res, steps)
	if err != nil {
		return n, err
	}
	if n, err = o.Number(); err != nil {
		return n, err
	}
	return promote(n), nil
}

func (x second) binary(e *syntax.Expr) (n oracle.Number, err error) {
	a, err := x.number(e.A)
	if err != nil {
		return n, err
	}
	switch {
	case e.Name == "&&" && a.Value == 0:
		return truth(false), nil
	case e.Name == "||" && a.Value != 0:
		return truth(true), nil
	}
	b, err := x.number(e.B)
	if err != nil {
		return n, err
	}
	if e.Name == "&&" || e.Name == "||" {
		return truth(b.Value != 0), nil
	}
	shift := e.Name == "<<" || e.Name == ">>"
	n = oracle.Number{Size: a.Size, Signed: a.Signed}
	if !shift {
		switch {
		case b.Size > a.Size:
			n.Size, n.Signed = b.Size, b.Signed
		case b.Size == a.Size:
			n.Signed = a.Signed && b.Signed
		}
		a.Value, b.Value = oracle.Extend(a.Value, n.Size, n.Signed), oracle.Extend(b.Value, n.Size, n.Signed)
	}
	if compared, is := compare(e.Name, a.Value, b.Value, n.Signed); is {
		return truth(compared), nil
	}
	if a.Pointer || b.Pointer {
		return n, notRead(e)
	}
	u, v := a.Value, b.Value
	switch e.Name {
	case "+":
		u += v
	case "-":
		u -= v
	case "*":
		u *= v
	case "&":
		u &= v
	case "|":
		u |= v
	case "^":
		u ^= v
	case "<<":
		u <<= v
	case ">>":
		if n.Signed {
			u = uint64(int64(u) >> v)
		} else {
			u >>= v
		}
	case "/", "%":
		if v == 0 {
			return n, oracle.ErrFault
		}
		switch {
		case n.Signed && e.Name == "/":
			u = uint64(int64(u) / int64(v))
		case n.Signed:
			u = uint64(int64(u) % int64(v))
		case e.Name == "/":
			u /= v
		default:
			u %= v
		}
	default:
		return n, notRead(e)
	}
	n.Value = oracle.Extend(u, n.Size, n.Signed)
	return n, nil
}

// compare compares two numbers. is is false for an operator that is no comparison.
func compare(op string, a, b uint64, signed bool) (yes, is bool) {
	less := a < b
	if signed {
		less = int64(a) < int64(b)
	}
	switch op {
	case "==":
		return a == b, true
	case "!=":
		return a != b, true
	case "<":
		return less, true
	case "<=":
		return less || a == b, true
	case ">":
		return !less && a != b, true
	case ">=":
		return !less, true
	}
	return false, false
}
