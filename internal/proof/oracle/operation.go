package oracle

import (
	"cmp"
	"fmt"
)

// op runs one operation. Numbers are those of DWARF 5 section 7.7.1 and of GNU's
// operations before it.
func (r *run) op(op uint8) {
	switch {
	case op >= 0x30 && op <= 0x4f: // lit0..31
		r.number(uint64(op - 0x30))
		return
	case op >= 0x50 && op <= 0x6f: // reg0..31
		r.inRegister(uint64(op - 0x50))
		return
	case op >= 0x70 && op <= 0x8f: // breg0..31
		off := r.sleb()
		r.push(r.reg(uint64(op-0x70)) + uint64(off))
		return
	case op >= 0x1a && op <= 0x1e, op >= 0x21 && op <= 0x22, op >= 0x24 && op <= 0x27, op >= 0x29 && op <= 0x2e:
		r.binary(op)
		return
	}
	switch {
	case op == 0x15, op >= 0x17 && op <= 0x19, op == 0x23, op > 0x94 && op != 0x9f && op != 0x9c, op == 0x03:
		r.asWritten() // some of the stack's, types
	}
	switch op {
	case 0x03: // addr
		r.push(r.uint(r.address()) + r.Bias)
	case 0xa1, 0xfb: // addrx, GNU_addr_index
		r.push(r.indexed() + r.Bias)
	case 0xa2, 0xfc: // constx, GNU_const_index
		r.push(r.indexed())
	case 0x06: // deref
		r.load(r.address(), nil)
	case 0x94: // deref_size
		r.load(int(r.uint(1)), nil)
	case 0xa6, 0xf6: // deref_type
		n := int(r.uint(1))
		t := r.baseType()
		if t != nil && t.Size != n {
			fail(ErrBad, "deref_type of %d bytes of a type of %d", n, t.Size)
		}
		r.load(n, t)
	case 0x08: // const1u
		r.number(r.uint(1))
	case 0x09:
		r.number(uint64(r.sint(1)))
	case 0x0a:
		r.number(r.uint(2))
	case 0x0b:
		r.number(uint64(r.sint(2)))
	case 0x0c:
		r.number(r.uint(4))
	case 0x0d:
		r.number(uint64(r.sint(4)))
	case 0x0e, 0x0f: // const8u, const8s
		r.number(r.uint(8))
	case 0x10: // constu
		r.number(r.uleb())
	case 0x11: // consts
		r.number(uint64(r.sleb()))
	case 0x12: // dup
		r.stack = append(r.stack, r.peek(0))
	case 0x13: // drop
		r.drop()
	case 0x14: // over
		r.stack = append(r.stack, r.peek(1))
	case 0x15: // pick
		r.stack = append(r.stack, r.peek(int(r.uint(1))))
	case 0x16: // swap
		a, b := r.drop(), r.drop()
		r.stack = append(r.stack, a, b)
	case 0x17: // rot: the top becomes the third
		a, b, c := r.drop(), r.drop(), r.drop()
		r.stack = append(r.stack, a, c, b)
	case 0x19: // abs
		t := r.peek(0).t
		r.replace(t, func(v uint64) uint64 {
			if int64(Extend(v, r.width(t), true)) < 0 && (t == nil || t.Signed) {
				return -v
			}
			return v
		})
	case 0x1f: // neg
		r.replace(r.peek(0).t, func(v uint64) uint64 { return -v })
	case 0x20: // not
		r.replace(r.peek(0).t, func(v uint64) uint64 { return ^v })
	case 0x23: // plus_uconst
		k := r.uleb()
		r.replace(r.peek(0).t, func(v uint64) uint64 { return v + k })
	case 0x28, 0x2f: // bra, skip
		delta := uint64(r.sint(2))
		if op == 0x28 && r.popNumber() == 0 {
			return
		}
		if r.p += delta; r.p > uint64(len(r.d)) {
			fail(ErrBad, "a branch out of the expression")
		}
	case 0x90: // regx
		r.inRegister(r.uleb())
	case 0x91: // fbreg
		off := r.sleb()
		if len(r.FrameBase) == 0 {
			fail(ErrNoFrame, "the function has no frame base")
		}
		if r.NoFrame {
			fail(ErrFrameNotSet, "")
		}
		r.push(r.nested(r.FrameBase) + uint64(off))
	case 0x92: // bregx
		n := r.uleb()
		off := r.sleb()
		r.push(r.reg(n) + uint64(off))
	case 0x9b, 0xe0: // form_tls_address, GNU_push_tls_address
		fail(ErrThreadLocal, "operation %#x", op)
	case 0x9c: // call_frame_cfa
		if r.CFA == nil {
			fail(ErrNoFrame, "call frame address")
		}
		v, err := r.CFA()
		if err != nil {
			panic(stop{err})
		}
		r.push(v)
	case 0x9e: // implicit_value
		r.done = &Result{Kind: IsBytes, Bytes: r.bytes(r.uleb())}
	case 0x9f: // stack_value
		v := r.pop()
		r.done = &Result{Kind: IsValue, Value: v.v}
		if v.t == nil && !v.whole && r.address() < 8 {
			r.done.Value, r.done.Width = Extend(v.v, r.address(), false), r.address()
		}
	case 0xa0, 0xf2: // implicit_pointer
		r.done = &Result{Kind: IsImplicit, Target: r.uint(max(r.OffsetSize, 4)), TargetOffset: r.sleb()}
	case 0xa3, 0xf3: // entry_value
		expr := r.bytes(r.uleb())
		if !r.AtEntry {
			fail(ErrEntryValue, "")
		}
		r.push(r.nested(expr))
	case 0xfa: // GNU_parameter_ref
		fail(ErrParameterRef, "")
	case 0xa4, 0xf4: // const_type
		t := r.baseType()
		b := cursor{d: r.bytes(r.uint(1)), big: r.big}
		if t == nil || len(b.d) != t.Size {
			fail(ErrBad, "const_type of %d bytes", len(b.d))
		}
		r.pushTyped(b.uint(t.Size), t)
	case 0xa5, 0xf5: // regval_type
		n := r.uleb()
		t := r.baseType()
		r.pushTyped(r.reg(n), t)
	case 0xa8, 0xf7: // convert
		// The generic type has a sign here, as in GDB.
		t, of := r.baseType(), r.peek(0).t
		r.replace(t, func(v uint64) uint64 {
			if of == nil {
				return Extend(v, r.address(), true)
			}
			return v
		})
	case 0xa9, 0xf9: // reinterpret
		t := r.baseType()
		if of := r.peek(0).t; r.width(t) != r.width(of) {
			fail(ErrBad, "reinterpret of %d bytes as %d", r.width(of), r.width(t))
		}
		r.replace(t, func(v uint64) uint64 { return v })
	default:
		fail(ErrUnsupported, "operation %#x", op)
	}
}

func (r *run) inRegister(n uint64) {
	r.done = &Result{Kind: InRegister, Reg: n, Value: r.reg(n)}
}

// popNumber is pop for a number of the generic type, without a sign.
func (r *run) popNumber() uint64 {
	v := r.pop()
	if v.t == nil {
		return Extend(v.v, r.address(), false)
	}
	return v.v
}

func (r *run) indexed() uint64 {
	i := r.uleb()
	if r.Indexed == nil {
		fail(ErrUnsupported, "an indexed address")
	}
	v, err := r.Indexed(i)
	if err != nil {
		fail(ErrBad, "%v", err)
	}
	return v
}

// binary runs an operation with two operands. On the generic type, division and
// comparisons are signed, modulo is unsigned, as GDB has it and GCC relies on.
func (r *run) binary(op uint8) {
	second, first := r.drop(), r.drop()
	a, b, t := first.v, second.v, first.t
	shift := op == 0x24 || op == 0x25 || op == 0x26
	if t != nil && second.t == nil && second.plain && !shift {
		// LLVM leaves the conversion of a number to its neighbour's type out.
		b, second.t = Extend(b, t.Size, t.Signed), t
	}
	if t == nil && second.t != nil && first.plain && !shift {
		t = second.t // likewise
		a = Extend(a, t.Size, t.Signed)
	}
	if bits := op == 0x1a || op == 0x1c || op == 0x1e || op == 0x21 || op == 0x22 || op == 0x27 || op == 0x29 || op == 0x2e; bits && r.width(t) == r.width(second.t) {
		// These compute the same bits whatever the sign, and LLVM leaves a conversion of nothing else out, to and from the generic type too.
		if t == nil && second.t != nil {
			a, t = Extend(a, second.t.Size, second.t.Signed), second.t
		} else if t != nil {
			b, second.t = Extend(b, t.Size, t.Signed), t
		}
	}
	if !shift && ((t == nil) != (second.t == nil) || t != nil && *t != *second.t) {
		fail(ErrBad, "operands of different types")
	}
	if fault := cmp.Or(first.fault, second.fault); fault != nil {
		if op >= 0x29 && op <= 0x2e {
			t = nil // a comparison
		}
		r.stack = append(r.stack, value{t: t, fault: fault})
		return
	}
	signed := t == nil || t.Signed
	if t == nil {
		a = Extend(a, r.address(), false)
	}
	if second.t == nil {
		b = Extend(b, r.address(), false)
	}
	sa, sb := int64(a), int64(b)
	if t == nil {
		sa = int64(Extend(a, r.address(), true))
	}
	if second.t == nil {
		sb = int64(Extend(b, r.address(), true))
	}
	truth := func(v bool) {
		n := value{plain: first.plain && second.plain}
		if v {
			n.v = 1
		}
		r.stack = append(r.stack, n)
	}
	less, equal := sa < sb, a == b
	if !signed {
		less = a < b
	}
	switch op {
	case 0x29: // eq
		truth(equal)
		return
	case 0x2a: // ge
		truth(!less)
		return
	case 0x2b: // gt
		truth(!less && !equal)
		return
	case 0x2c: // le
		truth(less || equal)
		return
	case 0x2d: // lt
		truth(less)
		return
	case 0x2e: // ne
		truth(!equal)
		return
	}
	// GCC's arithmetic has the width of its operands, and what it widens it masks or shifts.
	if down := op == 0x25 || op == 0x26 || op == 0x1b || op == 0x1d; r.GNU && down && t == nil && second.t == nil && r.address() == 8 &&
		(first.half && (shift || second.half) && (first.memory || !shift && second.memory) || op == 0x25 && first.scaled && !first.wide) {
		a = Extend(a, 4, op == 0x26 || op == 0x1b)
		sa = int64(a)
		if !shift {
			b = Extend(b, 4, op == 0x1b)
			sb = int64(b)
		}
	}
	var v uint64
	switch op {
	case 0x1a: // and
		v = a & b
	case 0x1b: // div
		switch {
		case b == 0:
			r.stack = append(r.stack, value{t: t, fault: fmt.Errorf("%w: division by zero", ErrFault)})
			return
		case signed:
			v = uint64(sa / sb)
		default:
			v = a / b
		}
	case 0x1c: // minus
		v = a - b
	case 0x1d: // mod
		switch {
		case b == 0:
			r.stack = append(r.stack, value{t: t, fault: fmt.Errorf("%w: division by zero", ErrFault)})
			return
		case t != nil && signed:
			v = uint64(sa % sb)
		default:
			v = a % b
		}
	case 0x1e: // mul
		v = a * b
	case 0x21: // or
		v = a | b
	case 0x22: // plus
		v = a + b
	case 0x24: // shl
		v = a << b
	case 0x25: // shr, of the bits that the type has
		v = Extend(a, r.width(t), false) >> b
	case 0x26: // shra
		v = uint64(int64(Extend(a, r.width(t), true)) >> b)
	case 0x27: // xor
		v = a ^ b
	}
	r.pushTyped(v, t)
	top := &r.stack[len(r.stack)-1]
	top.plain = first.plain && second.plain
	widens := op == 0x24 && second.plain && b >= 32
	top.half, top.wide = first.half && second.half && !widens, first.wide || second.wide || widens
	top.memory = first.memory || second.memory
	top.down = first.down || second.down || op == 0x25 || op == 0x26 || op == 0x1b || op == 0x1d
	negative := func(x value) bool { return x.plain && x.half && int64(x.v) < 0 }
	top.scaled = first.scaled || second.scaled || op == 0x1e && (negative(first) || negative(second))
}
