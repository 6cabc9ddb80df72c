package symbolic

// Registers is a set of registers by their DWARF numbers, which are less than 64.
type Registers uint64

// Has reports whether a register is in the set.
func (r Registers) Has(number uint64) bool { return number < 64 && r>>number&1 != 0 }
