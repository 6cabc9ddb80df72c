package compute

import (
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// What expressions do with addresses and types: *A, &A, casts, container_of, and where the function was
// called.

// pointee resolves *A.
func (c *computation) pointee(e *syntax.Expr) (*dwarfloc.Variable, error) {
	v, err := c.resolve(e.A)
	if err != nil {
		return nil, err
	}
	out, err := follow(c.s, v, []syntax.Step{{Kind: syntax.StepIndex, Pos: e.Pos}})
	if err == nil && out.Wrong != nil {
		wrong := Wrong(out)
		wrong.Expr = e
		return nil, wrong
	}
	return out, err
}

// address resolves &A.
func (c *computation) address(e *syntax.Expr) (*dwarfloc.Variable, error) {
	v, err := c.resolve(e.A)
	if err != nil {
		return nil, err
	}
	if v.Bits != 0 {
		return nil, wrongAt(e, "a bit-field has no address")
	}
	n := number{size: c.s.Image.Arch().WordSize, to: v.Type, reason: v.Reason}
	switch {
	case n.reason.Code != reasons.None:
	case v.Loc.Kind == loc.KindMemory:
		n.e = v.Loc.Expr
	default:
		n.reason = unsupported("the address of what is not in memory")
	}
	return c.value(e, &n), nil
}

// cast resolves (TYPE)A. As in C, what is cast is A with its path; but where A has no members at all,
// as a void * or a number, it is A, and the path is that of the result.
func (c *computation) cast(e *syntax.Expr) (*dwarfloc.Variable, error) {
	t, err := typeNamed(c.s, &e.Type)
	if err != nil {
		return nil, err
	}
	a, path := e.A, []syntax.Step(nil)
	if len(a.Path) > 0 {
		bare := *a
		bare.Path = nil
		v, err := root(c.s, &bare)
		if err != nil {
			return nil, err
		}
		if !reasons.Mistaken(v.Reason.Code) {
			if none, err := hasNoParts(v.Type); err != nil {
				return nil, err
			} else if none {
				a, path = &bare, e.A.Path
			}
		}
	}
	v, err := c.castTo(e, a, t)
	if err != nil || len(path) == 0 {
		return v, err
	}
	out, err := follow(c.s, v, path)
	if wrong := Wrong(out); err == nil && wrong != nil && wrong.Expr == nil {
		wrong.Expr = e.A
		return nil, wrong
	}
	return out, err
}

// hasNoParts reports whether a type is a number or the address of something unknown.
func hasNoParts(t *types.Type) (bool, error) {
	r, err := t.Resolve()
	if err != nil {
		return false, err
	}
	switch r.Kind {
	case types.Int, types.Char, types.Bool, types.Enum:
		return true, nil
	case types.Pointer:
		el, err := r.Elem()
		if err != nil {
			return false, err
		}
		el, err = el.Resolve()
		return err == nil && el.Kind == types.Void, err
	}
	return false, nil
}

func (c *computation) castTo(e, a *syntax.Expr, t *types.Type) (*dwarfloc.Variable, error) {
	r, err := t.Resolve()
	if err != nil {
		return nil, err
	}
	switch r.Kind {
	case types.Int, types.Char, types.Bool, types.Enum, types.Pointer:
	case types.Struct, types.Union, types.Class:
		// Memory that has no type of its own can have any.
		v, err := c.resolve(a)
		if err != nil {
			return nil, err
		}
		if v.Role == dwarfloc.RoleGiven && v.Loc.Kind == loc.KindMemory && v.Type == types.WordType {
			return c.variable(e, t, v.Loc, v.Reason), nil
		}
		return nil, wrongAt(e, "%v cannot be cast to %v", v.Type, t)
	default:
		return nil, wrongAt(e, "nothing is cast to %v: it is no number and no pointer", t)
	}
	if r.Kind == types.Pointer && a.Kind != syntax.KindNumber {
		// A pointer that was optimized away still has its object.
		v, err := c.resolve(a)
		if err != nil {
			return nil, err
		}
		if v.Loc.Kind == loc.KindImplicitPointer {
			out := *v
			out.Type = t
			return &out, nil
		}
	}
	n, err := c.number(a)
	if err != nil {
		return nil, err
	}
	if n.reason.Code != reasons.None {
		return c.variable(e, t, loc.Location{}, n.reason), nil
	}
	size := int(r.Size)
	if size <= 0 || size > 8 {
		return nil, wrongAt(e, "nothing is cast to %v: it has %d bytes", t, r.Size)
	}
	x := c.ev.Extend(n.e, size, r.Signed)
	if r.Kind == types.Bool {
		x = c.truth(&n)
	}
	return c.variable(e, t, c.ev.Value(x), loc.Reason{}), nil
}

// containerOf resolves container_of(A, TYPE, MEMBER).
func (c *computation) containerOf(e *syntax.Expr) (*dwarfloc.Variable, error) {
	t, err := typeNamed(c.s, &e.Type)
	if err != nil {
		return nil, err
	}
	n, err := c.number(e.A)
	if err != nil {
		return nil, err
	}
	if n.to == nil && n.size < c.s.Image.Arch().WordSize {
		return nil, wrongAt(e.A, "%s is no pointer", e.A)
	}
	at := &dwarfloc.Variable{Name: e.Type.Name, Type: t, Loc: loc.Location{Kind: loc.KindMemory, Expr: c.ev.Const(0)}}
	m, err := follow(c.s, at, e.Member)
	if err != nil {
		return nil, err
	}
	if m.Wrong != nil {
		wrong := Wrong(m)
		wrong.Expr = &syntax.Expr{Path: e.Member}
		return nil, wrong
	}
	if m.Bits != 0 || m.Loc.Kind != loc.KindMemory || m.Loc.Expr.Op != ops.Const {
		return nil, wrongAt(e, "%s is no part of %v with a fixed place", m.Name, t)
	}
	if n.reason.Code == reasons.None {
		n.e = c.ev.Binary(ops.Sub, n.e, m.Loc.Expr)
	}
	n.to, n.size, n.signed = t, c.s.Image.Arch().WordSize, false
	return c.value(e, &n), nil
}
