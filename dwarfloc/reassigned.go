package dwarfloc

import (
	"bytes"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/loc"
)

// A body such as "while (n--)" assigns its parameter before its first instruction. With
// views, a list has an entry for the argument and one for the assigned value, both at the
// address where the body begins. Without views, compilers leave out the first, which covers
// no code. What is left is n-1, and looks like any other location. Three signs remain:
//
//   - a constant that is computed: LLVM turns "n is 3" into "n is 3 - 1" when it removes
//     the subtraction; where 3-1 was passed, it writes 2
//   - a constant at the start of a list that goes on with something else
//   - from LLVM, a computed value: where the caller computes an argument, it mostly does so
//     into a register
//
// At a function's first instruction the calling convention knows better.

// reassigned reports whether a parameter's location where a body begins may be the one of a
// value that the body assigns.
func (s *Site) reassigned(v *Variable, x *varEntry, c *chosen) (bool, error) {
	if !v.Located() || c.viewed || c.rule == loc.RuleFirst || !s.takesFirst(x) || c.expr == nil {
		return false, nil
	}
	listed := !x.location.IsBlock()
	if listed && c.lo != s.Addr {
		return false, nil
	}
	gnu := x.u.rowsOfCalls()
	switch v.Loc.Kind {
	case loc.KindConstant:
		if !gnu && computed(c.expr, x.u.encoding()) {
			return true, nil
		}
	case loc.KindValue:
		return !gnu && s.computes(&v.Loc), nil
	default:
		return false, nil
	}
	if !listed {
		return false, nil
	}
	l := x.u.Locations(x.location, dw.Value{})
	for e := (dw.LocEntry{}); l.Next(&e); {
		if !e.Default && !bytes.Equal(e.Expr, c.expr) {
			return true, nil
		}
	}
	return false, l.Err
}

// computed reports whether an expression does arithmetic.
func computed(expr []byte, enc eval.Encoding) bool {
	for at := 0; at < len(expr); {
		o, err := eval.Decode(expr, at, enc)
		if err != nil {
			return false
		}
		if c := op.Opcode(o.Code); c >= op.DW_OP_abs && c <= op.DW_OP_plus_uconst && c != op.DW_OP_and {
			return true
		}
		at = o.Next
	}
	return false
}

// computes reports whether a value is more than a register, an address, what memory holds,
// or a part of these.
func (s *Site) computes(l *loc.Location) bool {
	e := unextended(l.Expr)
	if e.Op == loc.OpAnd && e.B.Op == loc.OpConst {
		e = unextended(e.A)
	}
	switch e.Op {
	case loc.OpReg, loc.OpAddr, loc.OpDeref:
		return false
	case loc.OpAdd:
		return !(e.A.Op == loc.OpReg && e.A.K == uint64(s.u.img.Arch().SP))
	}
	return true
}
