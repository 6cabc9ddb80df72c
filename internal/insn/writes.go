package insn

import "github.com/bpfprologue/bpfprologue/internal/symbolic"

// Registers is a set of registers by their DWARF numbers, which are less than 64.
type Registers = symbolic.Registers

// Code is machine code at an address.
type Code struct {
	Addr  uint64
	Bytes []byte
}

// Writes is what an instruction changes, flags aside.
type Writes struct {
	Registers Registers
	Memory    bool
}

// Touches reports whether something of what is in other changes.
func (w Writes) Touches(other Writes) bool {
	return w.Registers&other.Registers != 0 || w.Memory && other.Memory
}
