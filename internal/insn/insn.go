// Package insn says what machine instructions do: how long they are, where the processor
// goes from them, which of them kprobes take, and what they do to a stack slot. There is one
// file for each architecture; adding one is adding a file and a line to the table below.
package insn

// Arch is what is known of an architecture's instructions.
type Arch struct {
	// CallSize is the bytes of ftrace's call at a function's beginning.
	CallSize uint64
	// Fixed is the bytes of every instruction, or 0 if they differ.
	Fixed uint64
	// Next decodes the instruction that some code begins with. ok is false if it is not
	// known.
	Next func(code []byte) (in Insn, ok bool)
	// Steps are the instructions of a fixed size that the kernel's kprobes take or refuse:
	// the first pattern that fits decides, and what none fits they take.
	Steps []Pattern
	// Load and Store begin and end a sequence that must not be interrupted; the kernel
	// looks for it in Sequence instructions before the probe.
	Load, Store Pattern
	Sequence    uint64
	// Slots decodes stores to stack slots; nil if they are not looked for.
	Slots *SlotDecoder
}

var all = map[string]*Arch{"amd64": amd64, "arm64": arm64}

// For returns the instructions of an architecture by its name, or nil.
func For(arch string) *Arch { return all[arch] }

// Insn is one instruction: its size, and where the processor may go from it. A return goes
// nowhere.
type Insn struct {
	Size     int   // bytes
	Onward   bool  // to the next instruction, also when a call comes back
	Branches bool  // to Target
	Lost     bool  // to an address that is not in the instruction
	Target   int64 // bytes from the instruction's beginning
}

// Pattern is the instructions whose words have a value under a mask.
type Pattern struct {
	Mask, Value uint32
	Refused     bool // kprobes refuse them
}

// Fits reports whether a word is such an instruction.
func (p Pattern) Fits(word uint32) bool { return word&p.Mask == p.Value }

// Slot is memory at a fixed distance from a register.
type Slot struct {
	Base uint64 // DWARF number of the register
	Off  int64  // bytes
	Size int64  // bytes that are read
}

// Effect is what an instruction does to a slot.
type Effect uint8

const (
	// Lost: it reads or changes the slot, or what happens next is not known.
	Lost Effect = iota
	// Kept: nothing.
	Kept
	// Stored: it writes all of the slot and nothing else.
	Stored
)

// SlotDecoder finds stores to stack slots.
type SlotDecoder struct {
	// Frame is the DWARF number of the register that points into a frame besides the
	// stack pointer, in functions that have it so.
	Frame uint64
	// next returns the size of the first instruction of some code, and what it does to a
	// slot.
	next func(code []byte, m Slot) (size int, did Effect)
	// ends is a cheap test that code without a store of the slot at its end seldom passes.
	ends func(code []byte, m Slot) bool
}

// StoredLast returns the offset of the last instruction of some code, if that is the first
// to access a slot, and stores it.
func (d *SlotDecoder) StoredLast(code []byte, m Slot) (at int, ok bool) {
	if !d.ends(code, m) {
		return 0, false
	}
	return d.storedLast(code, m)
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
