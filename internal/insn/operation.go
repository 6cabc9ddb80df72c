package insn

import (
	"encoding/binary"
	"hash/fnv"
	"math/bits"
	"strings"
)

// operation is one instruction as an architecture's decoder (golang.org/x/arch) has it: a name, and what
// it is about. What an operation of that name does is in a table.
type operation struct {
	name  string
	args  []operand
	maybe bool // it does so only under a condition
	flags bool // conditions then depend on its result
}

// operand is a general register, memory, a number, or something else.
type operand struct {
	kind  operandKind
	reg   int8  // DWARF number of the register, or of that of the address; -1 is none
	plus  int8  // that of the index; -1 is none
	n     int64 // the number, or the distance from the address
	size  int64 // of the memory, where operations do not say it; bytes
	moves bool  // the address's register changes too: to the address, or with after, after the access
	after bool
	// scale is by how much the register, or the index, is shifted to the left. With odd something else
	// happens to it.
	scale uint8
	odd   bool
}

type operandKind uint8

const (
	otherOperand operandKind = iota
	registerOperand
	numberOperand
	memoryOperand
)

// effect is what the operations of a name do.
type effect struct {
	verb  verb
	bits  uint8 // how many of a register or of memory it is about
	flags effectFlags
}

type effectFlags uint8

const (
	signedBits effectFlags = 1 << iota // what is read is sign-extended to a register
	firstToo                           // its first operand is also read: it has two
	keepsUpper                         // the upper bits of the register stay
	inverted                           // the second operand is subtracted from the third
	elsewhere                          // the register is none of the general ones
)

type verb uint8

const (
	unknownVerb verb = iota
	nothing          // writes neither registers nor memory
	compares         // its two operands
	computes         // its first operand, from the others
	moves            // the second operand to the first
	adds
	subtracts
	shiftsLeft
	shiftsRight
	masks     // AND
	extends   // the lower bits of the second operand
	selects   // bits of the rotated second operand: what an architecture's table says
	addresses // the address of the memory operand
	loads
	stores
	loadsMany // from the first to the second register, in turn
	storesMany
	movesFar // to a register that is none of the general ones, to which branches lead
)

// writesFirst reports whether the first operand is a register that changes.
func (e effect) writesFirst() bool {
	switch e.verb {
	case computes, moves, adds, subtracts, shiftsLeft, shiftsRight, masks, extends, selects, addresses, loads:
		return e.flags&elsewhere == 0
	}
	return false
}

// operations are what is known of an architecture's instructions besides where they lead.
type operations struct {
	// decode returns the first instruction in code. ok is false if the decoder does not know it.
	decode  func(code []byte) (op operation, ok bool)
	effects map[string]effect
	bits    uint8     // of a register
	frame   Registers // that point into a function's frame; the second of them is the frame pointer
	pointer uint64    // the frame pointer, in functions that use one
	lost    Registers // that functions do not preserve
	results Registers // of functions
	// self is Arch.self.
	self func(code []byte) (reg uint8, ok bool)
	// condition returns the condition under which the first instruction in code branches, and sets what
	// it depends on.
	condition func(t *trace, code []byte) condition
	// bitsOf carries out operations that select bits.
	bitsOf func(t *trace, op *operation, e effect) value
	// leads returns where an indirect jump leads.
	leads func(o *operations, t *trace, code []byte, addr uint64) value
	// global returns an address that an operation computes from its own: LARL, AUIPC.
	global func(op *operation, addr uint64) (uint64, bool)
	// before sets what registers are by the address of an instruction. It may be nil.
	before func(t *trace, addr uint64)
}

// fromTables completes an architecture that is described by tables.
func fromTables(a *Arch, f *forms, o *operations) *Arch {
	x := &engine{arch: a, forms: f, operations: o}
	a.Next = f.next
	if a.word = littleEndian; a.bigEndian {
		a.word = func(code []byte) uint32 { return bits.ReverseBytes32(littleEndian(code)) }
	}
	a.Slots = &SlotDecoder{Frame: o.pointer, next: x.slot, ends: x.endsWithStore}
	a.Results = Results{Calls: x.calls, Uses: x.uses}
	a.Shape, a.Writes, a.updates = x.shape, x.writes, x.updates
	a.trace, a.frame, a.self, a.width = x.follows, o.frame, o.self, o.bits
	a.target = func(t *trace, code []byte, addr uint64) value { return o.leads(o, t, code, addr) }
	if len(a.Steps) > 0 {
		a.Uprobe = a.uprobeOf
	}
	return a
}

// engine answers questions about instructions from an architecture's tables.
type engine struct {
	arch *Arch
	*forms
	*operations
	known decoded
}

// operation decodes an instruction that goes on at the next one.
func (x *engine) operation(code []byte) (op operation, e effect, ok bool) {
	in, ok := x.next(code)
	if !ok || !in.plain() {
		return op, e, false
	}
	op, ok = x.known.of(code[:in.Size], x.decode)
	return op, x.effects[op.name], ok
}

// plain reports whether an instruction only goes on at the next one.
func (in *Insn) plain() bool {
	return in.Onward && !in.Branches && !in.Call && !in.Lost && !in.Leaves && !in.Trap
}

func (x *engine) writes(code []byte) (w Writes, ok bool) {
	if in, ok := x.next(code); ok && in.Nop {
		return w, true
	}
	op, e, ok := x.operation(code)
	if !ok {
		return w, false
	}
	for _, a := range op.args {
		if a.moves {
			return w, false
		}
	}
	switch e.verb {
	case nothing, compares, movesFar:
		return w, true
	case stores:
		return Writes{Memory: true}, true
	}
	if e.flags&elsewhere != 0 && e.verb != unknownVerb {
		return w, true
	}
	if !e.writesFirst() || len(op.args) == 0 || op.args[0].kind != registerOperand {
		return w, false
	}
	return Writes{Registers: 1 << op.args[0].reg}, true
}

func (x *engine) updates(code []byte) Registers {
	op, e, ok := x.operation(code)
	if !ok {
		return 0
	}
	var out Registers
	for _, a := range op.args {
		if a.moves && a.reg >= 0 {
			out |= 1 << a.reg
		}
	}
	if !e.writesFirst() || e.verb == moves || e.verb == loads || len(op.args) == 0 || op.args[0].kind != registerOperand {
		return out
	}
	to := op.args[0].reg
	reads := e.flags&firstToo != 0
	for _, a := range op.args[1:] {
		reads = reads || a.kind != otherOperand && a.kind != numberOperand && (a.reg == to || a.plus == to && a.kind == memoryOperand)
	}
	if reads {
		out |= 1 << to
	}
	return out
}

// shape is a number of what an instruction is called and the kinds of its operands.
func (x *engine) shape(code []byte) uint64 {
	in, ok := x.next(code)
	if !ok {
		return 0
	}
	op, ok := x.known.of(code[:in.Size], x.decode)
	if !ok {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(op.name))
	for _, a := range op.args {
		_, _ = h.Write([]byte{byte(a.kind)})
	}
	return h.Sum64()
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
	op, ok := x.known.of(code[:in.Size], x.decode)
	if !ok {
		return 0, Lost
	}
	e := x.effects[op.name]
	base := int8(m.Base)
	did = Kept
	first := true
	for i, a := range op.args {
		switch a.kind {
		case registerOperand:
			// It is changed, or another register may point into the frame. What is added to it tells
			// where.
			if a.reg == base && (i == 0 || !x.pointsElsewhere(&op, e, m)) {
				return 0, Lost
			}
		case memoryOperand:
			written := first // the first one, if any is
			first = false
			if a.reg != base && a.plus != base {
				continue
			}
			n := max(a.size, int64(e.bits/8), 1)
			many := e.verb == storesMany || e.verb == loadsMany
			if many {
				n = int64(x.bits/8) * registersOf(&op)
			}
			switch {
			case a.moves, a.reg >= 0 && a.plus >= 0, e.verb == unknownVerb && a.size == 0:
				return 0, Lost
			case a.n >= m.Off+m.Size || m.Off >= a.n+n:
				continue
			case e.verb == stores && !op.maybe && a.n == m.Off && n == m.Size && written,
				e.verb == storesMany && m.Size == int64(x.bits/8) && (m.Off-a.n)%m.Size == 0:
				did = Stored
			default:
				return 0, Lost
			}
		}
	}
	return in.Size, did
}

// registersOf is how many registers an operation stores or loads.
func registersOf(op *operation) int64 {
	if len(op.args) < 2 || op.args[0].kind != registerOperand || op.args[1].kind != registerOperand {
		return 16
	}
	return int64((op.args[1].reg-op.args[0].reg)&15) + 1
}

// pointsElsewhere reports whether an operation computes an address from a slot's register that is not
// the slot's.
func (x *engine) pointsElsewhere(op *operation, e effect, m Slot) bool {
	if e.verb != adds || e.flags&firstToo != 0 || len(op.args) != 3 || op.args[2].kind != numberOperand || op.args[0].reg == int8(m.Base) {
		return false
	}
	at := op.args[2].n
	return at < m.Off || at >= m.Off+m.Size
}

// endsWithStore tests whether the last instruction in code stores a slot.
func (x *engine) endsWithStore(code []byte, m Slot) bool {
	for size := 2; size <= min(8, len(code)); size += 2 {
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

func (x *engine) calls(code []byte, addr uint64, visit func(after int, target uint64)) {
	step := int(max(x.arch.Fixed, x.arch.Step))
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

func (x *engine) uses(code []byte) bool {
	result := int8(0)
	for !x.results.Has(uint64(result)) {
		result++
	}
	for range mostAfterCall {
		in, ok := x.next(code)
		if !ok || !in.plain() {
			return false
		}
		if in.Nop {
			code = code[in.Size:]
			continue
		}
		op, ok := x.known.of(code[:in.Size], x.decode)
		if !ok {
			return false
		}
		code = code[in.Size:]
		e := x.effects[op.name]
		for i, a := range op.args {
			reads := i > 0 || !e.writesFirst() && e.verb != unknownVerb || e.flags&firstToo != 0
			if a.kind == registerOperand && a.reg == result && reads || a.kind == memoryOperand && (a.reg == result || a.plus == result) {
				return true
			}
		}
		if len(op.args) > 0 && op.args[0].kind == registerOperand && op.args[0].reg == result {
			return false
		}
	}
	return false
}

// effectsOf makes a table of effects from those of groups of names.
func effectsOf(groups []effectGroup) map[string]effect {
	out := make(map[string]effect)
	for _, g := range groups {
		for name := range strings.FieldsSeq(g.names) {
			out[name] = g.effect
		}
	}
	return out
}

type effectGroup struct {
	effect
	names string
}

// CannotStep reports whether the kernel refuses a probe at the first instruction in code, by Steps alone.
func (a *Arch) CannotStep(code []byte) bool {
	word := a.Word(code)
	for _, p := range a.Steps {
		if p.Fits(word) {
			return p.Refused
		}
	}
	return false
}

// Word returns the first four bytes of code as a number in the order of the architecture's
// instructions, as patterns have it. What is missing is 0.
func (a *Arch) Word(code []byte) uint32 {
	if a.word == nil {
		return littleEndian(code)
	}
	return a.word(code)
}

func littleEndian(code []byte) uint32 {
	var four [4]byte
	copy(four[:], code)
	return binary.LittleEndian.Uint32(four[:])
}
