package insn

import "encoding/binary"

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
