package insn

// Writes is what an instruction changes, flags aside.
type Writes struct {
	Registers Registers
	Memory    bool
}

// Touches reports whether something of what is in other changes.
func (w Writes) Touches(other Writes) bool {
	return w.Registers&other.Registers != 0 || w.Memory && other.Memory
}
