package eval

import (
	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
)

// run runs an operation that does not end a location.
func (m *machine) run(o *Operation) *stop {
	ev := m.ev
	if b := &binaryOps[o.Code]; b.known {
		return m.binary(o.Code, b)
	}
	switch c := op.Opcode(o.Code); {
	case c >= op.DW_OP_lit0 && c <= op.DW_OP_lit31:
		m.push(ev.Const(uint64(c-op.DW_OP_lit0)), nil)
		return nil
	case c >= op.DW_OP_breg0 && c <= op.DW_OP_breg31:
		return m.offset(uint64(c-op.DW_OP_breg0), o.A)
	}
	switch op.Opcode(o.Code) {
	case op.DW_OP_addr:
		m.push(ev.Addr(o.A), nil)
	case opAddrx, opGNUAddrIndex, opConstx, opGNUConstIndex:
		a, err := ev.Context.Address(o.A)
		if err != nil {
			return &stop{err: err}
		}
		e := ev.Addr(a)
		if o.Code == opConstx || o.Code == opGNUConstIndex {
			e = ev.Const(a)
		}
		m.push(e, nil)
	case op.DW_OP_const1u, op.DW_OP_const1s, op.DW_OP_const2u, op.DW_OP_const2s, op.DW_OP_const4u, op.DW_OP_const4s,
		op.DW_OP_const8u, op.DW_OP_const8s, op.DW_OP_constu, op.DW_OP_consts:
		m.push(ev.Const(o.A), nil)
	case op.DW_OP_bregx:
		return m.offset(o.A, o.B)
	case op.DW_OP_fbreg:
		base, r, err := ev.Context.FrameBase()
		if st := stopFor(r, err); st != nil {
			return st
		}
		m.push(ev.Binary(ops.Add, base, ev.Const(o.A)), nil)
	case op.DW_OP_call_frame_cfa:
		cfa, r, err := ev.Context.CallFrame()
		if st := stopFor(r, err); st != nil {
			return st
		}
		m.push(cfa, nil)
	case op.DW_OP_dup:
		return m.pick(0)
	case op.DW_OP_over:
		return m.pick(1)
	case op.DW_OP_pick:
		return m.pick(o.A)
	case op.DW_OP_drop:
		_, st := m.pop()
		return st
	case op.DW_OP_swap:
		n := len(m.stack)
		if n < 2 {
			return invalid("the stack is empty")
		}
		m.stack[n-1], m.stack[n-2] = m.stack[n-2], m.stack[n-1]
	case op.DW_OP_rot:
		n := len(m.stack)
		if n < 3 {
			return invalid("the stack is empty")
		}
		m.stack[n-1], m.stack[n-2], m.stack[n-3] = m.stack[n-2], m.stack[n-3], m.stack[n-1]
	case op.DW_OP_deref:
		return m.deref(uint64(ev.Encoding.AddressSize), nil)
	case op.DW_OP_deref_size:
		return m.deref(o.A, nil)
	case opDerefType, opGNUDerefType:
		t, st := m.baseType(o.B)
		if st != nil {
			return st
		}
		return m.deref(o.A, t)
	case op.DW_OP_neg:
		return m.unary(ops.Neg)
	case op.DW_OP_not:
		return m.unary(ops.Not)
	case op.DW_OP_abs:
		v, st := m.pop()
		if st != nil {
			return st
		}
		if v.typ != nil && !v.typ.Signed {
			m.push(v.e, v.typ)
			return nil
		}
		isNeg := ev.Binary(ops.Lt, ev.signed(v), ev.Const(0))
		m.push(ev.wrap(ev.Select(isNeg, ev.Unary(ops.Neg, v.e), v.e), v.typ), v.typ)
	case op.DW_OP_plus_uconst:
		v, st := m.pop()
		if st != nil {
			return st
		}
		m.push(ev.wrap(ev.Binary(ops.Add, v.e, ev.Const(o.A)), v.typ), v.typ)
	case op.DW_OP_nop, opGNUUninit:
	case OpEntryValue, OpGNUEntryValue:
		return m.entryValue(o.Block)
	case OpGNUParameterRef:
		e, r, err := ev.Context.ParameterRef(o.A)
		if st := stopFor(r, err); st != nil {
			return st
		}
		m.push(e, nil)
	case op.DW_OP_form_tls_address, opGNUPushTLS:
		return &stop{reason: loc.Reason{Code: reasons.ThreadLocal}}
	case opConstType, opGNUConstType:
		t, st := m.baseType(o.A)
		if st != nil {
			return st
		}
		if t == nil || len(o.Block) != t.Size {
			return invalid("a typed constant whose size is not its type's")
		}
		m.push(ev.Extend(ev.Const(bin.Uint(o.Block, ev.Encoding.BigEndian)), t.Size, t.Signed), t)
	case opRegvalType, opGNURegvalType:
		t, st := m.baseType(o.B)
		if st != nil {
			return st
		}
		if st := m.offset(o.A, 0); st != nil {
			return st
		}
		v, _ := m.pop()
		m.push(ev.wrap(v.e, t), t)
	case opConvert, opGNUConvert:
		t, st := m.baseType(o.A)
		if st != nil {
			return st
		}
		v, st := m.pop()
		if st != nil {
			return st
		}
		// The value is already extended by its old type, and only needs to be cut to the
		// new one. The generic type counts as signed here, as in GDB.
		m.push(ev.wrap(ev.signed(v), t), t)
	case opReinterpret, opGNUReinterpret:
		return m.reinterpret(o.A)
	default:
		return unsupported("%s", opName(o.Code))
	}
	return nil
}

func (m *machine) reinterpret(off uint64) *stop {
	t, st := m.baseType(off)
	if st != nil {
		return st
	}
	v, st := m.pop()
	if st != nil {
		return st
	}
	if m.sizeOf(t) != m.sizeOf(v.typ) {
		return invalid("DW_OP_reinterpret between types of different sizes")
	}
	e := v.e
	if t == nil && v.typ != nil {
		e = m.ev.extend(e, v.typ, false)
	}
	m.push(m.ev.wrap(e, t), t)
	return nil
}

func (m *machine) sizeOf(t *BaseType) int {
	if t == nil {
		return m.ev.Encoding.AddressSize
	}
	return t.Size
}

// baseType returns the base type that a typed operation names: nil for offset 0, the
// generic type.
func (m *machine) baseType(off uint64) (*BaseType, *stop) {
	if off == 0 {
		return nil, nil
	}
	t, r, err := m.ev.Context.BaseType(off)
	if st := stopFor(r, err); st != nil {
		return nil, st
	}
	return &t, nil
}

// offset pushes a register plus an offset.
func (m *machine) offset(n, off uint64) *stop {
	if r := CheckRegister(m.ev.Arch, n); r.Code != reasons.None {
		return &stop{reason: r}
	}
	if m.ev.Context != nil {
		base, r, err := m.ev.Context.Base(n)
		if st := stopFor(r, err); st != nil {
			return st
		}
		if base != nil {
			m.push(m.ev.Binary(ops.Add, base, m.ev.Const(off)), nil)
			return nil
		}
	}
	m.push(m.ev.Register(n, int64(off)), nil)
	return nil
}

func (m *machine) deref(size uint64, t *BaseType) *stop {
	v, st := m.pop()
	if st != nil {
		return st
	}
	switch {
	case size == 8 && t == nil && m.ev.narrow():
		return invalid("a memory read of more bytes than the generic type has")
	case size == 1, size == 2, size == 4, size == 8:
	default:
		return unsupported("a memory read of %d bytes", size)
	}
	if t != nil && uint64(t.Size) != size {
		return invalid("DW_OP_deref_type with a size that is not its type's")
	}
	m.push(m.ev.wrap(m.ev.Deref(v.e, int(size)), t), t)
	return nil
}

// entryValue pushes the value that an expression had on entry to the function. At the entry itself
// the registers still hold it; elsewhere only callers know it.
func (m *machine) entryValue(expr []byte) *stop {
	at, err := m.ev.Context.AtEntry()
	switch {
	case err != nil:
		return &stop{err: err}
	case len(expr) == 0:
		return invalid("an empty entry value")
	case !at:
		e, r, err := m.ev.Context.EntryValue(expr)
		if st := stopFor(r, err); st != nil {
			return st
		}
		m.push(e, nil)
		return nil
	}
	var l loc.Location
	r, err := m.ev.Evaluate(expr, &l)
	if st := stopFor(r, err); st != nil {
		return st
	}
	switch l.Kind {
	case loc.KindRegister, loc.KindMemory, loc.KindValue, loc.KindConstant:
		// As in a frame base, a register stands for its contents and a bare
		// expression for its value (DWARF 5 section 2.5.1.7).
		m.push(l.Expr, nil)
		return nil
	}
	return unsupported("an entry value that is %v", l.Kind)
}

// binaryOp says what an operation with two operands does: on values without a type, and
// on values with signed and unsigned types.
type binaryOp struct {
	known                     bool
	generic, signed, unsigned loc.Op
}

var binaryOps = [256]binaryOp{
	op.DW_OP_and:   {true, ops.And, ops.And, ops.And},
	op.DW_OP_or:    {true, ops.Or, ops.Or, ops.Or},
	op.DW_OP_xor:   {true, ops.Xor, ops.Xor, ops.Xor},
	op.DW_OP_plus:  {true, ops.Add, ops.Add, ops.Add},
	op.DW_OP_minus: {true, ops.Sub, ops.Sub, ops.Sub},
	op.DW_OP_mul:   {true, ops.Mul, ops.Mul, ops.Mul},
	op.DW_OP_div:   {true, ops.Div, ops.Div, ops.UDiv},
	op.DW_OP_mod:   {true, ops.UMod, ops.Mod, ops.UMod},
	op.DW_OP_shl:   {true, ops.Shl, ops.Shl, ops.Shl},
	op.DW_OP_shr:   {true, ops.Shr, ops.Shr, ops.Shr},
	op.DW_OP_shra:  {true, ops.Shra, ops.Shra, ops.Shra},
	op.DW_OP_eq:    {true, ops.Eq, ops.Eq, ops.Eq},
	op.DW_OP_ne:    {true, ops.Ne, ops.Ne, ops.Ne},
	op.DW_OP_lt:    {true, ops.Lt, ops.Lt, ops.ULt},
	op.DW_OP_le:    {true, ops.Le, ops.Le, ops.ULe},
	op.DW_OP_gt:    {true, ops.Gt, ops.Gt, ops.UGt},
	op.DW_OP_ge:    {true, ops.Ge, ops.Ge, ops.UGe},
}

// binary applies an operation with two operands.
func (m *machine) binary(code uint8, o *binaryOp) *stop {
	if len(m.stack) < 2 {
		return invalid("the stack is empty")
	}
	a, b := m.stack[len(m.stack)-2], m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-2]
	kind := o.generic
	t := a.typ
	shift := o.generic == ops.Shl || o.generic == ops.Shr || o.generic == ops.Shra
	if !shift && t == nil && b.typ != nil && (a.e.Op == ops.Const || b.typ.Size == m.ev.Encoding.AddressSize) {
		t = b.typ // see below
	}
	if t != nil {
		kind = o.unsigned
		if t.Signed {
			kind = o.signed
		}
	}
	ae, be := a.e, b.e
	if t == nil {
		ae, be = m.ev.operands(kind, a, b)
	} else if a.typ == nil {
		ae = m.ev.extend(ae, t, t.Signed)
	}
	if t != nil && b.typ != nil && !shift && t.Signed != b.typ.Signed {
		be = m.ev.extend(be, t, t.Signed)
	}
	if shift && b.typ == nil {
		be = m.ev.unsigned(b)
	}
	if t != nil && b.typ == nil && !shift {
		// DWARF requires operands with the same type, but beside a conversion LLVM writes
		// constant operands without one (DW_OP_convert; DW_OP_lit7; DW_OP_and, seen with
		// clang 14; the constant first with clang 19). They mean numbers with the converted type.
		// An integer type as wide as an address, and the generic type, have the same values (clang 16
		// mixes them), and LLVM's numbers have no sign of their own (clang 19 mixes types of one width).
		if be.Op != ops.Const && t.Size != m.ev.Encoding.AddressSize {
			return invalid("%s on operands of different types", opName(code))
		}
		be = m.ev.extend(be, t, t.Signed)
	} else if !shift && b.typ != nil && (t == nil || *t != *b.typ && (t.Size != b.typ.Size || o.signed != o.unsigned)) {
		return invalid("%s on operands of different types", opName(code))
	}
	// A logical shift of a signed value, or an arithmetic shift of an unsigned one,
	// must first extend the value the other way, from its type's width.
	switch {
	case kind == ops.Shr && t != nil && t.Signed:
		ae = m.ev.extend(ae, t, false)
	case kind == ops.Shra && t != nil && !t.Signed:
		ae = m.ev.extend(ae, t, true)
	}
	if shift && be.Op == ops.Const && int64(be.K) < 0 {
		// GCC 12 writes shifts by -36 for a bit-field of a structure that is passed by value.
		return &stop{reason: unavailable(reasons.Contradictory, "a shift by %d bits", int64(be.K))}
	}
	e := m.ev.Binary(kind, ae, be)
	if t == nil {
		e = m.ev.folded(e)
	}
	if kind >= ops.Eq {
		t = nil // comparisons return a generic value
	}
	m.push(m.ev.wrap(e, t), t)
	return nil
}

func (m *machine) unary(o loc.Op) *stop {
	v, st := m.pop()
	if st != nil {
		return st
	}
	m.push(m.ev.wrap(m.ev.Unary(o, v.e), v.typ), v.typ)
	return nil
}
