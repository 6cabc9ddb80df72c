package insn

import (
	mathbits "math/bits"

	"github.com/bpfprologue/bpfprologue/internal/symbolic"
)

// follows is Arch.trace.
func (x *engine) follows(t *symbolic.Trace, code []byte, addr uint64) symbolic.Condition {
	in, ok := x.next(code)
	if x.before != nil {
		x.before(t, addr)
	}
	switch {
	case !ok:
		t.LoseAll()
		return symbolic.Always
	case in.Call:
		t.Call(x.lost, x.results)
		t.Far = t.Unknown()
		return symbolic.Always
	case in.Branches && in.Onward:
		return x.condition(t, code)
	case !in.plain() || in.Nop:
		return symbolic.Always
	}
	op := x.of(code[:in.Size])
	if op == nil {
		t.LoseAll()
		return symbolic.Always
	}
	x.follow(t, op, addr)
	x.done(op)
	return symbolic.Always
}

// value returns what an operand is.
func (x *operations) value(t *symbolic.Trace, a *operand) symbolic.Value {
	switch a.kind {
	case registerOperand:
		return x.scaled(t, a, a.reg)
	case numberOperand:
		return symbolic.Constant(uint64(a.n))
	}
	return t.Unknown()
}

// scaled returns a register, or an index, as an operand has it: extended and shifted.
func (x *operations) scaled(t *symbolic.Trace, a *operand, reg int8) symbolic.Value {
	v := t.Regs[reg]
	switch {
	case a.odd:
		return t.Unknown()
	case a.cut > 0:
		v = t.Low(v, uint8(a.cut))
	case a.cut < 0:
		v = t.LowSigned(v, uint8(-a.cut))
	}
	return t.Plus(symbolic.Constant(0), v, 1<<a.scale)
}

// address returns a memory operand's, in an instruction that is at addr.
func (x *operations) address(t *symbolic.Trace, a *operand, addr uint64) symbolic.Value {
	if a.odd || a.away {
		return t.Unknown()
	}
	v := symbolic.Constant(0)
	if !a.after {
		v.Const = uint64(a.n)
	}
	if a.here {
		v.Const += addr
	}
	if a.reg >= 0 {
		v = t.Plus(v, t.Regs[a.reg], 1)
	}
	if a.plus >= 0 {
		v = t.Plus(v, x.scaled(t, a, a.plus), 1)
	}
	return t.Low(v, x.bits)
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
	*symbolic.Trace
	op   *operation
	bits uint8
	addr uint64
}

// arg returns an operand, or what it holds.
func (s *step) arg(i int) symbolic.Value {
	switch {
	case i >= int(s.op.count):
		return s.Unknown()
	case s.op.list[i].kind == memoryOperand:
		return s.Load(s.address(s.Trace, &s.op.list[i], s.addr), s.bits)
	}
	return s.value(s.Trace, &s.op.list[i])
}

// follow carries out an operation.
func (x *engine) follow(t *symbolic.Trace, op *operation, addr uint64) {
	e := &op.does
	s := step{x, t, op, e.bits, addr}
	if s.bits == 0 {
		s.bits = x.bits
	}
	if op.flags || e.flags&flagged != 0 {
		t.Flags.Valid, t.Fields[0].Valid = false, false
	}
	if op.maybe || e.verb == unknownVerb || op.count == 0 && e.writesFirst() {
		x.forget(t, op)
		return
	}
	m := op.memory()
	switch e.verb {
	case nothing:
		if e.flags&divides != 0 { // the lowest of the registers that it reads, without naming them
			of := t.Regs[mathbits.TrailingZeros64(uint64(op.reads))]
			t.Last = symbolic.Operation{Of: t.Low(of, s.bits), By: s.arg(0), Bits: s.bits, Signed: e.flags&signedBits != 0, Divides: true}
		}
	case compares, tests:
		s.compare()
	case movesFar:
		t.Far = x.value(t, &op.list[op.count-1])
	case stores:
		if m == nil {
			t.Forget()
			break
		}
		what := t.Unknown()
		if e.flags&elsewhere == 0 && op.list[0].kind == registerOperand {
			what = t.Regs[op.list[0].reg]
		} else if op.list[0].kind == numberOperand {
			what = symbolic.Constant(uint64(op.list[0].n))
		}
		s.store(m, what)
	case pushes:
		v := s.arg(0)
		sp := &t.Regs[x.stack]
		*sp = t.Low(t.Plus(*sp, symbolic.Constant(-uint64(s.bits/8)), 1), x.bits)
		t.Store(*sp, s.bits, v)
	case pops:
		sp := &t.Regs[x.stack]
		v := t.Load(*sp, s.bits)
		*sp = t.Low(t.Plus(*sp, symbolic.Constant(uint64(s.bits/8)), 1), x.bits)
		s.set(v)
	case storesMany:
		s.many(m, func(r int8, at symbolic.Value) { t.Store(at, x.bits, t.Regs[r]) })
	case loadsMany:
		var loaded [16]symbolic.Value
		s.many(m, func(r int8, at symbolic.Value) { loaded[r] = t.Load(at, x.bits) })
		s.many(m, func(r int8, _ symbolic.Value) { t.Regs[r] = loaded[r] })
	case storesTwo, loadsTwo:
		s.two(m)
	default:
		s.set(s.compute(m))
		if a := &op.list[1]; e.flags&secondToo != 0 && a.kind == registerOperand {
			t.Regs[a.reg] = t.Unknown()
		}
		if m != nil && e.flags&memoryToo != 0 {
			s.store(m, t.Unknown())
		}
	}
	t.Lose(op.writes)
	if m != nil {
		s.moveBase(m)
	}
}

// compute returns what the first operand becomes.
func (s *step) compute(m *operand) symbolic.Value {
	t, op, e, bits := s.Trace, s.op, &s.op.does, s.bits
	// The operands that are read: the first one too, if there are two.
	first := 1
	if e.flags&firstToo != 0 {
		first = 0
	}
	switch e.verb {
	case computes:
		if op.cleared() {
			return symbolic.Constant(0)
		}
	case moves, extends:
		return s.arg(1)
	case adds:
		return t.Plus(s.arg(first), s.arg(first+1), 1)
	case subtracts:
		a, b := s.arg(first), s.arg(first+1)
		if e.flags&compared != 0 {
			t.Flags = t.Compared(a, b, bits, false)
		}
		if e.flags&inverted != 0 {
			a, b = b, a
		}
		return t.Plus(a, b, ^uint64(0))
	case multiplies:
		if by := s.arg(first + 1); by.IsConstant() {
			return t.Plus(symbolic.Constant(0), s.arg(first), by.Const)
		}
	case shiftsLeft:
		if by := s.shift(first + 1); by < uint64(bits) {
			return t.Plus(symbolic.Constant(0), s.arg(first), 1<<by)
		}
	case shiftsRight:
		t.Last = symbolic.Operation{Of: s.arg(first), By: s.arg(first + 1), Bits: bits, Signed: e.flags&signedBits != 0}
		if by := s.shift(first + 1); by < uint64(bits) && !t.Last.Signed {
			return t.ShiftRight(t.Last.Of, uint8(by), bits)
		}
	case masks:
		return t.And(s.arg(first), s.arg(first+1))
	case flips:
		if op.cleared() {
			return symbolic.Constant(0)
		}
		return t.Xor(s.arg(first), s.arg(first+1))
	case selects:
		return s.bitsOf(t, op, *e)
	case truth:
		return t.UpTo(1)
	case decides:
		v := t.UpTo(1)
		t.Decided[v.Single()] = symbolic.Decision{Comparison: t.Flags, Holds: symbolic.Condition(op.list[1].n)}
		return v
	case addresses:
		if s.global != nil {
			if at, ok := s.global(op, s.addr); ok {
				return symbolic.Constant(at)
			}
		}
		if m != nil {
			return s.address(t, m, s.addr)
		}
	case loads:
		if m != nil {
			return t.Load(s.address(t, m, s.addr), bits)
		}
	}
	return t.Unknown()
}

// shift returns by how many bits an operation shifts, or more than there are if that is not known.
func (s *step) shift(i int) uint64 {
	by := s.arg(i)
	if !by.IsConstant() {
		return 255
	}
	if s.op.does.flags&around != 0 {
		return by.Const & uint64(s.bits-1)
	}
	return by.Const
}

// set writes the first operand.
func (s *step) set(v symbolic.Value) {
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
		v = s.LowSigned(v, bits)
	} else {
		v = s.Low(v, bits)
	}
	switch {
	case e.flags&keepsUpper != 0:
		v = s.Partly(v, e.to)
	case e.to > 0:
		v = s.Low(v, e.to)
	}
	s.Regs[a.reg] = v
}

// mostStored is how many bytes an operation stores at most after which other memory is still known.
const mostStored = 64

// store writes a memory operand.
func (s *step) store(m *operand, v symbolic.Value) {
	t, size := s.Trace, int32(max(s.bits/8, 1))
	at := s.address(t, m, s.addr)
	if m.size <= size || m.size <= 8 {
		t.Store(at, max(s.bits, uint8(min(m.size, 8)*8)), v)
		return
	}
	for i := int32(0); i < min(m.size, mostStored); i += 8 {
		t.Store(t.Plus(at, symbolic.Constant(uint64(i)), 1), 64, t.Unknown())
	}
	if m.size > mostStored {
		t.Forget()
	}
}

// moveBase follows an access that also changes the register of its address.
func (s *step) moveBase(m *operand) {
	if !m.moves || m.reg < 0 {
		return
	}
	switch r := &s.Regs[m.reg]; {
	case !m.after:
		*r = s.address(s.Trace, m, s.addr)
	case m.n != 0:
		*r = s.Plus(*r, symbolic.Constant(uint64(m.n)), 1)
	default:
		*r = s.Unknown()
	}
}

// many visits the registers of an operation that stores or loads several.
func (s *step) many(m *operand, visit func(r int8, at symbolic.Value)) {
	op := s.op
	if m == nil || op.count < 2 || op.list[0].kind != registerOperand || op.list[1].kind != registerOperand {
		s.LoseAll()
		return
	}
	at := s.address(s.Trace, m, s.addr)
	for i := range registersOf(op) {
		visit((op.list[0].reg+int8(i))&15, s.Plus(at, symbolic.Constant(uint64(i)*uint64(s.engine.bits/8)), 1))
	}
}

// two stores or loads two operands, which are beside each other in memory.
func (s *step) two(m *operand) {
	e := &s.op.does
	first := s.address(s.Trace, m, s.addr)
	places := [2]symbolic.Value{first, s.Plus(first, symbolic.Constant(uint64(s.bits/8)), 1)}
	var loaded [2]symbolic.Value
	for i, at := range places {
		if e.verb == storesTwo {
			s.Store(at, s.bits, s.value(s.Trace, &s.op.list[i]))
		} else if s.op.list[i].kind == registerOperand {
			loaded[i] = s.Load(at, s.bits)
		}
	}
	for i, v := range loaded {
		if a := &s.op.list[i]; e.verb == loadsTwo && a.kind == registerOperand {
			if e.flags&signedBits != 0 {
				v = s.LowSigned(v, s.bits)
			}
			s.Regs[a.reg] = v
		}
	}
}

// forget loses what an operation may change of which little is known.
func (x *engine) forget(t *symbolic.Trace, op *operation) {
	t.Flags.Valid, t.Fields = false, [8]symbolic.Comparison{}
	t.Lose(op.reads | op.writes)
	for _, a := range op.args() {
		if a.kind != otherOperand && a.kind != numberOperand && a.reg >= 0 {
			t.Regs[a.reg] = t.Unknown()
		}
		if a.kind == memoryOperand {
			t.Forget()
		}
	}
	if op.count == 0 {
		t.LoseAll()
	}
}

// compare sets the flags, or the field of them that the first operand names.
func (s *step) compare() {
	t, op, e := s.Trace, s.op, &s.op.does
	first, field := 0, int64(0)
	if op.count == 3 && op.list[0].kind == otherOperand {
		first, field = 1, op.list[0].n
	}
	if int(op.count) < first+2 {
		t.Flags.Valid = false
		return
	}
	a, b := s.arg(first), s.arg(first+1)
	if e.verb == tests {
		if op.list[first] != op.list[first+1] {
			t.Flags.Valid = false
			return
		}
		b = symbolic.Constant(0)
	}
	// A load of fewer bits than are compared: not needed for tables.
	c := t.Compared(a, b, s.bits, e.flags&signedBits == 0)
	t.Flags, t.Fields[field&7] = c, c
}
