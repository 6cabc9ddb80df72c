package dwarfloc

import (
	"bytes"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/loc"
)

// A body such as "while (n--)" assigns its parameter before its first instruction. With
// views, a list has an entry for the argument and one for the assigned value, both at the
// address where the body begins. Without views, compilers leave out the first, which covers
// no code. What is left is n-1, and looks like any other location, even like a plain
// register.
//
// So it matters whether a function assigns its parameter at all. The lists of its instances
// show it in most cases: there is a constant and also something else, or a value that is
// computed ("%rax - 1"), since compilers describe what an assignment they removed would have
// given. A value that the caller computes looks the same; then a right location is lost.
//
// At a function's first instruction the calling convention knows better.

// reassigned reports whether a parameter's location where a body begins may be the one of a
// value that the body assigns.
func (s *Site) reassigned(v *Variable, x *varEntry, c *chosen) (bool, error) {
	if !v.Located() || c.viewed || c.expr == nil || c.rule == loc.RuleFirst || !s.takesFirst(x) {
		return false, nil
	}
	if x.location.IsBlock() {
		sign := s.u.signOf(c.expr)
		return !x.u.gnu() && (sign.computes || sign.computed), nil
	}
	if c.lo == s.Addr && v.Loc.Kind == loc.KindMemory && v.Loc.Expr.Op == loc.OpAddr {
		return true, nil // a global variable, which the body may have assigned to it
	}
	assigned, err := s.u.assignedParams()
	return assigned[x.root], err
}

// assignedParams returns the parameters, by the offsets of the entries that declare them,
// that the unit's functions assign, as far as lists without views show it.
func (u *unit) assignedParams() (map[uint64]bool, error) {
	u.assignedOnce.Do(func() { u.assigned, u.assignedErr = u.readAssigned() })
	return u.assigned, u.assignedErr
}

func (u *unit) readAssigned() (map[uint64]bool, error) {
	assigned := make(map[uint64]bool)
	roots := make(map[uint64]uint64)
	for i := range u.Recs {
		if u.Recs[i].Flags&index.HasPC == 0 {
			continue
		}
		e, err := u.Entry(u.Off + uint64(u.Recs[i].Off))
		if err != nil {
			return nil, err
		}
		err = e.Children(func(c dw.Entry) (bool, error) {
			if c.Tag() != dw.TagFormalParameter {
				return true, nil
			}
			x, err := u.readVar(c)
			if err != nil || x.location.Form == 0 || x.location.IsBlock() || x.views.Form != 0 {
				return true, err
			}
			// Damage in a list is told where its parameter is asked for.
			if is, err := u.listAssigns(&x); !is || err != nil {
				return true, nil
			}
			if root, err := x.declaredAt(roots); err == nil {
				assigned[root] = true
			}
			return true, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return assigned, nil
}

// declaredAt returns the offset of the last of a variable's origins, or of the entry itself.
func (x *varEntry) declaredAt(known map[uint64]uint64) (uint64, error) {
	if x.origin.Form == 0 {
		return x.off, nil
	}
	_, off, err := x.u.Ref(x.origin)
	if err != nil {
		return 0, err
	}
	if root, ok := known[off]; ok {
		return root, nil
	}
	all, err := x.originOffsets()
	if err != nil {
		return 0, err
	}
	known[off] = all[len(all)-1]
	return known[off], nil
}

// listAssigns reports whether a list without views shows that its variable changes.
func (u *unit) listAssigns(x *varEntry) (bool, error) {
	var first []byte
	var all sign
	several := false
	l := u.Locations(x.location, dw.Value{})
	for e := (dw.LocEntry{}); l.Next(&e); {
		switch {
		case e.Viewed:
			return false, nil
		case e.Default || len(e.Expr) == 0:
			continue
		case first == nil:
			first = e.Expr
		}
		several = several || !bytes.Equal(first, e.Expr)
		is := u.signOf(e.Expr)
		all.constant = all.constant || is.constant
		all.computes = all.computes || is.computes
		all.computed = all.computed || is.computed
	}
	if u.gnu() {
		return several && (all.constant || all.computes), l.Err
	}
	return several && all.constant || all.computes || all.computed, l.Err
}

// sign is what an expression shows about its variable.
type sign struct {
	constant bool // its value is a constant, or the address of something in the image
	computed bool // and that is computed: LLVM turns "n is 3" into "n is 3 - 1" when it removes the subtraction; where 2 was passed, it writes 2
	computes bool // its value is computed from registers or memory
}

func (u *unit) signOf(expr []byte) sign {
	enc := u.encoding()
	constants, others, computes, value := 0, 0, false, false
	for at := 0; at < len(expr); {
		o, err := eval.Decode(expr, at, enc)
		if err != nil {
			return sign{}
		}
		at = o.Next
		switch c := op.Opcode(o.Code); {
		case o.IsConstant(), o.IsImplicitValue(), o.IsAddress():
			constants++
			value = value || o.IsImplicitValue()
		case c == op.DW_OP_stack_value:
			value = true
		case c == op.DW_OP_and, o.IsConversion():
			// a mask, or a conversion
		case c >= op.DW_OP_abs && c <= op.DW_OP_plus_uconst:
			computes = true
		case c >= op.DW_OP_breg0 && c <= op.DW_OP_breg31 && o.A != 0 && uint64(c-op.DW_OP_breg0) != uint64(u.img.Arch().SP):
			computes = true
			others++
		default:
			others++
		}
	}
	constant := value && constants > 0 && others == 0
	return sign{constant: constant, computed: constant && computes, computes: value && computes && !constant}
}
