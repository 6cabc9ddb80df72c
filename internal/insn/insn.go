// Package insn says what machine instructions do: how long they are, where execution
// continues after them, and what they do to registers, memory and stack slots. Each architecture is data: a table of where execution goes
// on, and one of operations, which one engine reads; and a line in the table below.
package insn

import (
	"encoding/binary"

	"github.com/bpfprologue/bpfprologue/internal/symbolic"
)

// Arch describes an architecture's instructions.
type Arch struct {
	// Fixed is the size in bytes of every instruction, or 0 if they differ. Instructions begin at
	// multiples of Step, which is 0 for 1.
	Fixed, Step uint64
	// Next decodes the instruction at the start of code. ok is false if it is unknown.
	Next func(code []byte) (in Insn, ok bool)
	// Slots finds stores to stack slots.
	Slots *SlotDecoder
	// Results finds the uses of functions' results.
	Results Results
	// Shape returns a number that is equal for instructions that do the same with the same
	// kinds of operands.
	Shape func(code []byte) uint64
	// Global returns the address of the memory that the first instruction in code reads or writes,
	// if the instruction, which is at addr, contains that address. It is nil where none does.
	Global func(code []byte, addr uint64) (at uint64, ok bool)
	// Writes returns what the first instruction in code changes. ok is false if that is not
	// known.
	Writes func(code []byte) (w Writes, ok bool)
	// Spills reports whether the first instruction in code writes no memory but at an offset from the stack pointer.
	Spills func(code []byte) bool
	// Numbered reports whether an operand of the first instruction in code is a number, or a register that is always 0.
	Numbered func(code []byte) bool
	// Pair returns where a call or jump leads whose target the instruction before it computes: the
	// distance from that one. nil if there are none.
	Pair func(before, code []byte) (to int64, ok bool)
	// Accesses returns the registers that the first instruction in code reads, and what it writes. ok is false if that may be more.
	Accesses func(code []byte) (reads Registers, w Writes, ok bool)
	// Operand returns the memory at a fixed distance from a register that the first instruction in code accesses, and whether it does nothing else than
	// to write it. ok is false if it accesses none, or other memory.
	Operand func(code []byte) (m Slot, stores, ok bool)
	// Updates returns the general registers that the first instruction in code computes from
	// what they were.
	Updates func(code []byte) Registers
	// Chooses reports whether the first instruction in code leaves a register as it is or, under a condition, gives it another's value.
	Chooses func(code []byte, register uint64) bool
	// MayChoose tells most code apart whose first instruction is not one of which Chooses is true. nil means that there is no such instruction.
	MayChoose func(code []byte) bool
	// Decides reports whether what the first instruction in code makes is a number that a condition alone says, or the one of two values that it says.
	Decides func(code []byte) bool
	// Aligns reports whether the first instruction in code clears lower bits of a register.
	Aligns func(code []byte, register uint64) bool
	// Follow follows the first instruction in code, which is at addr. It returns the condition
	// under which that branches.
	Follow func(t *symbolic.Trace, code []byte, addr uint64) symbolic.Condition
	// frame are the registers that point into a function's frame, if any do.
	frame Registers
	// Self returns the register that has the address of the function at whose beginning code is. ok is
	// false if none is known to.
	Self func(code []byte) (reg uint8, ok bool)
	// bits is the size of a register.
	bits uint8
	// BigEndian is the order of bytes in memory and in instructions.
	BigEndian bool
	// Steps returns what an access adds to the register of its address. ok is false for other instructions, and nil is for architectures
	// without such ones.
	Steps func(code []byte) (register uint8, by int64, ok bool)
	// Touches returns what the first instruction in code, which is at addr, accesses in memory. ok is false if that is nothing, or is not known.
	Touches func(t *symbolic.Trace, code []byte, addr uint64) (out Touch, ok bool)
	// Touching says whether the first instruction in code writes memory. ok is false if it accesses none.
	Touching func(code []byte) (writes, ok bool)
	// Leads returns where the first instruction in code leads, if it is an indirect jump at addr.
	Leads func(t *symbolic.Trace, code []byte, addr uint64) symbolic.Value
}

// all make the architectures when one is asked for: most processes ask for one, and many for none.
var all = map[string]func() *Arch{"amd64": amd64, "arm64": arm64, "armhf": arm, "i386": i386, "loong64": loong64, "ppc64el": ppc64el, "riscv64": riscv64, "s390x": s390x}

// Word returns the first four bytes of code as a number in the order of the architecture's
// instructions, as patterns have it. What is missing is 0.
func (a *Arch) Word(code []byte) uint32 {
	var four [4]byte
	copy(four[:], code)
	if a.BigEndian {
		return binary.BigEndian.Uint32(four[:])
	}
	return binary.LittleEndian.Uint32(four[:])
}

// State returns the state of a processor where a path begins.
func (a *Arch) State() *symbolic.State { return symbolic.NewState(a.Begin(), a.Follow) }

// Begin returns what a processor holds where a path begins.
func (a *Arch) Begin() *symbolic.Trace { return symbolic.New(a.frame, a.bits) }

// Bits returns the size of a register.
func (a *Arch) Bits() uint8 { return a.bits }

// For returns the instructions of the architecture with a name, or nil.
func For(arch string) *Arch {
	if made := all[arch]; made != nil {
		return made()
	}
	return nil
}

// Insn is one instruction: its size, what it is, and where execution may continue after
// it. After a return it continues nowhere.
type Insn struct {
	Size     int   // bytes
	Onward   bool  // may continue at the next instruction, if only after a call returns
	Branches bool  // may continue at Target
	Lost     bool  // may continue at an address that the instruction does not contain
	Leaves   bool  // may return, under a condition
	Call     bool  // calls a function, at Target if that is not 0
	Trap     bool  // traps, always: what the system does then decides whether it goes on
	Nop      bool  // does nothing: padding, or room for what is patched in
	Target   int64 // bytes from the instruction's beginning
}

// Slot is memory at a fixed distance from a register.
type Slot struct {
	Base uint64 // DWARF number of the register
	Off  int64  // bytes
	Size int64  // bytes
}

// Overlaps reports whether two slots at one register have a byte in common.
func (m Slot) Overlaps(n Slot) bool {
	return m.Base == n.Base && m.Off < n.Off+n.Size && n.Off < m.Off+m.Size
}

// Effect is what an instruction does to a slot.
type Effect uint8

const (
	// Lost means that it reads or changes the slot, or that what follows is unknown.
	Lost Effect = iota
	// Kept means that it does not access the slot.
	Kept
	// Stored means that it writes exactly the slot.
	Stored
)

// SlotDecoder finds stores to stack slots.
type SlotDecoder struct {
	// Frame is the DWARF number of the frame pointer, in functions that use one.
	Frame uint64
	// next returns the size of the first instruction in code, and its effect on a slot.
	next func(code []byte, m Slot) (size int, did Effect)
	// ends cheaply tests whether code may end with a store to the slot.
	ends func(code []byte, m Slot) bool
}

// StoredLast returns the offset in bytes of the last instruction in code, if that stores a
// slot and no instruction before it accesses the slot.
func (d *SlotDecoder) StoredLast(code []byte, m Slot) (at int, ok bool) {
	if !d.ends(code, m) {
		return 0, false
	}
	return d.storedLast(code, m)
}

// StoredLater reports whether code stores a slot only behind a site: not before it, and first of
// all in what follows. before is the code up to the site, such as a function's prologue, or none, and
// after what follows. Between the site and the store are no other
// accesses, and only branches that lead forwards, to the store or before it: so each way comes to it.
// The store is at an offset of after.
func (a *Arch) StoredLater(before, after []byte, m Slot) (stored int, ok bool) {
	for at := 0; at < len(before); {
		in, ok := a.Next(before[at:])
		if !ok || in.Size <= 0 {
			return 0, false
		}
		if _, did := a.Slots.next(before[at:], m); did == Stored {
			return 0, false
		}
		at += in.Size
	}
	most := int64(0) // to where a branch leads
	for at := 0; at < len(after); {
		in, ok := a.Next(after[at:])
		if !ok || in.Size <= 0 {
			return 0, false
		}
		switch _, did := a.Slots.next(after[at:], m); {
		case did == Stored:
			return at, most <= int64(at)
		case did == Kept:
		case in.Branches && in.Onward && in.Target > 0:
			most = max(most, int64(at)+in.Target)
		default:
			return 0, false
		}
		at += in.Size
	}
	return 0, false
}

func (d *SlotDecoder) storedLast(code []byte, m Slot) (at int, ok bool) {
	for at < len(code) {
		n, did := d.next(code[at:], m)
		if did != Kept {
			return at, did == Stored && at+n == len(code)
		}
		at += n
	}
	return 0, false
}
