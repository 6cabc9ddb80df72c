package resolve

import (
	"bytes"
	"slices"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/arithmetic"
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/judge"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
)

// assigns is what a function's bodies in a unit show of one of its parameters.
type assigns struct {
	how judge.Assignment
	// registers is set if the code makes another number of it inside of a part of a body, and both are noted as registers: of what is computed, GCC may have undone what the code did.
	registers bool
	at        body.Place // of the statement that adds a number to it, in a body that does so in front of its first branch
}

// add adds what another body shows. Of several statements it keeps the first in the text.
func (a *assigns) add(o *assigns) {
	a.how, a.registers = max(a.how, o.how), a.registers || o.registers
	if o.at.Line != 0 && (a.at.Line == 0 || o.at.Line < a.at.Line) {
		a.at = o.at
	}
}

// assignedIn returns the parameters of a function, by the offsets of the entries that declare them, that its bodies in the unit assign, as
// far as lists without views show it.
func assignedIn(u *entries.Unit, function int32, ev *Evaluator) (map[uint64]assigns, error) {
	assigned := make(map[uint64]assigns)
	f := changes{u: u, ev: ev}
	for i := range u.Recs {
		if r := &u.Recs[i]; r.Root != function || r.Flags&index.HasPC == 0 {
			continue
		}
		e, err := u.Entry(u.Off + uint64(u.Recs[i].Off))
		if err != nil {
			return nil, err
		}
		f.rec = int32(i)
		err = u.Img.EachParam(e, func(x *entries.Var) (bool, error) {
			if x.Location.Form == 0 || x.Location.IsBlock() || x.Views.Form != 0 {
				return true, nil
			}
			// Damage in a list is reported where its parameter is asked for.
			in, err := f.list(e, x)
			if in.how == judge.Never || err != nil {
				return true, nil
			}
			if root, err := x.Ultimate(nil); err == nil {
				all := assigned[root]
				all.add(&in)
				assigned[root] = all
			}
			return true, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return assigned, nil
}

// changes looks at where the locations of parameters change inside the bodies of one function.
type changes struct {
	u    *entries.Unit
	ev   *Evaluator    // has the code
	rec  int32         // of the body
	spot *entries.Spot // of the body, once needed
	size uint8         // bits of the parameter
}

// list returns what the list, without views, of a parameter of a body shows. A change from one place to another shows an assignment if
// the code makes another value between, and shows none if it moves the value. Where the code does not say, what is computed there, or
// known, is a sign of one.
func (f *changes) list(e dw.Entry, x *entries.Var) (out assigns, err error) {
	u := f.u
	var last dw.LocEntry
	var different, moved, unknown []uint64
	added := uint64(0)
	var all sign
	f.size = 0
	l := u.Locations(x.Location, dw.Value{})
	for v := (dw.LocEntry{}); l.Next(&v); {
		if v.Viewed {
			return out, nil
		}
		if v.Default || len(v.Expr) == 0 {
			continue
		}
		is := signOf(u, v.Expr)
		if last.Expr != nil {
			again := bytes.Equal(last.Expr, v.Expr) // LLVM begins another entry where it has another note, if only of the same place
			same, differs, adds, err := f.compare(x, &last, &v)
			switch {
			case err != nil:
				return out, err
			case same:
				is = sign{}
			case differs && !is.constant:
				different = append(different, v.Lo)
				_, was := eval.RegisterOf(last.Expr)
				if _, in := eval.RegisterOf(v.Expr); was && in {
					moved = append(moved, v.Lo)
					if adds && added == 0 {
						added = v.Lo
					}
				}
			case !again:
				unknown = append(unknown, v.Lo)
			}
		}
		last = v
		all.constant = all.constant || is.constant
		all.computes = all.computes || is.computes
		all.computed = all.computed || is.computed
	}
	several := len(unknown) > 0
	shown := several && all.constant || all.computes || all.computed
	if u.Body.GNU() {
		shown = several && (all.constant || all.computes)
	}
	if l.Err != nil || !shown && len(different) == 0 {
		return out, l.Err
	}
	var pcs dw.PCs
	if err := e.Attrs(pcs.Take); err != nil {
		return out, err
	}
	ranges, err := u.Extent(&pcs)
	if err != nil {
		return out, err
	}
	if added != 0 && dw.Covers(ranges, added-1) {
		out.at = f.atOnce(added)
	}
	inside := func(addr uint64) bool {
		return slices.ContainsFunc(ranges, func(r dw.Range) bool { return r.Lo < addr && addr < r.Hi })
	}
	out.how, out.registers = judge.Between, slices.ContainsFunc(moved, inside)
	if slices.ContainsFunc(different, inside) || shown && slices.ContainsFunc(unknown, inside) {
		out.how = judge.Inside
	}
	return out, nil
}

// compare reports whether the code between two entries of a parameter's list moves the value from the place that one names to that of the
// other, or makes another value. Neither is set if the code does not say. adds is set if what is made is more or less by a number, however it is made.
func (f *changes) compare(x *entries.Var, was, is *dw.LocEntry) (same, differs, adds bool, err error) {
	if f.spot == nil || f.spot.Rec != f.rec {
		f.spot = new(entries.Spot)
		if ok, err := f.u.Read(f.rec, f.spot); err != nil || !ok {
			return false, false, false, err
		}
	}
	code, err := f.ev.instructionsOf(f.spot)
	if err != nil || code.Why != "" {
		return false, false, false, err
	}
	from, ok := code.Leading(is.Lo)
	if from = max(from, was.Lo); !ok || from >= was.Hi {
		return false, false, false, nil
	}
	if f.size == 0 {
		if f.size, err = bitsOf(x); err != nil || f.size == 0 {
			return false, false, false, nil //nolint:nilerr // the type is asked for elsewhere
		}
	}
	var before, after body.Number
	known := 0
	at := from
	code.Follow(from, is.Lo, func(s *body.State) {
		v, to := was, &before
		if known > 0 {
			v, to, at = is, &after, is.Lo
		}
		if n, ok := f.number(s, v, at); ok {
			*to = s.Low(n, f.size)
			known++
		}
		if known == 2 {
			same, differs = before == after, s.Differs(before, after, f.size)
			adds = s.Adds(before, after, f.size)
		}
	})
	return same, differs, adds, nil
}

// atOnce returns the statement of the instruction in front of an address, if straight code leads there from the body's beginning.
func (f *changes) atOnce(to uint64) body.Place {
	code, err := f.ev.instructionsOf(f.spot)
	if err != nil {
		return body.Place{}
	}
	from, ok := code.Leading(to)
	rows, err := f.u.Body.Rows()
	if !ok || err != nil || from > f.spot.Addr || f.spot.Addr >= to {
		return body.Place{}
	}
	r := dw.RowAt(rows, to-1)
	if r == nil {
		return body.Place{}
	}
	return body.Place{File: r.File, Line: r.Line}
}

// number returns what a parameter is on a path, by an entry of its list, at a link-time address.
func (f *changes) number(s *body.State, e *dw.LocEntry, addr uint64) (body.Number, bool) {
	at := *f.spot
	at.Addr, at.At = addr, entries.Place{Addr: addr}
	var l loc.Location
	r, err := At(&at).Locate(e.Expr, "", e.Off, &l)
	if err != nil || r.Code != reasons.None {
		return body.Number{}, false
	}
	switch l.Kind {
	case loc.KindRegister, loc.KindValue, loc.KindConstant:
		return numberOf(s, l.Expr)
	case loc.KindMemory:
		n, ok := numberOf(s, l.Expr)
		return s.Load(n, f.size), ok
	}
	return body.Number{}, false
}

// numberOf returns what an expression is on a path. ok is false if it is more than a sum.
func numberOf(s *body.State, e *loc.Expr) (n body.Number, ok bool) {
	switch e.Op {
	case ops.Reg:
		return s.Register(e.K)
	case ops.Const, ops.Addr:
		return s.Constant(e.K), true
	}
	if e.A == nil {
		return n, false
	}
	a, ok := numberOf(s, e.A)
	if !ok {
		return n, false
	}
	switch e.Op {
	case ops.Deref:
		return s.Load(a, 8*e.Size), true
	case ops.ZExt:
		return s.Low(a, 8*e.Size), true
	case ops.SExt:
		return s.Extended(a, 8*e.Size), true
	case ops.Neg:
		return s.Plus(s.Constant(0), a, ^uint64(0)), true
	}
	if e.B == nil {
		return n, false
	}
	b, ok := numberOf(s, e.B)
	constant := e.B.Op == ops.Const
	switch {
	case !ok:
	case e.Op == ops.Add:
		return s.Plus(a, b, 1), true
	case e.Op == ops.Sub:
		return s.Plus(a, b, ^uint64(0)), true
	case e.Op == ops.Mul && constant:
		return s.Plus(s.Constant(0), a, e.B.K), true
	case e.Op == ops.Shl && constant && e.B.K < 64:
		return s.Plus(s.Constant(0), a, 1<<e.B.K), true
	case e.Op == ops.And && constant && arithmetic.MaskBytes(e.B.K) > 0:
		return s.Low(a, uint8(8*arithmetic.MaskBytes(e.B.K))), true
	}
	return n, false
}

// bitsOf returns how many bits a variable of a scalar type has, or 0.
func bitsOf(x *entries.Var) (uint8, error) {
	if err := x.Complete(); err != nil {
		return 0, err
	}
	t, err := x.U.TypeOf(x.Type)
	if err != nil {
		return 0, err
	}
	n, err := t.ByteSize()
	if err != nil || n < 1 || n > 8 {
		return 0, err
	}
	return uint8(8 * n), nil
}

// sign is what an expression shows about its variable.
type sign struct {
	constant bool // its value is a constant, or the address of something in the image
	computed bool // and that is computed: LLVM turns "n is 3" into "n is 3 - 1" when it removes the subtraction; where 2 was passed, it writes 2
	computes bool // its value is computed from registers or memory
}

// computesNumber reports whether an operation makes another number of those on the stack, other than by a mask, or by shifts, two of which
// extend a number.
func computesNumber(c op.Opcode) bool {
	return c >= op.DW_OP_abs && c <= op.DW_OP_plus_uconst && c != op.DW_OP_and || c == op.DW_OP_xor
}

func signOf(u *entries.Unit, expr []byte) sign {
	enc := u.Encoding()
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
		case computesNumber(c):
			computes = true
		case c >= op.DW_OP_breg0 && c <= op.DW_OP_breg31 && o.A != 0 && uint64(c-op.DW_OP_breg0) != uint64(u.Img.Arch().SP):
			computes = true
			others++
		default:
			others++
		}
	}
	constant := value && constants > 0 && others == 0
	return sign{constant: constant, computed: constant && computes, computes: value && computes && !constant}
}
