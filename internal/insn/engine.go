package insn

import (
	"slices"

	"sync"
)

// engine answers questions about instructions from an architecture's tables.
type engine struct {
	arch *Arch
	next func(code []byte) (Insn, bool)
	*operations
	// of decodes an operation, and says what it does; nil if that is not known. done is called with what it returned.
	of    func(code []byte) *operation
	done  func(op *operation)
	spare sync.Pool // of operations: questions about an instruction allocate nothing
}

// made is of for an architecture with a table of operations.
func (x *engine) made(code []byte) *operation {
	op, ok := x.spare.Get().(*operation)
	if !ok {
		op = new(operation)
	}
	if !x.decode(code, op) {
		x.spare.Put(op)
		return nil
	}
	return op
}

func (x *engine) reuse(op *operation) { x.spare.Put(op) }

// plain reports whether an instruction only goes on at the next one.
func (in *Insn) plain() bool {
	return in.Onward && !in.Branches && !in.Call && !in.Lost && !in.Leaves && !in.Trap
}

// registers returns which registers an operation reads, and what it writes. ok is false if it may write more. Registers that it may or may
// not write, or of which it writes a part under a condition, are also read.
func (x *operations) registers(op *operation) (reads Registers, w Writes, ok bool) {
	e := &op.does
	reads, w.Registers, ok = op.reads, op.writes, e.verb != unknownVerb
	to := 0 // so many operands are written
	switch e.verb {
	case stores, storesMany, storesTwo:
		w.Memory = true
	case pushes, pops:
		reads |= 1 << x.stack
		w.Registers |= 1 << x.stack
		w.Memory = e.verb == pushes
	case loadsTwo:
		to = 2
	case loadsMany:
		ok = false
	}
	if e.writesFirst() {
		to = 1
		if ok = ok && op.count > 0; e.flags&secondToo != 0 {
			to = 2
		}
	}
	for i := range op.args() {
		a := &op.list[i]
		switch {
		case a.kind == memoryOperand:
			if a.reg >= 0 {
				reads |= 1 << a.reg
			}
			if a.plus >= 0 {
				reads |= 1 << a.plus
			}
			if a.moves && a.reg < 0 {
				ok = false // no such instruction
			} else if a.moves {
				w.Registers |= 1 << a.reg
			}
			if i < to || e.flags&memoryToo != 0 {
				w.Memory = true
			}
		case a.kind == registerOperand && i < to:
			w.Registers |= 1 << a.reg
			if e.flags&firstToo != 0 || op.maybe || a.odd { // of AH, AL stays
				reads |= 1 << a.reg
			}
		case a.kind == registerOperand && (i > 0 || ok):
			reads |= 1 << a.reg
		case a.kind == otherOperand && i < to && e.flags&elsewhere == 0:
			ok = false
		}
	}
	if op.same(clears | borrows) {
		reads &^= 1 << op.list[0].reg
	}
	return reads, w, ok
}

// cleared reports whether an operation only makes a register 0.
func (op *operation) cleared() bool { return op.same(clears) }

// same reports whether an operation has one of some flags, and the same register as both of its operands.
func (op *operation) same(flags effectFlags) bool {
	a, b := &op.list[0], &op.list[1]
	return op.does.flags&flags != 0 && op.count == 2 && a.kind == registerOperand && *a == *b
}

func (x *engine) accesses(code []byte) (reads Registers, w Writes, ok bool) {
	in, ok := x.next(code)
	if ok && in.Nop {
		return 0, w, true
	}
	if !ok || !in.plain() {
		return 0, w, false
	}
	op := x.of(code[:in.Size])
	if op == nil {
		return 0, w, false
	}
	reads, w, ok = x.registers(op)
	x.done(op)
	return reads, w, ok
}

func (x *engine) writes(code []byte) (w Writes, ok bool) {
	if _, w, ok = x.accesses(code); !ok {
		return Writes{}, false
	}
	return w, true
}

// plain returns the operation of the first instruction in code, if that goes on at the next one and is known, and else nil.
func (x *engine) plain(code []byte) *operation {
	in, ok := x.next(code)
	if !ok || !in.plain() {
		return nil
	}
	return x.of(code[:in.Size])
}

func (x *engine) updates(code []byte) Registers {
	op := x.plain(code)
	if op == nil {
		return 0
	}
	defer x.done(op)
	var out Registers
	for _, a := range op.args() {
		if a.moves && a.reg >= 0 {
			out |= 1 << a.reg
		}
	}
	if !op.does.updates() || op.count == 0 || op.list[0].kind != registerOperand || op.cleared() {
		return out
	}
	to := op.list[0].reg
	reads := op.does.flags&firstToo != 0
	for _, a := range op.args()[1:] {
		reads = reads || a.kind == registerOperand && a.reg == to || a.kind == memoryOperand && (a.reg == to || a.plus == to)
	}
	if reads {
		out |= 1 << to
	}
	return out
}

func (x *engine) chooses(code []byte, register uint64) bool {
	op := x.plain(code)
	if op == nil {
		return false
	}
	defer x.done(op)
	of := op.args()
	is := func(a operand) bool { return a.kind == registerOperand && a.reg >= 0 && uint64(a.reg) == register }
	if op.does.verb != chooses || len(of) < 2 || !is(of[0]) {
		return false
	}
	return op.does.flags == firstToo || slices.ContainsFunc(of[1:], is)
}

func (x *engine) decides(code []byte) bool {
	op := x.plain(code)
	if op == nil {
		return false
	}
	defer x.done(op)
	switch op.does.verb {
	case truth, decides:
		return true
	case chooses:
		return op.does.flags&flagged == 0
	}
	return op.same(borrows)
}

func (x *engine) aligns(code []byte, register uint64) bool {
	op := x.plain(code)
	if op == nil {
		return false
	}
	defer x.done(op)
	of := op.args()
	return op.does.verb == masks && len(of) >= 2 && of[0].kind == registerOperand && of[0].reg >= 0 && uint64(of[0].reg) == register && of[len(of)-1].kind == numberOperand && of[len(of)-1].n < 0
}

// shape is a number of what an instruction is called, the kinds of its operands, and how much memory it is about.
func (x *engine) shape(code []byte) uint64 {
	in, ok := x.next(code)
	if !ok {
		return 0
	}
	op := x.of(code[:in.Size])
	if op == nil {
		return 0
	}
	defer x.done(op)
	const offset, prime = 0xcbf29ce484222325, 0x100000001b3 // FNV-1a
	h := uint64(offset)
	for i := range len(op.name) {
		h = (h ^ uint64(op.name[i])) * prime
	}
	h = (h ^ uint64(op.code)) * prime
	for _, a := range op.args() {
		h = (h ^ uint64(a.kind) ^ uint64(a.size)<<8) * prime
	}
	return h
}

// slot says what an instruction does to a slot.
func (x *engine) slot(code []byte, m Slot) (size int, did Effect) {
	in, ok := x.next(code)
	if !ok || !in.plain() {
		return 0, Lost
	}
	if in.Nop {
		return in.Size, Kept
	}
	op := x.of(code[:in.Size])
	if op == nil {
		return 0, Lost
	}
	did = x.does(op, m)
	if x.done(op); did == Lost {
		return 0, Lost
	}
	return in.Size, did
}

// does says what an operation does to a slot.
func (x *engine) does(op *operation, m Slot) (did Effect) {
	if (op.reads | op.writes).Has(m.Base) {
		return Lost
	}
	e := op.does
	if e.verb == pushes || e.verb == pops {
		return Lost // it may be how the slot is written
	}
	base := int8(m.Base)
	did = Kept
	first := true
	for i, a := range op.args() {
		switch a.kind {
		case registerOperand:
			// It is changed, or another register may point into the frame. What is added to it tells
			// where.
			if a.reg == base && (i == 0 || !x.pointsElsewhere(op, m)) {
				return Lost
			}
		case memoryOperand:
			written := first // the first one, if any is
			first = false
			if a.away || a.reg != base && (a.plus != base || a.scale > 0) {
				continue
			}
			n := max(int64(a.size), int64(e.bits/8), 1)
			if e.verb == addresses {
				n = 1 // what is there is not accessed
			}
			each := int64(x.bits / 8) // of several
			switch e.verb {
			case storesMany, loadsMany:
				n = each * registersOf(op)
			case storesTwo, loadsTwo:
				each = n
				n *= 2
			}
			switch {
			case a.moves, a.odd, a.reg >= 0 && a.plus >= 0, e.verb == unknownVerb && a.size == 0:
				return Lost
			case a.n >= m.Off+m.Size || m.Off >= a.n+n:
				continue
			case e.verb == storesMany || e.verb == storesTwo:
				if m.Size != each || (m.Off-a.n)%each != 0 {
					return Lost
				}
				did = Stored
			case op.maybe || a.n != m.Off || n != m.Size || !written || e.verb != stores && (i > 0 || e.flags&firstToo != 0 || !e.writesFirst()):
				return Lost
			default:
				did = Stored
			}
		}
	}
	return did
}

// registersOf is how many registers an operation stores or loads.
func registersOf(op *operation) int64 {
	if op.count < 2 || op.list[0].kind != registerOperand || op.list[1].kind != registerOperand {
		return 16
	}
	return int64((op.list[1].reg-op.list[0].reg)&15) + 1
}

// pointsElsewhere reports whether an operation computes an address from a slot's register that is not
// the slot's.
func (x *engine) pointsElsewhere(op *operation, m Slot) bool {
	e, args := op.does, op.args()
	if e.verb != adds || e.flags&firstToo != 0 || len(args) != 3 || args[2].kind != numberOperand || args[0].reg == int8(m.Base) {
		return false
	}
	at := args[2].n
	return at < m.Off || at >= m.Off+m.Size
}

// endsWithStore tests whether the last instruction in code stores a slot.
func (x *engine) endsWithStore(code []byte, m Slot) bool {
	step := x.arch.Stride()
	for size := step; size <= min(maxX86, len(code)); size += step {
		last := code[len(code)-size:]
		if in, ok := x.next(last); !ok || in.Size != size {
			continue
		}
		if _, did := x.slot(last, m); did == Stored {
			return true
		}
	}
	return false
}

// Stride returns of what number of bytes the sizes of instructions are multiples.
func (a *Arch) Stride() int { return int(max(a.Fixed, a.Step, 1)) }

func (x *engine) calls(code []byte, addr uint64, visit func(after int, target uint64)) {
	step := x.arch.Stride()
	for i := 0; i+step <= len(code); i += step {
		in, ok := x.next(code[i:])
		if !ok || !in.Call {
			continue
		}
		to, from := in.Target, i
		if to == 0 && x.arch.Pair != nil && i >= 4 {
			to, _ = x.arch.Pair(code[i-4:], code[i:])
			from = i - 4
		}
		if to != 0 {
			visit(i+in.Size, addr+uint64(from)+uint64(to))
		}
	}
}

// uses follows code to the first instruction after which execution goes on elsewhere; a branch under a condition is followed to the next
// one.
func (x *engine) uses(code []byte) bool {
	result := x.results & -x.results
	for range mostAfterCall {
		in, ok := x.next(code)
		if !ok {
			return false
		}
		text := code[:in.Size]
		code = code[in.Size:]
		if in.Nop {
			continue
		}
		op := x.of(text)
		if op == nil {
			return false
		}
		reads, w, known := x.registers(op)
		if first := &op.list[0]; !known && op.count > 0 && first.kind == registerOperand {
			if in.plain() {
				w.Registers |= 1 << first.reg
			} else {
				reads |= 1 << first.reg // by a branch
			}
		}
		x.done(op)
		switch {
		case reads&result != 0:
			return true
		case w.Registers&result != 0, !in.plain() && (!in.Branches || !in.Onward || in.Call):
			return false
		}
	}
	return false
}
