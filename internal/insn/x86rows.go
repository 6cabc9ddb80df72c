package insn

import (
	"slices"
	"strconv"
	"strings"
)

// x86Row is what instructions of an opcode do, and what their operands are.
type x86Row struct {
	name          string
	code          uint32 // tells instructions of a name apart
	coded         bool   // so does the mandatory prefix, and the middle of ModRM if its register is no operand
	does          effect
	reads, writes Registers // besides the operands, by their DWARF numbers
	args          [4]x86Arg
	count         uint8
	mask, value   uint8 // of ModRM
	mod           byte  // 'm' or 'r' if its operand must be memory or a register
	prefix        byte  // that makes it another instruction, or one of the following
}

const (
	anyPrefix byte = 1 + iota
	noPrefix
)

// x86Arg is an operand: what it is, and its width.
type x86Arg struct{ kind, width byte }

// The maps of opcodes: of one byte, 0F, 0F 38, 0F 3A, those of VEX and EVEX prefixes, and what all of their others are.
const (
	x86Map0 = iota
	x86Map1
	x86Map2
	x86Map3
	x86Vex1
	x86Vex2
	x86Vex3
	x86Vex5
	x86Maps
)

// x86VexMaps are the maps of VEX and EVEX prefixes by their numbers; 0 is none.
var x86VexMaps = [32]int{1: x86Vex1, 2: x86Vex2, 3: x86Vex3, 5: x86Vex5, 6: x86Vex5}

// row returns the first row that fits an instruction, or nil.
func (m *x86) row(x *X86) *x86Row {
	m.once.Do(m.read)
	opcodes := x.OpcodeSize - 1 // the map
	switch {
	case x.VEX:
		if opcodes = x86VexMaps[x.Map]; opcodes == 0 {
			return nil
		}
	case opcodes == 2 && x.Opcode[1] == 0x3a:
		opcodes = x86Map3
	}
	rows := m.rows[opcodes][x.Opcode[x.OpcodeSize-1]]
	for i := range rows {
		r := &rows[i]
		switch {
		case x.ModRM&r.mask != r.value, r.mod == 'm' && x.ModRM >= 0xc0, r.mod == 'r' && x.ModRM < 0xc0:
			continue
		case r.prefix == anyPrefix, r.prefix == x.mandatory, r.prefix == noPrefix && x.mandatory == 0:
			if r.does.verb == unknownVerb {
				return nil
			}
			return r
		}
	}
	return nil
}

// x86Group are operations that do the same. text has a name, and what follows it are its opcodes, each with its operands behind a colon, as
// in "add 00:EbGb 80/0:EbIb". An opcode is in hexadecimal digits, with all of its bytes, or with v1, v2, v3 or v5 for the maps of VEX and
// EVEX. It may be a range: "50-57". In front of it may be a prefix that makes it another instruction: "f2.", "f3.", "66.", or "np." for
// none of them; and "n." for code of 32 bits alone, "w." for 64 bits. Behind it may be the middle of ModRM: "/0", or all of it: "=f8", and
// m or r for an operand in memory or in a register.
//
// An operand is one letter for what it is, as in appendix A of Intel's manual: E, W and M what ModRM names (W is memory or a vector, M only
// memory), G and R registers of ModRM, Z that of the opcode, B that of VEX, A, C and D RAX, RCX and RDX, I a constant, 1 the number, O memory
// at a constant address, X and Y memory at RSI and RDI, U is E at an address that another register changes; V and S none of the general
// registers. The second letter is its width: b, w, d and q bits 8 to 64, v what the prefixes say, h half of that, y 32 or 64, p what is
// pushed, a an address, x a vector, s a vector or a scalar, c a scalar, m a vector of 8 or 16 bytes, t 10 bytes, n a size that is not known,
// '.' none.
type x86Group struct {
	does          effect
	reads, writes uint16 // registers besides the operands, by their codes
	text          string
}

// read makes the rows of the table.
func (m *x86) read() {
	for i := range x86Groups {
		g := &x86Groups[i]
		name := ""
		for field := range strings.FieldsSeq(g.text) {
			opcode, args, found := strings.Cut(field, ":")
			if !found {
				name = field
				continue
			}
			r := x86Row{name: name, does: g.does, reads: m.set(g.reads), writes: m.set(g.writes), prefix: anyPrefix}
			for ; len(args) > 0; args = args[2:] {
				r.args[r.count] = x86Arg{args[0], args[1]}
				r.count++
			}
			m.add(r, opcode)
		}
	}
}

// set returns registers by their DWARF numbers.
func (m *x86) set(codes uint16) (out Registers) {
	for i, n := range m.numbers {
		if codes>>i&1 != 0 {
			out |= 1 << n
		}
	}
	return out
}

// x86Marks are prefixes as texts have them.
var x86Marks = map[string]byte{"f2": 0xf2, "f3": 0xf3, "66": 0x66, "np": noPrefix}

// add adds a row for the opcodes of a text.
func (m *x86) add(r x86Row, text string) {
	for {
		mark, rest, found := strings.Cut(text, ".")
		if !found {
			break
		}
		if text = rest; mark == "n" && !m.narrow || mark == "w" && m.narrow {
			return
		} else if p := x86Marks[mark]; p != 0 {
			r.prefix = p
		}
	}
	if n := len(text) - 1; text[n] == 'm' || text[n] == 'r' {
		r.mod, text = text[n], text[:n]
	}
	if opcode, digit, found := strings.Cut(text, "/"); found {
		text, r.mask, r.value = opcode, 0x38, number(digit)<<3
	} else if opcode, modrm, found := strings.Cut(text, "="); found {
		text, r.mask, r.value = opcode, 0xff, number(modrm)
	}
	from, to, found := strings.Cut(text, "-")
	if !found {
		to = from
	}
	n := len(from) - 2
	opcodes := slices.Index(x86MapNames, from[:n])
	first, last := int(number(from[n:])), int(number(to[len(to)-2:]))
	for op := first; op <= last; op++ {
		if r.coded = r.name[0] == '*'; r.coded {
			r.code = uint32(opcodes)<<24 | uint32(op)<<16 | uint32(r.value)<<8
		} else if last-first == 15 {
			r.code = uint32(op & 15) // the number of a condition
		}
		m.rows[opcodes][op] = append(m.rows[opcodes][op], r)
	}
}

// x86MapNames are how texts begin for opcodes of the maps.
var x86MapNames = []string{"", "0f", "0f38", "0f3a", "v1", "v2", "v3", "v5"}

// number reads two digits of a text of the table.
func number(text string) byte {
	n, err := strconv.ParseUint(text, 16, 8)
	if err != nil {
		panic(text)
	}
	return byte(n)
}
