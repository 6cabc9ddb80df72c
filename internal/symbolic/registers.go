package symbolic

// Registers is a set of registers by their DWARF numbers, which are less than 64.
type Registers uint64

// Has reports whether a register is in the set.
func (r Registers) Has(number uint64) bool { return number < 64 && r>>number&1 != 0 }

// One reports whether there is one register in it.
func (r Registers) One() bool { return r != 0 && r&(r-1) == 0 }
