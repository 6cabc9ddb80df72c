package dwarfloc

import (
	"github.com/go-delve/delve/pkg/dwarf/op"
)

// operation runs one operation of the stack machine that does not end a location.
func (m *machine) operation(code uint8) *stop {
	ev, b := m.ev, &m.b
	if _, ok := binaryOps[code]; ok {
		return m.binary(code)
	}
	switch c := op.Opcode(code); {
	case c >= op.DW_OP_lit0 && c <= op.DW_OP_lit31:
		m.push(ev.constant(uint64(c-op.DW_OP_lit0)), nil)
		return nil
	case c >= op.DW_OP_breg0 && c <= op.DW_OP_breg31:
		return m.breg(uint64(c - op.DW_OP_breg0))
	}
	switch op.Opcode(code) {
	case op.DW_OP_addr:
		m.push(ev.node(Expr{Op: OpAddr, K: b.uint(int(ev.u.addrSize))}), nil)
	case opAddrx, opGNUAddrIndex, opConstx, opGNUConstIndex:
		a, err := ev.u.addrx(b.uleb())
		if err != nil {
			return &stop{err: err}
		}
		o := OpAddr
		if code == opConstx || code == opGNUConstIndex {
			o = OpConst
		}
		m.push(ev.node(Expr{Op: o, K: a}), nil)
	case op.DW_OP_const1u:
		m.push(ev.constant(uint64(b.u8())), nil)
	case op.DW_OP_const1s:
		m.push(ev.constant(uint64(b.sint(1))), nil)
	case op.DW_OP_const2u:
		m.push(ev.constant(uint64(b.u16())), nil)
	case op.DW_OP_const2s:
		m.push(ev.constant(uint64(b.sint(2))), nil)
	case op.DW_OP_const4u:
		m.push(ev.constant(uint64(b.u32())), nil)
	case op.DW_OP_const4s:
		m.push(ev.constant(uint64(b.sint(4))), nil)
	case op.DW_OP_const8u, op.DW_OP_const8s:
		m.push(ev.constant(b.u64()), nil)
	case op.DW_OP_constu:
		m.push(ev.constant(b.uleb()), nil)
	case op.DW_OP_consts:
		m.push(ev.constant(uint64(b.sleb())), nil)
	case op.DW_OP_bregx:
		return m.breg(b.uleb())
	case op.DW_OP_fbreg:
		off := b.sleb()
		fb, st := ev.frameBase()
		if st != nil {
			return st
		}
		m.push(ev.binary(OpAdd, fb, ev.constant(uint64(off))), nil)
	case op.DW_OP_call_frame_cfa:
		cfa, st := ev.cfa()
		if st != nil {
			return st
		}
		m.push(cfa, nil)
	case op.DW_OP_dup:
		return m.pick(0)
	case op.DW_OP_over:
		return m.pick(1)
	case op.DW_OP_pick:
		return m.pick(int(b.u8()))
	case op.DW_OP_drop:
		_, st := m.pop()
		return st
	case op.DW_OP_swap:
		n := len(m.stack)
		if n < 2 {
			return m.damaged("the stack is empty")
		}
		m.stack[n-1], m.stack[n-2] = m.stack[n-2], m.stack[n-1]
	case op.DW_OP_rot:
		n := len(m.stack)
		if n < 3 {
			return m.damaged("the stack is empty")
		}
		m.stack[n-1], m.stack[n-2], m.stack[n-3] = m.stack[n-2], m.stack[n-3], m.stack[n-1]
	case op.DW_OP_deref:
		return m.deref(int(ev.u.addrSize), nil)
	case op.DW_OP_deref_size:
		return m.deref(int(b.u8()), nil)
	case opDerefType, opGNUDerefType:
		size := int(b.u8())
		t, st := ev.baseType(b.uleb())
		if st != nil {
			return st
		}
		return m.deref(size, t)
	case op.DW_OP_neg:
		return m.unary(OpNeg)
	case op.DW_OP_not:
		return m.unary(OpNot)
	case op.DW_OP_abs:
		v, st := m.pop()
		if st != nil {
			return st
		}
		if v.typ != nil && !v.typ.signed {
			m.push(v.e, v.typ)
			return nil
		}
		neg := ev.node(Expr{Op: OpNeg, A: v.e})
		isNeg := ev.binary(OpLt, v.e, ev.constant(0))
		m.push(ev.wrap(ev.node(Expr{Op: OpSelect, A: isNeg, B: neg, C: v.e}), v.typ), v.typ)
	case op.DW_OP_plus_uconst:
		k := b.uleb()
		v, st := m.pop()
		if st != nil {
			return st
		}
		m.push(ev.wrap(ev.binary(OpAdd, v.e, ev.constant(k)), v.typ), v.typ)
	case op.DW_OP_nop, opGNUUninit:
	case opEntryValue, opGNUEntryValue:
		return m.entryValue(b.bytes(b.uleb()))
	case opGNUParameterRef:
		return &stop{reason: Reason{Code: ParameterRef}}
	case op.DW_OP_form_tls_address, opGNUPushTLS:
		return &stop{reason: Reason{Code: ThreadLocal}}
	case opConstType, opGNUConstType:
		t, st := ev.baseType(b.uleb())
		if st != nil {
			return st
		}
		v := b.bytes(uint64(b.u8()))
		if t == nil || len(v) != t.size {
			return m.damaged("a typed constant whose size is not its type's")
		}
		m.push(ev.extend(ev.constant(bytesUint(v, b.be)), t.size, t.signed), t)
	case opRegvalType, opGNURegvalType:
		n := b.uleb()
		t, st := ev.baseType(b.uleb())
		if st != nil {
			return st
		}
		if st := ev.checkRegister(n); st != nil {
			return st
		}
		m.push(ev.wrap(ev.register(n, 0), t), t)
	case opConvert, opGNUConvert:
		t, st := ev.baseType(b.uleb())
		if st != nil {
			return st
		}
		v, st := m.pop()
		if st != nil {
			return st
		}
		// The value is extended as its old type says, which it already is, and then
		// cut to the new one.
		m.push(ev.wrap(v.e, t), t)
	case opReinterpret, opGNUReinterpret:
		t, st := ev.baseType(b.uleb())
		if st != nil {
			return st
		}
		v, st := m.pop()
		if st != nil {
			return st
		}
		if sizeOf(t) != sizeOf(v.typ) {
			return m.damaged("DW_OP_reinterpret between types of different sizes")
		}
		e := v.e
		if t == nil && v.typ != nil {
			e = ev.extend(e, v.typ.size, false)
		}
		m.push(ev.wrap(e, t), t)
	default:
		return unsupported("%s", opName(code))
	}
	return nil
}

func sizeOf(t *baseType) int {
	if t == nil {
		return 8
	}
	return t.size
}

func (m *machine) breg(n uint64) *stop {
	off := m.b.sleb()
	if st := m.ev.checkRegister(n); st != nil {
		return st
	}
	m.push(m.ev.register(n, off), nil)
	return nil
}

func (m *machine) deref(size int, t *baseType) *stop {
	v, st := m.pop()
	if st != nil {
		return st
	}
	switch size {
	case 1, 2, 4, 8:
	default:
		return unsupported("a memory read of %d bytes", size)
	}
	if t != nil && t.size != size {
		return m.damaged("DW_OP_deref_type with a size that is not its type's")
	}
	e := m.ev.node(Expr{Op: OpDeref, Size: uint8(size), A: v.e})
	m.push(m.ev.wrap(e, t), t)
	return nil
}

// entryValue pushes the value that an expression had on entry to the function.
// At that entry itself the registers still hold it.
func (m *machine) entryValue(expr []byte) *stop {
	if m.b.bad {
		return m.damaged("the block of an entry value is cut short")
	}
	at, st := m.ev.atEntry()
	if st != nil {
		return st
	}
	if !at {
		return &stop{reason: Reason{Code: EntryValueOnly}}
	}
	if len(expr) == 0 {
		return m.damaged("an empty entry value")
	}
	loc, st := m.ev.nested(expr, m.sec, m.off)
	if st != nil {
		return st
	}
	switch loc.Kind {
	case KindRegister, KindMemory, KindValue, KindConstant:
		// As with a frame base, a register stands for its contents and a bare
		// expression for its value (DWARF 5 section 2.5.1.7).
		m.push(loc.Expr, nil)
		return nil
	}
	return unsupported("an entry value that is %v", loc.Kind)
}
