package insn

import "github.com/bpfprologue/bpfprologue/internal/symbolic"

// Touch is what an instruction accesses in memory.
type Touch struct {
	At symbolic.Value // the address, in terms of what registers held where the path begins
	// Size is how many bytes are accessed.
	Size int64
	// Shape is that of the instruction: see Arch.Shape.
	Shape uint64
	// Writes is set if the memory may be written, Loads if a register may be, and Compares if the memory's value is compared.
	Writes, Loads, Compares bool
}

// touches returns the operand in memory of the first instruction in code, which is at addr; t is what registers hold before it. ok is false if
// it has none that an address says, as one in a segment, or if it only computes the address.
func (x *engine) touches(t *symbolic.Trace, code []byte, addr uint64) (out Touch, ok bool) {
	op, m := x.touched(code)
	if op == nil {
		return out, false
	}
	if x.before != nil {
		x.before(t, addr)
	}
	m.odd = false
	_, w, known := x.registers(op)
	out = Touch{At: x.address(t, m, addr), Size: accessed(op, m), Shape: x.shape(code), Writes: w.Memory || !known, Loads: w.Registers != 0 || !known}
	out.Compares = op.does.verb == compares || op.does.verb == tests
	x.done(op)
	return out, true
}

// touched returns the operation that accesses memory, and its operand there, or nil.
func (x *engine) touched(code []byte) (*operation, *operand) {
	in, ok := x.next(code)
	if !ok || !in.plain() || in.Nop {
		return nil, nil
	}
	op := x.of(code[:in.Size])
	if op == nil {
		return nil, nil
	}
	m := op.memory()
	if m == nil || m.away || m.odd && !m.from || m.after || op.does.verb == addresses {
		x.done(op)
		return nil, nil
	}
	return op, m
}

// touching says what the first instruction in code does to memory, wherever that is. ok is false if it accesses none.
func (x *engine) touching(code []byte) (writes, ok bool) {
	in, known := x.next(code)
	if !known || !in.plain() || in.Nop {
		return false, false
	}
	op := x.of(code[:in.Size])
	if op == nil {
		return true, true
	}
	defer x.done(op)
	_, w, known := x.registers(op)
	return w.Memory || !known, !known || op.memory() != nil && op.does.verb != addresses
}

// stepped is Arch.Steps.
func (x *engine) stepped(code []byte) (register uint8, by int64, ok bool) {
	in, known := x.next(code)
	if !known || !in.plain() || in.Nop {
		return 0, 0, false
	}
	op := x.of(code[:in.Size])
	if op == nil {
		return 0, 0, false
	}
	defer x.done(op)
	m := op.memory()
	if m == nil || !m.moves || m.reg < 0 || m.plus >= 0 || m.n == 0 {
		return 0, 0, false
	}
	return uint8(m.reg), m.n, true
}

// operandAt is Arch.Operand.
func (x *engine) operandAt(code []byte) (m Slot, written, ok bool) {
	op, at := x.touched(code)
	if op == nil {
		return Slot{}, false, false
	}
	defer x.done(op)
	if at.reg < 0 || at.plus >= 0 || at.here || at.moves {
		return Slot{}, false, false
	}
	written = op.does.verb == stores || op.does.verb == moves && op.list[0].kind == memoryOperand
	return Slot{Base: uint64(at.reg), Off: at.n, Size: accessed(op, at)}, written, true
}

// accessed returns how many bytes of memory an operation accesses.
func accessed(op *operation, m *operand) int64 {
	return max(int64(m.size), int64(op.does.bits/8), 1)
}
