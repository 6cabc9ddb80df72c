package insn

import mathbits "math/bits"

// follows is Arch.trace.
func (x *engine) follows(t *trace, code []byte, addr uint64) condition {
	in, ok := x.next(code)
	if x.before != nil {
		x.before(t, addr)
	}
	switch {
	case !ok:
		t.loseAll()
		return always
	case in.Call:
		t.call(x.lost, x.results)
		t.far = t.unknown()
		return always
	case in.Branches && in.Onward:
		return x.condition(t, code)
	case !in.plain() || in.Nop:
		return always
	}
	op, ok := x.known.of(code[:in.Size], x.decode)
	if !ok {
		t.loseAll()
		return always
	}
	x.follow(t, &op, x.effects[op.name], addr)
	return always
}

// value returns what an operand is.
func (x *operations) value(t *trace, a *operand) value {
	switch a.kind {
	case registerOperand:
		if a.odd {
			return t.unknown()
		}
		return t.plus(constant(0), t.regs[a.reg], 1<<a.scale)
	case numberOperand:
		return constant(uint64(a.n))
	}
	return t.unknown()
}

// address returns a memory operand's.
func (x *operations) address(t *trace, a *operand) value {
	v := constant(uint64(a.n))
	if a.reg >= 0 {
		v = t.plus(v, t.regs[a.reg], 1)
	}
	if a.plus >= 0 {
		v = t.plus(v, t.regs[a.plus], 1<<a.scale)
	}
	if a.odd {
		v = t.unknown()
	}
	return t.low(v, x.bits)
}

// memory returns the operand of an operation that is memory, or nil.
func (op *operation) memory() *operand {
	for i := range op.args {
		if op.args[i].kind == memoryOperand {
			return &op.args[i]
		}
	}
	return nil
}

// follow carries out an operation.
func (x *engine) follow(t *trace, op *operation, e effect, addr uint64) {
	bits := e.bits
	if bits == 0 {
		bits = x.bits
	}
	m := op.memory()
	arg := func(i int) value {
		switch {
		case i >= len(op.args):
			return t.unknown()
		case op.args[i].kind == memoryOperand:
			return t.load(x.address(t, m), bits)
		}
		return x.value(t, &op.args[i])
	}
	// The operands that are read: the first one too, if there are two.
	first := 1
	if e.flags&firstToo != 0 || e.verb == compares {
		first = 0
	}
	if op.flags {
		t.flags.valid, t.fields[0].valid = false, false
	}
	if op.maybe || e.verb == unknownVerb || len(op.args) == 0 && e.verb != nothing {
		x.forget(t, op)
		return
	}
	v := t.unknown()
	switch e.verb {
	case nothing:
		return
	case compares:
		x.compare(t, op, e, bits)
		return
	case movesFar:
		t.far = x.value(t, &op.args[len(op.args)-1])
		return
	case stores:
		if m == nil {
			t.forget()
			return
		}
		what := t.unknown()
		if e.flags&elsewhere == 0 && op.args[0].kind == registerOperand {
			what = t.regs[op.args[0].reg]
		}
		t.store(x.address(t, m), max(bits, uint8(min(m.size*8, 64))), what)
		if m.size > 8 {
			t.forget()
		}
		x.moveBase(t, m)
		return
	case storesMany:
		x.many(t, op, m, func(r int8, at value) { t.store(at, x.bits, t.regs[r]) })
		return
	case loadsMany:
		var loaded [16]value
		x.many(t, op, m, func(r int8, at value) { loaded[r] = t.load(at, x.bits) })
		x.many(t, op, m, func(r int8, _ value) { t.regs[r] = loaded[r] })
		return
	case moves:
		v = arg(1)
	case adds:
		v = t.plus(arg(first), arg(first+1), 1)
	case subtracts:
		if e.flags&inverted != 0 {
			v = t.plus(arg(first+1), arg(first), ^uint64(0))
		} else {
			v = t.plus(arg(first), arg(first+1), ^uint64(0))
		}
	case shiftsLeft:
		if by := arg(first + 1); by.isConstant() && by.c < 64 {
			v = t.plus(constant(0), arg(first), 1<<by.c)
		}
	case shiftsRight:
		if by := arg(first + 1); by.isConstant() && by.c < uint64(bits) && e.flags&signedBits == 0 {
			v = t.shiftRight(arg(first), uint8(by.c), bits)
		}
	case masks:
		if by := arg(first + 1); by.isConstant() && by.c&(by.c+1) == 0 && by.c != 0 {
			v = t.low(arg(first), uint8(mathbits.OnesCount64(by.c)))
		} else if by.isConstant() && by.c < 1<<31 {
			v = t.upTo(by.c)
		}
	case extends:
		v = arg(1)
	case selects:
		v = x.bitsOf(t, op, e)
	case addresses:
		if len(op.args) < 2 {
			break
		}
		if at, ok := x.global(op, addr); ok {
			v = constant(at)
		} else if m != nil {
			v = x.address(t, m)
		}
	case loads:
		if m != nil {
			v = t.load(x.address(t, m), bits)
		}
	}
	x.set(t, op, e, bits, v)
	if m != nil {
		x.moveBase(t, m)
	}
}

// set writes the first operand.
func (x *engine) set(t *trace, op *operation, e effect, bits uint8, v value) {
	if e.flags&elsewhere != 0 || len(op.args) == 0 || op.args[0].kind != registerOperand {
		return
	}
	switch r := op.args[0].reg; {
	case e.flags&(keepsUpper|signedBits) == keepsUpper|signedBits:
		t.regs[r] = t.partly(t.lowSigned(v, bits), 32)
	case e.flags&keepsUpper != 0:
		t.regs[r] = t.partly(t.low(v, bits), 32)
	case e.flags&signedBits != 0:
		t.regs[r] = t.lowSigned(v, bits)
	default:
		t.regs[r] = t.low(v, bits)
	}
}

// moveBase follows an access that also changes the register of its address.
func (x *engine) moveBase(t *trace, m *operand) {
	if m.moves && m.reg >= 0 {
		if t.regs[m.reg] = x.address(t, m); m.after {
			t.regs[m.reg] = t.unknown()
		}
	}
}

// many visits the registers of an operation that stores or loads several.
func (x *engine) many(t *trace, op *operation, m *operand, visit func(r int8, at value)) {
	if m == nil || len(op.args) < 2 || op.args[0].kind != registerOperand || op.args[1].kind != registerOperand {
		t.loseAll()
		return
	}
	at := x.address(t, m)
	for i := range registersOf(op) {
		visit((op.args[0].reg+int8(i))&15, t.plus(at, constant(uint64(i)*uint64(x.bits/8)), 1))
	}
}

// forget loses what an operation may change of which little is known.
func (x *engine) forget(t *trace, op *operation) {
	t.flags.valid, t.fields = false, [8]comparison{}
	for _, a := range op.args {
		if a.kind != otherOperand && a.kind != numberOperand && a.reg >= 0 {
			t.regs[a.reg] = t.unknown()
		}
		if a.kind == memoryOperand {
			t.forget()
		}
	}
	if len(op.args) == 0 {
		t.loseAll()
	}
}

// compare sets the flags, or the field of them that the first operand names.
func (x *engine) compare(t *trace, op *operation, e effect, bits uint8) {
	args := op.args
	field := int64(0)
	if len(args) == 3 && args[0].kind == otherOperand {
		field, args = args[0].n, args[1:]
	}
	if len(args) < 2 {
		t.flags.valid = false
		return
	}
	of := func(a *operand) value {
		if a.kind == memoryOperand {
			return t.load(x.address(t, a), bits)
		}
		return x.value(t, a)
	}
	// A load of fewer bits than are compared: not needed for tables.
	c := comparison{t.low(of(&args[0]), bits), t.low(of(&args[1]), bits), bits, true, e.flags&signedBits == 0}
	t.flags, t.fields[field&7] = c, c
}

// unsignedOf returns the condition of unsigned numbers for one of signed numbers.
func (c condition) unsignedOf() condition {
	if u, ok := unsigned[c]; ok {
		return u
	}
	return c
}
