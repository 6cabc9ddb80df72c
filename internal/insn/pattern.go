package insn

import "encoding/binary"

// Pattern are 4 bytes, little-endian, that instructions have at a multiple of some bytes from their beginning. The zero Pattern is in all code.
type Pattern struct {
	Unit        int
	Mask, Value uint32
}

// In reports whether code may have such an instruction: others have such bytes too. It is faster than to decode the code.
func (p Pattern) In(code []byte) bool {
	if p.Unit == 0 {
		return true
	}
	i := 0
	for ; i+4 <= len(code); i += p.Unit {
		if binary.LittleEndian.Uint32(code[i:])&p.Mask == p.Value {
			return true
		}
	}
	var rest [8]byte // the last ones, which may be shorter
	copy(rest[:], code[i:])
	for k := 0; i+k < len(code); k += p.Unit {
		if binary.LittleEndian.Uint32(rest[k:])&p.Mask == p.Value {
			return true
		}
	}
	return false
}
