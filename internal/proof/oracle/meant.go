package oracle

import "bytes"

// GCC writes the extraction of a bit-field as if a register had 8 bits, the number of its bytes, and shifts bytes and numbers of 16 bits as if they
// had a register's bits. What it means follows from how it comes to write so (gcc/cfgexpand.cc, expand_debug_expr; gcc/dwarf2out.cc, mem_loc_descriptor).

// signed16 and signed8 extend the sign of a number of 16 bits, and of a byte.
var (
	signed16 = []byte{0x08, 0x30, 0x24, 0x08, 0x30, 0x26}
	signed8  = []byte{0x08, 0x38, 0x24, 0x08, 0x38, 0x26}
)

// AsMeant returns an expression of GCC's with these operations as they are meant.
func AsMeant(expr []byte) []byte {
	lit := func(at int) (n byte, ok bool) {
		if at < 0 || expr[at] < 0x30 || expr[at] > 0x4f {
			return 0, false
		}
		return expr[at] - 0x30, true
	}
	// A field is all that the expression says.
	for _, tail := range [...]struct {
		shift byte
		rest  []byte
	}{{0x26, []byte{0x08, 0xff, 0x1a, 0x9f}}, {0x25, append(bytes.Clone(signed8), 0x9f)}} {
		at := len(expr) - len(tail.rest) - 1
		if at < 0 || expr[at] != tail.shift || !bytes.Equal(expr[at+1:], tail.rest) {
			continue
		}
		down, ok := lit(at - 1)
		if !ok || down == 0 || down > 7 {
			continue
		}
		up, shifted := lit(at - 3)
		shifted = shifted && expr[at-2] == 0x24
		unsigned := tail.shift == 0x26
		switch {
		case shifted && up > 0 && up <= down:
			out := append(bytes.Clone(expr[:at-3]), 0x30+down-up, 0x25)
			if unsigned {
				return append(out, 0x08, 1<<(8-down)-1, 0x1a, 0x9f)
			}
			return append(out, 0x08, 56+down, 0x24, 0x08, 56+down, 0x26, 0x9f)
		case !shifted && !unsigned:
			return append(bytes.Clone(expr[:at+1]), 0x08, 56+down, 0x24, 0x08, 56+down, 0x26, 0x9f)
		}
	}
	// Nothing follows the shifts where the parameter has as many bits as the memory: they have the memory's bits. As above, the field has a sign if the shift has none.
	if at := len(expr) - 7; at >= 0 && expr[at] == 0x94 && (expr[at+1] == 1 || expr[at+1] == 2) && expr[at+3] == 0x24 && expr[at+6] == 0x9f {
		up, shifted := lit(at + 2)
		down, ok := lit(at + 4)
		if bits := 8 * expr[at+1]; shifted && ok && up > 0 && up <= down && down < bits && (expr[at+5] == 0x25 || expr[at+5] == 0x26) {
			return append(bytes.Clone(expr[:at+2]), 0x08, 64-bits+up, 0x24, 0x08, 64-bits+down, 0x25+0x26-expr[at+5], 0x9f)
		}
	}
	for at := 0; at+3 < len(expr); at++ {
		if _, ok := lit(at + 2); !ok || expr[at] != 0x94 || expr[at+3] != 0x26 {
			continue
		}
		switch {
		case expr[at+1] == 2:
			return append(append(bytes.Clone(expr[:at+2]), signed16...), expr[at+2:]...)
		case expr[at+1] == 1 && bytes.HasPrefix(expr[at+4:], signed8):
			return append(append(bytes.Clone(expr[:at+2]), signed8...), expr[at+2:]...)
		}
	}
	return expr
}
