package dw

import (
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/internal/bin"
)

// maxLineRows bounds a line program; a kernel's longest has about 100,000 rows.
const maxLineRows = 1 << 24

// lineRun is a run of a line program.
type lineRun struct {
	u       *Unit
	t       *LineTable
	b       bin.Reader // what follows row
	row     Row
	line    int64
	special *[256]special
	opIndex uint64
	count   int   // of rows
	gap     Range // rows at these addresses, but for the ends of sequences, are passed over
	written bool  // row is one, and not yet what the next one begins with
	err     error
}

func (u *Unit) runLines(t *LineTable) *lineRun {
	p := &lineRun{u: u, t: t, b: t.program}
	p.reset()
	if t.lineRange == 0 || t.opcodeBase == 0 {
		_ = p.bad("invalid line program header")
		p.b.D = nil
	} else {
		p.special = &specialsOf(t).of
	}
	return p
}

func (p *lineRun) bad(what string) bool {
	p.err = p.u.Data.Errorf(".debug_line", p.t.off, "%s", what)
	return false
}

func (p *lineRun) reset() {
	p.row = Row{File: 1, Stmt: p.t.defaultStmt}
	p.line, p.opIndex = 1, 0
}

// advance goes on by some operations.
func (p *lineRun) advance(n uint64) {
	if p.t.maxOps > 1 {
		n, p.opIndex = p.word(n)
	}
	if n *= p.t.minInst; n != 0 {
		p.row.Addr += n
		p.row.View = 0
	}
}

// word returns how many instructions some operations are of a machine with several in one, and the index of the next operation.
func (p *lineRun) word(n uint64) (instructions, index uint64) {
	return (p.opIndex + n) / p.t.maxOps, (p.opIndex + n) % p.t.maxOps
}

// next sets row to the program's next one that is not in the gap. It is false at the end.
func (p *lineRun) next() bool {
	t, b, r := p.t, &p.b, &p.row
	if p.count > maxLineRows {
		return p.bad("the line program does not end")
	}
	d, at := b.D, b.P
	for {
		if p.written {
			if r.End {
				p.reset()
			} else {
				r.View++
				r.PrologueEnd = false
			}
			p.written = false
		}
		for !p.written {
			if at >= len(d) {
				b.P = at
				return false
			}
			c := d[at]
			at++
			if c >= t.opcodeBase {
				s := p.special[c]
				p.line += int64(s.line)
				p.advance(uint64(s.ops))
				p.written = true
				break
			}
			switch c {
			case 1: // DW_LNS_copy
				p.written = true
				continue
			case 3: // DW_LNS_advance_line, and most numbers are of one byte
				if at < len(d) && d[at] < 0x80 {
					p.line += int64(int8(d[at]<<1) >> 1)
					at++
					continue
				}
			case 4: // DW_LNS_set_file
				if at < len(d) && d[at] < 0x80 {
					r.File = uint32(d[at])
					at++
					continue
				}
			case 5: // DW_LNS_set_column, which most rows have
				if at < len(d) && d[at] < 0x80 {
					r.Column = uint32(d[at])
					at++
					continue
				}
			case 6: // DW_LNS_negate_stmt
				r.Stmt = !r.Stmt
				continue
			}
			b.P = at
			if !p.standard(c) {
				return false
			}
			at = b.P
		}
		p.count++
		if r.End || r.Addr-p.gap.Lo >= p.gap.Hi-p.gap.Lo {
			break
		}
	}
	b.P = at
	r.Line = uint32(max(p.line, 0))
	return true
}

// standard executes a standard or an extended opcode. It is false if the program is damaged.
func (p *lineRun) standard(c uint8) bool {
	t, b, r := p.t, &p.b, &p.row
	switch c {
	case 0:
		n := b.ULEB()
		if n == 0 || n > uint64(len(b.D)-b.P) {
			return p.bad("invalid extended opcode")
		}
		next := b.P + int(n)
		switch b.U8() {
		case 1: // DW_LNE_end_sequence
			r.End, p.written = true, true
		case 2: // DW_LNE_set_address
			r.Addr, r.View, p.opIndex = b.Uint(int(min(n-1, 8))), 0, 0
		}
		b.P = next
	case 2: // DW_LNS_advance_pc
		p.advance(b.ULEB())
	case 3: // DW_LNS_advance_line
		p.line += b.SLEB()
	case 4: // DW_LNS_set_file
		r.File = uint32(b.ULEB())
	case 5: // DW_LNS_set_column
		r.Column = uint32(b.ULEB())
	case 8: // DW_LNS_const_add_pc
		p.advance(uint64(255-t.opcodeBase) / t.lineRange)
	case 9: // DW_LNS_fixed_advance_pc
		r.Addr, p.opIndex = r.Addr+uint64(b.U16()), 0
	case 10: // DW_LNS_set_prologue_end
		r.PrologueEnd = true
	default: // set_basic_block, set_epilogue_begin, set_isa, unknown ones
		for range t.opLengths[c-1] {
			b.ULEB()
		}
	}
	return !b.Bad || p.bad("the line program is cut short")
}

// special is what a special opcode does (DWARF 5 section 6.2.5.1).
type special struct {
	ops  uint8
	line int16
}

// specials are the opcodes of a line table from a base on, by their numbers. Compilers and assemblers write the same ones in all units.
type specials struct {
	base             int64
	lines, opcodeMin uint8
	of               [256]special
}

// lastSpecials are those that were made last.
var lastSpecials atomic.Pointer[specials]

// specialsOf returns those of a line table.
func specialsOf(t *LineTable) *specials {
	s := lastSpecials.Load()
	if s != nil && s.base == t.lineBase && uint64(s.lines) == t.lineRange && s.opcodeMin == t.opcodeBase {
		return s
	}
	s = &specials{base: t.lineBase, lines: uint8(t.lineRange), opcodeMin: t.opcodeBase}
	for c := int(t.opcodeBase); c < len(s.of); c++ {
		n := c - int(t.opcodeBase)
		s.of[c] = special{uint8(n / int(s.lines)), int16(s.base) + int16(n%int(s.lines))}
	}
	lastSpecials.Store(s)
	return s
}
