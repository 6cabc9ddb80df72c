package oracle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
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
			var t frame.FrameDescriptionEntries
			err := caught(func() (err error) {
				t, err = frame.Parse(d, binary.LittleEndian, 0, 8, s.addr)
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
	for !c.bad && c.p < uint64(len(c.d)) {
		at := c.p
		op := byte(c.uint(1))
		if op&0xc0 != 0 {
			op &= 0xc0
		}
		kinds, known := operands[op]
		if !known {
			break
		}
		if op == negateRAState {
			out[at] = 0
		}
		for _, k := range kinds {
			switch k {
			case 'u', 's':
				c.uleb()
			case 'b':
				c.bytes(c.uleb())
			default:
				c.bytes(uint64(k - '0'))
			}
		}
	}
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
