package dwarfloc

import (
	"bytes"
	"slices"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/judge"
)

// assignedParams returns the parameters, by the offsets of the entries that declare them,
// that the unit's functions may assign, as far as lists without views show it.
func (u *unit) assignedParams() (map[uint64]judge.Assignment, error) {
	u.assignedOnce.Do(func() { u.assigned, u.assignedErr = u.readAssigned() })
	return u.assigned, u.assignedErr
}

func (u *unit) readAssigned() (map[uint64]judge.Assignment, error) {
	assigned := make(map[uint64]judge.Assignment)
	roots := make(map[uint64]uint64)
	for i := range u.Recs {
		if u.Recs[i].Flags&index.HasPC == 0 {
			continue
		}
		e, err := u.Entry(u.Off + uint64(u.Recs[i].Off))
		if err != nil {
			return nil, err
		}
		err = u.img.eachParam(e, func(x *varEntry) (bool, error) {
			if x.location.Form == 0 || x.location.IsBlock() || x.views.Form != 0 {
				return true, nil
			}
			// Damage in a list is told where its parameter is asked for.
			how, err := u.listAssigns(e, x)
			if how == judge.Never || err != nil {
				return true, nil
			}
			if root, err := x.ultimate(roots); err == nil {
				assigned[root] = max(assigned[root], how)
			}
			return true, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return assigned, nil
}

// listAssigns returns what the list, without views, of a parameter of a body shows.
func (u *unit) listAssigns(body dw.Entry, x *varEntry) (judge.Assignment, error) {
	var last []byte
	var changes []uint64
	var all sign
	l := u.Locations(x.location, dw.Value{})
	for e := (dw.LocEntry{}); l.Next(&e); {
		switch {
		case e.Viewed:
			return judge.Never, nil
		case e.Default || len(e.Expr) == 0:
			continue
		case last != nil && !bytes.Equal(last, e.Expr):
			changes = append(changes, e.Lo)
		}
		last = e.Expr
		is := u.signOf(e.Expr)
		all.constant = all.constant || is.constant
		all.computes = all.computes || is.computes
		all.computed = all.computed || is.computed
	}
	several := len(changes) > 0
	shown := several && all.constant || all.computes || all.computed
	if u.code.GNU() {
		shown = several && (all.constant || all.computes)
	}
	if !shown || l.Err != nil {
		return judge.Never, l.Err
	}
	var pcs dw.PCs
	if err := body.Attrs(pcs.Take); err != nil {
		return judge.Never, err
	}
	ranges, err := u.Extent(&pcs)
	if err != nil {
		return judge.Never, err
	}
	inside := func(addr uint64) bool {
		return slices.ContainsFunc(ranges, func(r dw.Range) bool { return r.Lo < addr && addr < r.Hi })
	}
	if slices.ContainsFunc(changes, inside) {
		return judge.Inside, nil
	}
	return judge.Between, nil
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
		case c >= op.DW_OP_abs && c <= op.DW_OP_plus_uconst, c == op.DW_OP_xor:
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
