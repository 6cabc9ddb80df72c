package oracle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-delve/delve/pkg/dwarf/frame"
)

// frames is the image's call frame information, as delve reads it.
type frames struct {
	once   sync.Once
	tables []frame.FrameDescriptionEntries
	err    error
}

// CFA says what the canonical frame address is: a register plus an offset, or an
// expression.
type CFA struct {
	Reg  uint64
	Off  int64
	Expr []byte
}

// ErrNoFrame is returned if no call frame information covers an address.
var ErrNoFrame = errors.New("no call frame information")

// CFA returns the rule for the canonical frame address at an address. Several
// goroutines may call it.
func (f *File) CFA(addr uint64) (CFA, error) {
	fde, err := f.description(addr)
	if err != nil {
		return CFA{}, err
	}
	return rule(fde, addr)
}

// SteadyFrame reports whether the call frame address has a single rule in the whole function
// that contains an address: it has no prologue.
func (f *File) SteadyFrame(addr uint64) (bool, error) {
	fde, err := f.description(addr)
	if errors.Is(err, ErrNoFrame) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	first, err := rule(fde, fde.Begin())
	if err != nil {
		return false, err
	}
	for pc := fde.Begin() + 1; pc < fde.End(); pc++ {
		r, err := rule(fde, pc)
		if err != nil || r.Expr != nil || r.Reg != first.Reg || r.Off != first.Off {
			return false, err
		}
	}
	return first.Expr == nil, nil
}

// caught runs a function of delve's, which panics if the data is damaged.
func caught(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("damaged call frame information: %v", r)
		}
	}()
	return f()
}

func rule(fde *frame.FrameDescriptionEntry, addr uint64) (CFA, error) {
	var fc *frame.FrameContext
	err := caught(func() (err error) {
		fc, err = fde.EstablishFrame(addr)
		return err
	})
	if err != nil {
		return CFA{}, err
	}
	switch fc.CFA.Rule {
	case frame.RuleCFA:
		return CFA{Reg: fc.CFA.Reg, Off: fc.CFA.Offset}, nil
	case frame.RuleExpression:
		return CFA{Expr: fc.CFA.Expression}, nil
	case frame.RuleUndefined:
		// GNU as for MIPS names only a register to begin with, and means the offset 0 from it.
		if first := fde.CIE.InitialInstructions; len(first) > 0 && first[0] == 0x0d {
			return CFA{Reg: fc.CFA.Reg, Off: fc.CFA.Offset}, nil
		}
	}
	return CFA{}, fmt.Errorf("oracle: call frame address at %#x by rule %d", addr, fc.CFA.Rule)
}

// description returns delve's frame description for an address.
func (f *File) description(addr uint64) (*frame.FrameDescriptionEntry, error) {
	f.frames.once.Do(func() {
		for _, s := range []struct {
			name string
			addr uint64
		}{{".debug_frame", 0}, {".eh_frame", f.ehFrame}} {
			d := f.sections[s.name]
			if len(d) == 0 {
				continue
			}
			if f.big {
				// Delve reads little-endian headers in any case.
				d = f.turned(d, s.name == ".eh_frame")
			}
			var t frame.FrameDescriptionEntries
			err := caught(func() (err error) {
				t, err = frame.Parse(d, binary.LittleEndian, 0, f.word, s.addr)
				return err
			})
			if err != nil {
				f.frames.err = fmt.Errorf("oracle: %s: %w", s.name, err)
				return
			}
			repair(t, s.name)
			// Append sorts, which the search relies on and Parse does not do.
			f.frames.tables = append(f.frames.tables, frame.FrameDescriptionEntries{}.Append(t))
		}
	})
	if f.frames.err != nil {
		return nil, f.frames.err
	}
	for _, t := range f.frames.tables {
		if fde, err := t.FDEForPC(addr); err == nil {
			return fde, nil
		}
	}
	return nil, ErrNoFrame
}

// turned returns call frame information with the bytes of each number in the other order.
func (f *File) turned(d []byte, eh bool) []byte {
	out := bytes.Clone(d)
	c := f.cursor(d, 0)
	turn := func(n int) uint64 {
		at := c.p
		v := c.uint(n)
		if !c.bad {
			slices.Reverse(out[at:c.p])
		}
		return v
	}
	sizes := make(map[uint64]int) // of addresses in the descriptions of each common entry
	for !c.bad && c.p < uint64(len(d)) {
		at := c.p
		n := turn(4)
		end := c.p + n
		if n == 0 || n == 0xffffffff || end > uint64(len(d)) {
			break // an end, or 64-bit DWARF, which delve does not read either
		}
		from := c.p
		id := turn(4)
		entry := c
		entry.d = d[:end]
		if id == 0xffffffff || eh && id == 0 {
			sizes[at] = f.common(&entry)
		} else {
			of := id
			if eh {
				of = from - id
			}
			size := sizes[of]
			if size == 0 {
				size = f.word
			}
			turn(size)
			turn(size)
			entry = c
			entry.d = d[:end]
			if eh {
				entry.bytes(entry.uleb())
			}
		}
		eachInstruction(&entry, func(op byte, kinds string) {
			for _, k := range kinds {
				at := entry.p
				if skip(&entry, k); k > '1' && k <= '8' && !entry.bad {
					slices.Reverse(out[at:entry.p])
				}
			}
		})
		c.p = end
	}
	return out
}

// common reads a common entry up to its instructions, and returns the size of addresses in its
// descriptions.
func (f *File) common(c *cursor) int {
	version, size := c.uint(1), f.word
	var letters []byte
	for b := c.uint(1); b != 0 && !c.bad; b = c.uint(1) {
		letters = append(letters, byte(b))
	}
	if version >= 4 && len(letters) == 0 {
		c.bytes(2)
	}
	c.uleb()
	c.sleb()
	c.uleb()
	for _, l := range letters {
		switch l {
		case 'z':
			c.uleb()
		case 'R':
			if enc := c.uint(1) & 0x0f; enc == 0x03 || enc == 0x0b {
				size = 4 // udata4, sdata4
			}
		case 'L':
			c.uint(1)
		case 'P':
			n := f.word
			if enc := c.uint(1) & 0x0f; enc == 0x03 || enc == 0x0b {
				n = 4
			}
			c.bytes(uint64(n))
		}
	}
	return size
}

// eachInstruction calls f with each call frame instruction, and the kinds of its operands, which f
// must skip.
func eachInstruction(c *cursor, f func(op byte, kinds string)) {
	for !c.bad && c.p < uint64(len(c.d)) {
		op := byte(c.uint(1))
		if op&0xc0 != 0 {
			op &= 0xc0
		}
		kinds, known := operands[op]
		if !known {
			return
		}
		f(op, kinds)
	}
}

// skip skips an operand.
func skip(c *cursor, kind rune) {
	switch kind {
	case 'u', 's':
		c.uleb()
	case 'b':
		c.bytes(c.uleb())
	default:
		c.bytes(uint64(kind - '0'))
	}
}

// repair corrects what delve misreads: common entries of version 4, which clang writes, have
// an address size and a segment selector size before the alignment factors.
func repair(t frame.FrameDescriptionEntries, section string) {
	seen := make(map[*frame.CommonInformationEntry]bool)
	for _, fde := range t {
		fde.Instructions = withoutSigning(fde.Instructions)
		c := fde.CIE
		if section != ".debug_frame" || c.Version < 4 || seen[c] {
			continue
		}
		seen[c] = true
		// Delve read each field two places too early; the last two are still before the
		// instructions.
		rest := cursor{d: c.InitialInstructions}
		c.CodeAlignmentFactor = c.ReturnAddressRegister
		c.DataAlignmentFactor = rest.sleb()
		c.ReturnAddressRegister = rest.uleb()
		c.InitialInstructions = rest.d[min(rest.p, uint64(len(rest.d))):]
	}
}

// operands are the operands of the call frame instructions (DWARF 5, 7.24, table 7.29, and
// GNU's): u and s are LEB128 numbers, b is a block, a digit is a number of bytes. The upper
// two bits of an opcode may be an instruction of their own.
var operands = map[byte]string{
	0x40: "", 0x80: "u", 0xc0: "",
	0x00: "", 0x01: "8", 0x02: "1", 0x03: "2", 0x04: "4", 0x05: "uu", 0x06: "u", 0x07: "u", 0x08: "u", 0x09: "uu",
	0x0a: "", 0x0b: "", 0x0c: "uu", 0x0d: "u", 0x0e: "u", 0x0f: "b", 0x10: "ub", 0x11: "us", 0x12: "us", 0x13: "s",
	0x14: "uu", 0x15: "us", 0x16: "ub", negateRAState: "", 0x2e: "u", 0x2f: "uu",
}

// negateRAState is DW_CFA_AARCH64_negate_ra_state, which switches whether the return address
// is signed. It does not affect the frame address.
const negateRAState = 0x2d

// withoutSigning puts a NOP in place of each DW_CFA_AARCH64_negate_ra_state, which delve
// refuses.
func withoutSigning(insns []byte) []byte {
	if bytes.IndexByte(insns, negateRAState) < 0 {
		return insns
	}
	out := bytes.Clone(insns)
	c := cursor{d: insns}
	eachInstruction(&c, func(op byte, kinds string) {
		if op == negateRAState {
			out[c.p-1] = 0
		}
		for _, k := range kinds {
			skip(&c, k)
		}
	})
	return out
}

// Value computes the address from registers.
func (c CFA) Value(m Machine) (uint64, error) {
	if c.Expr == nil {
		v, ok := m.Reg(c.Reg)
		if !ok {
			return 0, RegisterError(c.Reg)
		}
		return v + uint64(c.Off), nil
	}
	m.CFA, m.FrameBase = nil, nil
	res, err := m.Eval(c.Expr)
	if err == nil && res.Kind != InMemory {
		err = ErrBad
	}
	return res.Value, err
}
