package insn

import "slices"

// spills reports whether the first instruction in code writes no memory but at an offset from the stack pointer: as where a compiler has no
// register left for a value.
func (x *engine) spills(code []byte) bool {
	op := x.plain(code)
	if op == nil {
		return false
	}
	defer x.done(op)
	stack := x.frame &^ (1 << x.pointer)
	found := false
	for _, a := range op.args() {
		if a.kind != memoryOperand {
			continue
		}
		if a.reg < 0 || !stack.Has(uint64(a.reg)) || a.plus >= 0 {
			return false
		}
		found = true
	}
	return found
}

// numbered reports whether an operand of the first instruction in code is a number, as that of a store which clears memory.
func (x *engine) numbered(code []byte) bool {
	op := x.plain(code)
	if op == nil {
		return false
	}
	defer x.done(op)
	return slices.ContainsFunc(op.args(), func(a operand) bool { return a.kind == numberOperand })
}
