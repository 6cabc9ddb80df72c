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
	op := x.of(code[:in.Size])
	if op == nil {
		t.loseAll()
		return always
	}
	x.follow(t, op, addr)
	x.done(op)
	return always
}

// value returns what an operand is.
func (x *operations) value(t *trace, a *operand) value {
	switch a.kind {
	case registerOperand:
		return x.scaled(t, a, a.reg)
	case numberOperand:
		return constant(uint64(a.n))
	}
	return t.unknown()
}

// scaled returns a register, or an index, as an operand has it: extended and shifted.
func (x *operations) scaled(t *trace, a *operand, reg int8) value {
	v := t.regs[reg]
	switch {
	case a.odd:
		return t.unknown()
	case a.cut > 0:
		v = t.low(v, uint8(a.cut))
	case a.cut < 0:
		v = t.lowSigned(v, uint8(-a.cut))
	}
	return t.plus(constant(0), v, 1<<a.scale)
}

// address returns a memory operand's, in an instruction that is at addr.
func (x *operations) address(t *trace, a *operand, addr uint64) value {
	if a.odd || a.away {
		return t.unknown()
	}
	v := constant(0)
	if !a.after {
		v.c = uint64(a.n)
	}
	if a.here {
		v.c += addr
	}
	if a.reg >= 0 {
		v = t.plus(v, t.regs[a.reg], 1)
	}
	if a.plus >= 0 {
		v = t.plus(v, x.scaled(t, a, a.plus), 1)
	}
	return t.low(v, x.bits)
}

// memory returns the operand of an operation that is memory, or nil.
func (op *operation) memory() *operand {
	for i := range op.args() {
		if op.list[i].kind == memoryOperand {
			return &op.list[i]
		}
	}
	return nil
}

// step is one operation on the way.
type step struct {
	*engine
	*trace
	op   *operation
	bits uint8
	addr uint64
}

// arg returns an operand, or what it holds.
func (s *step) arg(i int) value {
	switch {
	case i >= int(s.op.count):
		return s.unknown()
	case s.op.list[i].kind == memoryOperand:
		return s.load(s.address(s.trace, &s.op.list[i], s.addr), s.bits)
	}
	return s.value(s.trace, &s.op.list[i])
}

// follow carries out an operation.
func (x *engine) follow(t *trace, op *operation, addr uint64) {
	e := &op.does
	s := step{x, t, op, e.bits, addr}
	if s.bits == 0 {
		s.bits = x.bits
	}
	if op.flags || e.flags&flagged != 0 {
		t.flags.valid, t.fields[0].valid = false, false
	}
	if op.maybe || e.verb == unknownVerb || op.count == 0 && e.writesFirst() {
		x.forget(t, op)
		return
	}
	m := op.memory()
	switch e.verb {
	case nothing:
	case compares, tests:
		s.compare()
	case movesFar:
		t.far = x.value(t, &op.list[op.count-1])
	case stores:
		if m == nil {
			t.forget()
			break
		}
		what := t.unknown()
		if e.flags&elsewhere == 0 && op.list[0].kind == registerOperand {
			what = t.regs[op.list[0].reg]
		} else if op.list[0].kind == numberOperand {
			what = constant(uint64(op.list[0].n))
		}
		s.store(m, what)
	case pushes:
		v := s.arg(0)
		sp := &t.regs[x.stack]
		*sp = t.low(t.plus(*sp, constant(-uint64(s.bits/8)), 1), x.bits)
		t.store(*sp, s.bits, v)
	case pops:
		sp := &t.regs[x.stack]
		v := t.load(*sp, s.bits)
		*sp = t.low(t.plus(*sp, constant(uint64(s.bits/8)), 1), x.bits)
		s.set(v)
	case storesMany:
		s.many(m, func(r int8, at value) { t.store(at, x.bits, t.regs[r]) })
	case loadsMany:
		var loaded [16]value
		s.many(m, func(r int8, at value) { loaded[r] = t.load(at, x.bits) })
		s.many(m, func(r int8, _ value) { t.regs[r] = loaded[r] })
	case storesTwo, loadsTwo:
		s.two(m)
	default:
		s.set(s.compute(m))
		if a := &op.list[1]; e.flags&secondToo != 0 && a.kind == registerOperand {
			t.regs[a.reg] = t.unknown()
		}
		if m != nil && e.flags&memoryToo != 0 {
			s.store(m, t.unknown())
		}
	}
	t.lose(op.writes)
	if m != nil {
		s.moveBase(m)
	}
}

// compute returns what the first operand becomes.
func (s *step) compute(m *operand) value {
	t, op, e, bits := s.trace, s.op, &s.op.does, s.bits
	// The operands that are read: the first one too, if there are two.
	first := 1
	if e.flags&firstToo != 0 {
		first = 0
	}
	switch e.verb {
	case computes:
		if op.cleared() {
			return constant(0)
		}
	case moves, extends:
		return s.arg(1)
	case adds:
		return t.plus(s.arg(first), s.arg(first+1), 1)
	case subtracts:
		a, b := s.arg(first), s.arg(first+1)
		if e.flags&compared != 0 {
			t.compare(a, b, bits)
		}
		if e.flags&inverted != 0 {
			a, b = b, a
		}
		return t.plus(a, b, ^uint64(0))
	case shiftsLeft:
		if by := s.shift(first + 1); by < uint64(bits) {
			return t.plus(constant(0), s.arg(first), 1<<by)
		}
	case shiftsRight:
		if by := s.shift(first + 1); by < uint64(bits) && e.flags&signedBits == 0 {
			return t.shiftRight(s.arg(first), uint8(by), bits)
		}
	case masks:
		return t.and(s.arg(first), s.arg(first+1))
	case selects:
		return s.bitsOf(t, op, *e)
	case decides:
		v := t.upTo(1)
		t.decided[v.single()] = decision{t.flags, condition(op.list[1].n)}
		return v
	case addresses:
		if s.global != nil {
			if at, ok := s.global(op, s.addr); ok {
				return constant(at)
			}
		}
		if m != nil {
			return s.address(t, m, s.addr)
		}
	case loads:
		if m != nil {
			return t.load(s.address(t, m, s.addr), bits)
		}
	}
	return t.unknown()
}

// shift returns by how many bits an operation shifts, or more than there are if that is not known.
func (s *step) shift(i int) uint64 {
	by := s.arg(i)
	if !by.isConstant() {
		return 255
	}
	if s.op.does.flags&around != 0 {
		return by.c & uint64(s.bits-1)
	}
	return by.c
}

// and returns what a mask leaves of a value: its lower bits, or none that it has.
func (t *trace) and(a, b value) value {
	if a.isConstant() {
		a, b = b, a
	}
	if !b.isConstant() || b.c == 0 || b.c&(b.c+1) != 0 {
		return t.unknown() // which of the numbers up to the mask have an entry is not known
	}
	return t.low(a, uint8(mathbits.OnesCount64(b.c)))
}

// set writes the first operand.
func (s *step) set(v value) {
	if s.op.count == 0 {
		return
	}
	a, e, bits := &s.op.list[0], &s.op.does, s.bits
	if a.kind == memoryOperand {
		s.store(a, v)
	}
	if a.kind != registerOperand || e.flags&elsewhere != 0 {
		return
	}
	if e.flags&signedBits != 0 {
		v = s.lowSigned(v, bits)
	} else {
		v = s.low(v, bits)
	}
	switch {
	case e.flags&keepsUpper != 0:
		v = s.partly(v, e.to)
	case e.to > 0:
		v = s.low(v, e.to)
	}
	s.regs[a.reg] = v
}

// mostStored is how many bytes an operation stores at most after which other memory is still known.
const mostStored = 64

// store writes a memory operand.
func (s *step) store(m *operand, v value) {
	t, size := s.trace, int32(max(s.bits/8, 1))
	at := s.address(t, m, s.addr)
	if m.size <= size || m.size <= 8 {
		t.store(at, max(s.bits, uint8(min(m.size, 8)*8)), v)
		return
	}
	for i := int32(0); i < min(m.size, mostStored); i += 8 {
		t.store(t.plus(at, constant(uint64(i)), 1), 64, t.unknown())
	}
	if m.size > mostStored {
		t.forget()
	}
}

// moveBase follows an access that also changes the register of its address.
func (s *step) moveBase(m *operand) {
	if !m.moves || m.reg < 0 {
		return
	}
	switch r := &s.regs[m.reg]; {
	case !m.after:
		*r = s.address(s.trace, m, s.addr)
	case m.n != 0:
		*r = s.plus(*r, constant(uint64(m.n)), 1)
	default:
		*r = s.unknown()
	}
}

// many visits the registers of an operation that stores or loads several.
func (s *step) many(m *operand, visit func(r int8, at value)) {
	op := s.op
	if m == nil || op.count < 2 || op.list[0].kind != registerOperand || op.list[1].kind != registerOperand {
		s.loseAll()
		return
	}
	at := s.address(s.trace, m, s.addr)
	for i := range registersOf(op) {
		visit((op.list[0].reg+int8(i))&15, s.plus(at, constant(uint64(i)*uint64(s.engine.bits/8)), 1))
	}
}

// two stores or loads two operands, which are beside each other in memory.
func (s *step) two(m *operand) {
	e := &s.op.does
	first := s.address(s.trace, m, s.addr)
	places := [2]value{first, s.plus(first, constant(uint64(s.bits/8)), 1)}
	var loaded [2]value
	for i, at := range places {
		if e.verb == storesTwo {
			s.trace.store(at, s.bits, s.value(s.trace, &s.op.list[i]))
		} else if s.op.list[i].kind == registerOperand {
			loaded[i] = s.load(at, s.bits)
		}
	}
	for i, v := range loaded {
		if a := &s.op.list[i]; e.verb == loadsTwo && a.kind == registerOperand {
			if e.flags&signedBits != 0 {
				v = s.lowSigned(v, s.bits)
			}
			s.regs[a.reg] = v
		}
	}
}

// forget loses what an operation may change of which little is known.
func (x *engine) forget(t *trace, op *operation) {
	t.flags.valid, t.fields = false, [8]comparison{}
	t.lose(op.reads | op.writes)
	for _, a := range op.args() {
		if a.kind != otherOperand && a.kind != numberOperand && a.reg >= 0 {
			t.regs[a.reg] = t.unknown()
		}
		if a.kind == memoryOperand {
			t.forget()
		}
	}
	if op.count == 0 {
		t.loseAll()
	}
}

// compare sets the flags, or the field of them that the first operand names.
func (s *step) compare() {
	t, op, e := s.trace, s.op, &s.op.does
	first, field := 0, int64(0)
	if op.count == 3 && op.list[0].kind == otherOperand {
		first, field = 1, op.list[0].n
	}
	if int(op.count) < first+2 {
		t.flags.valid = false
		return
	}
	a, b := s.arg(first), s.arg(first+1)
	if e.verb == tests {
		if op.list[first] != op.list[first+1] {
			t.flags.valid = false
			return
		}
		b = constant(0)
	}
	// A load of fewer bits than are compared: not needed for tables.
	c := comparison{t.low(a, s.bits), t.low(b, s.bits), s.bits, true, e.flags&signedBits == 0}
	t.flags, t.fields[field&7] = c, c
}

// unsignedOf returns the condition of unsigned numbers for one of signed numbers.
func (c condition) unsignedOf() condition {
	if u, ok := unsigned[c]; ok {
		return u
	}
	return c
}
