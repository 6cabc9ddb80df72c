package insn

import (
	"strings"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/symbolic"
)

// operation is one instruction as an architecture's decoder has it: what it is about, and what it does. Decoders of
// golang.org/x/arch say its name, and a table what operations of that name do; decoders that are tables say both.
type operation struct {
	name string
	does effect
	// code tells operations without a name apart.
	code  uint32
	count uint8
	list  [5]operand
	// reads and writes are registers besides those of the operands.
	reads, writes Registers
	maybe         bool // it does so only under a condition
	flags         bool // conditions then depend on its result
}

// args returns the operands.
func (op *operation) args() []operand { return op.list[:op.count] }

// add adds an operand. None has more than five.
func (op *operation) add(a operand) {
	if int(op.count) < len(op.list) {
		op.list[op.count] = a
		op.count++
	}
}

// operand is a general register, memory, a number, or something else.
type operand struct {
	n     int64 // the number, or the distance from the address
	size  int32 // of the memory, where operations do not say it; bytes
	kind  operandKind
	reg   int8  // DWARF number of the register, or of that of the address; -1 is none
	plus  int8  // that of the index; -1 is none
	cut   int8  // so many bits of the register, or the index, are extended before: with a sign, if less than 0. 0 is all
	scale uint8 // by how much it is shifted to the left
	odd   bool  // something else happens to it
	moves bool  // the address's register changes too: to the address, or with after, after the access
	after bool  // n is then what is added to it, or 0 if that is not known
	here  bool  // n is from the address of the instruction
	away  bool  // in memory that no address is in: of a segment
	from  bool  // odd alone because it is not known how much memory from the address on is accessed
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
	to    uint8 // how many of a register it writes: the others become 0, or stay. 0 is all, or those of bits
	flags effectFlags
}

type effectFlags uint16

const (
	signedBits effectFlags = 1 << iota // what is read is sign-extended to a register
	firstToo                           // its first operand is also read: it has two
	keepsUpper                         // the upper bits of the register stay
	inverted                           // the second operand is subtracted from the third
	elsewhere                          // the register is none of the general ones
	memoryToo                          // it also writes its operand in memory
	secondToo                          // and its second operand
	flagged                            // conditions then depend on its result
	compared                           // and are those of a comparison
	around                             // shifts by more than the bits of a register begin again at 0
	clears                             // the result is 0 if its operands are the same register
	borrows                            // and then it is made of a condition alone
	divides                            // it is a division
)

type verb uint8

const (
	unknownVerb verb = iota
	nothing          // writes neither registers nor memory
	compares         // its two operands
	tests            // its two operands, by AND
	computes         // its first operand, from the others
	moves            // the second operand to the first
	adds
	subtracts
	multiplies // the second operand by the third
	shiftsLeft
	shiftsRight
	masks     // AND
	flips     // XOR
	extends   // the lower bits of the second operand
	selects   // bits of the rotated second operand: what an architecture's table says
	chooses   // one of its operands
	truth     // 1 or 0
	decides   // 1 if a condition holds, which the second operand is, and else 0
	addresses // the address of the memory operand
	loads
	stores
	loadsMany // from the first to the second register, in turn
	storesMany
	loadsTwo // the first and the second register
	storesTwo
	pushes   // its first operand below what the stack pointer points to, and moves that there
	pops     // its first operand
	movesFar // to a register that is none of the general ones, to which branches lead
)

// writesFirst reports whether the first operand changes.
func (e effect) writesFirst() bool {
	switch e.verb {
	case computes, moves, adds, subtracts, multiplies, shiftsLeft, shiftsRight, masks, flips, extends, selects, truth, decides, chooses, addresses, loads, pops:
		return true
	}
	return false
}

// updates reports whether what the first operand becomes may depend on what it was, other than by a move.
func (e effect) updates() bool {
	switch e.verb {
	case moves, loads, extends, truth, decides, chooses, pops:
		return false
	}
	return e.writesFirst()
}

// operations are what is known of an architecture's instructions besides where they lead.
type operations struct {
	// decode decodes the first instruction in code by a table. ok is false if that does not have it. An architecture without such a table
	// has a decoder that names operations, and what those of a name do.
	decode  func(code []byte, op *operation) (ok bool)
	named   func(code []byte) (op operation, ok bool)
	effects func() map[string]effect
	bits    uint8     // of a register
	stack   int8      // the stack pointer's number, where operations push and pop
	frame   Registers // that point into a function's frame; the second of them is the frame pointer
	pointer uint64    // the frame pointer, in functions that use one
	lost    Registers // that functions do not preserve
	results Registers // of functions
	// self is Arch.self.
	self func(code []byte) (reg uint8, ok bool)
	// condition returns the condition under which the first instruction in code branches, and sets what
	// it depends on.
	condition func(t *symbolic.Trace, code []byte) symbolic.Condition
	// bitsOf carries out operations that select bits.
	bitsOf func(t *symbolic.Trace, op *operation, e effect) symbolic.Value
	// leads returns where an indirect jump leads.
	leads func(o *operations, t *symbolic.Trace, code []byte, addr uint64) symbolic.Value
	// global returns an address that an operation computes from its own: LARL, AUIPC. It may be nil.
	global func(op *operation, addr uint64) (uint64, bool)
	// steps is set if accesses can change the register of their address.
	steps bool
	// before sets what registers are by the address of an instruction. It may be nil.
	before func(t *symbolic.Trace, addr uint64)
}

// fromTables completes an architecture that is described by tables.
func fromTables(a *Arch, next func(code []byte) (Insn, bool), o *operations) *Arch {
	x := &engine{arch: a, next: next, operations: o}
	if x.of, x.done = x.made, x.reuse; o.named != nil {
		x.of, x.done = new(decoded).by(o), func(*operation) {}
	}
	a.Next = next
	a.Slots = &SlotDecoder{Frame: o.pointer, next: x.slot, ends: x.endsWithStore}
	if a.Results.Uses = x.uses; a.Results.Calls == nil {
		a.Results.Calls = x.calls
	}
	a.Shape, a.Writes, a.Updates, a.Chooses, a.Decides, a.Aligns, a.Accesses, a.Operand = x.shape, x.writes, x.updates, x.chooses, x.decides, x.aligns, x.accesses, x.operandAt
	a.Spills, a.Numbered, a.Touches, a.Touching = x.spills, x.numbered, x.touches, x.touching
	if o.steps {
		a.Steps = x.stepped
	}
	a.Follow, a.frame, a.Self, a.bits = x.follows, o.frame, o.self, o.bits
	a.Leads = func(t *symbolic.Trace, code []byte, addr uint64) symbolic.Value { return o.leads(o, t, code, addr) }
	return a
}

// effectsOf returns what makes a table of effects from those of groups of names, when it is asked for: most processes ask for none.
func effectsOf(groups []effectGroup) func() map[string]effect {
	return sync.OnceValue(func() map[string]effect {
		out := make(map[string]effect)
		for _, g := range groups {
			for name := range strings.FieldsSeq(g.names) {
				out[name] = g.effect
			}
		}
		return out
	})
}

type effectGroup struct {
	effect
	names string
}
