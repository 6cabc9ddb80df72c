package insn

// Registers is a set of registers by their DWARF numbers, which are less than 64.
type Registers uint64

// Has reports whether a register is in the set.
func (r Registers) Has(number uint64) bool { return number < 64 && r>>number&1 != 0 }

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
