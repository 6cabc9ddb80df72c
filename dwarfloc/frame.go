package dwarfloc

import (
	"fmt"
	"sort"
	"sync"
)

// Call frame information (DWARF 5 section 6.4; .eh_frame: LSB 5.0 core
// specification, section 10.6) gives the canonical frame address at any address
// of code. Only its rule is needed here: where the caller's registers were saved
// does not matter to a probe, which sees the registers as they are. The sections
// are read once for an index of their entries; an entry's instructions run when a
// site asks for them.

// cfaRule says what the canonical frame address is: a register plus an offset, or
// an expression.
type cfaRule struct {
	reg     uint64
	off     int64
	expr    []byte
	defined bool // some instruction gave a rule
}

// fde is where the frame description of some code stands.
type fde struct {
	lo, hi     uint64
	off        uint64 // in its section
	cie        *cie
	start, end uint32 // of its instructions, in bytes from off
}

type cie struct {
	d          []byte // the section
	sec        string
	codeAlign  uint64
	dataAlign  int64
	instr      []byte
	version    uint8
	addrSize   int
	fdeEnc     uint8 // .eh_frame: encoding of addresses
	hasAugData bool
}

type frameTable struct {
	once sync.Once
	fdes []fde
	err  error
}

// Pointer encodings of .eh_frame.
const (
	ehAbsptr  = 0x00
	ehUleb    = 0x01
	ehUdata2  = 0x02
	ehUdata4  = 0x03
	ehUdata8  = 0x04
	ehSleb    = 0x09
	ehSdata2  = 0x0a
	ehSdata4  = 0x0b
	ehSdata8  = 0x0c
	ehPCRel   = 0x10
	ehDataRel = 0x30
	ehOmit    = 0xff
)

// cfa returns the rule for the canonical frame address at an address. ok is false
// when no frame description covers it.
func (img *Image) cfa(addr uint64) (rule cfaRule, ok bool, err error) {
	f, err := img.frameOf(addr)
	if f == nil || err != nil {
		return cfaRule{}, false, err
	}
	rule, err = img.runFrame(f, addr, nil)
	return rule, err == nil && rule.defined, err
}

// steadyFrame reports whether the canonical frame address has the same rule in
// all the code whose frame description covers an address.
func (img *Image) steadyFrame(addr uint64) (bool, error) {
	f, err := img.frameOf(addr)
	if f == nil || err != nil {
		return false, err
	}
	first, steady := cfaRule{}, true
	_, err = img.runFrame(f, f.hi, func(r cfaRule) {
		if !first.defined {
			first = r
		}
		steady = steady && r.expr == nil && r.reg == first.reg && r.off == first.off
	})
	return steady && first.defined, err
}

// frameOf returns the frame description that covers an address, or nil.
func (img *Image) frameOf(addr uint64) (*fde, error) {
	t := &img.frames
	t.once.Do(func() {
		if len(img.frame) > 0 {
			t.fdes, t.err = img.readFrames(".debug_frame", img.frame, false)
		}
		// A linked image may have some descriptions in each section: code that was
		// built without -g has only .eh_frame.
		if len(img.ehFrame) > 0 && t.err == nil {
			var eh []fde
			eh, t.err = img.readFrames(".eh_frame", img.ehFrame, true)
			t.fdes = append(t.fdes, eh...)
		}
		// The place in the section decides between equal addresses.
		t.fdes = byKey(t.fdes, func(f *fde) uint64 { return f.lo })
	})
	if t.err != nil {
		return nil, t.err
	}
	i := sort.Search(len(t.fdes), func(i int) bool { return t.fdes[i].lo > addr })
	// Descriptions do not overlap, but an empty one may start at the same address.
	for i--; i >= 0 && i < len(t.fdes); i-- {
		f := &t.fdes[i]
		if addr < f.hi {
			return f, nil
		}
		if f.hi > f.lo {
			break
		}
	}
	return nil, nil
}

func (img *Image) readFrames(sec string, d []byte, eh bool) ([]fde, error) {
	// A kernel's descriptions take 50 bytes each.
	out := make([]fde, 0, len(d)/48)
	cies := make(map[uint64]*cie)
	b := buf{d: d, be: img.be}
	for b.p < len(d) {
		start := uint64(b.p)
		n, dwarf64 := b.unitLength()
		if n == 0 && !b.bad {
			continue // the terminator of .eh_frame; more may follow in a linked image
		}
		if b.bad || n > uint64(len(d)-b.p) || n > 1<<31 {
			return nil, img.errorf(sec, start, "invalid entry length %#x", n)
		}
		e := buf{d: d[:b.p+int(n)], p: b.p, be: img.be}
		b.p += int(n)
		idPos := uint64(e.p)
		id := e.offset(dwarf64 && !eh)
		isCIE := id == 0
		if !eh {
			isCIE = id == 0xffffffff && !dwarf64 || id == ^uint64(0)
		}
		if isCIE {
			c, err := img.readCIE(&e, eh)
			if err != nil {
				return nil, img.errorf(sec, start, "%v", err)
			}
			c.sec, c.d = sec, d
			cies[start] = c
			continue
		}
		ref := id
		if eh {
			ref = idPos - id
		}
		c := cies[ref]
		if c == nil {
			return nil, img.errorf(sec, start, "no common information entry at %#x", ref)
		}
		f := fde{cie: c, off: start}
		if eh {
			f.lo = img.ehPointer(&e, c.fdeEnc)
			f.hi = f.lo + img.ehPointer(&e, c.fdeEnc&0x0f)
			if c.hasAugData {
				e.skip(e.uleb())
			}
		} else {
			f.lo = e.uint(c.addrSize)
			f.hi = f.lo + e.uint(c.addrSize)
		}
		if e.bad {
			return nil, img.errorf(sec, start, "the frame description does not fit into its length")
		}
		f.start, f.end = uint32(uint64(e.p)-start), uint32(uint64(len(e.d))-start)
		out = append(out, f)
	}
	return out, nil
}

func (img *Image) readCIE(e *buf, eh bool) (*cie, error) {
	c := &cie{version: e.u8(), addrSize: img.arch.WordSize}
	aug := string(e.cstr())
	switch c.version {
	case 1, 3:
	case 4:
		c.addrSize = int(e.u8())
		e.u8() // segment selector size
	default:
		return nil, fmt.Errorf("unsupported common information entry version %d", c.version)
	}
	if c.addrSize != 4 && c.addrSize != 8 {
		return nil, fmt.Errorf("invalid address size %d", c.addrSize)
	}
	c.codeAlign = e.uleb()
	c.dataAlign = e.sleb()
	if c.version == 1 {
		e.u8() // return address register
	} else {
		e.uleb()
	}
	if aug != "" {
		if aug[0] != 'z' {
			return nil, fmt.Errorf("unsupported augmentation %q", aug)
		}
		c.hasAugData = true
		data := buf{d: e.bytes(e.uleb()), be: e.be}
		for _, a := range aug[1:] {
			switch a {
			case 'L':
				data.u8()
			case 'P':
				img.ehPointer(&data, data.u8())
			case 'R':
				c.fdeEnc = data.u8()
			case 'S', 'B', 'G': // signal frame; arm64: return addresses signed with key B, MTE stack
			default:
				if eh {
					return nil, fmt.Errorf("unsupported augmentation %q", aug)
				}
			}
		}
		if data.bad {
			return nil, fmt.Errorf("the augmentation data of %q is cut short", aug)
		}
	}
	if e.bad {
		return nil, fmt.Errorf("the common information entry does not fit into its length")
	}
	c.instr = e.d[e.p:]
	return c, nil
}

// ehPointer reads an encoded pointer; the buffer's start is at img.ehFrameAddr.
func (img *Image) ehPointer(b *buf, enc uint8) uint64 {
	if enc == ehOmit {
		return 0
	}
	at := img.ehFrameAddr + uint64(b.p)
	var v uint64
	switch enc & 0x0f {
	case ehAbsptr:
		v = b.uint(img.arch.WordSize)
	case ehUleb:
		v = b.uleb()
	case ehUdata2:
		v = uint64(b.u16())
	case ehUdata4:
		v = uint64(b.u32())
	case ehUdata8, ehSdata8:
		v = b.u64()
	case ehSleb:
		v = uint64(b.sleb())
	case ehSdata2:
		v = uint64(b.sint(2))
	case ehSdata4:
		v = uint64(b.sint(4))
	default:
		b.fail()
	}
	switch enc & 0x70 {
	case 0:
	case ehPCRel:
		v += at
	default: // relative to data or text: no compiler's .eh_frame of an ELF image has it
		b.fail()
	}
	return v
}

// maxFrameStates bounds remembered states.
const maxFrameStates = 256

// runFrame runs the instructions of a frame description up to an address and
// returns the rule for the canonical frame address. each, unless nil, is called
// with the rule of each stretch of code on the way.
func (img *Image) runFrame(f *fde, addr uint64, each func(cfaRule)) (cfaRule, error) {
	var rule cfaRule
	loc := f.lo
	var stack []cfaRule
	for part, code := range [][]byte{f.cie.instr, f.cie.d[f.off+uint64(f.start) : f.off+uint64(f.end)]} {
		b := buf{d: code, be: img.be}
		for b.p < len(b.d) {
			op := b.u8()
			advance := uint64(0)
			switch op >> 6 {
			case 1: // DW_CFA_advance_loc
				advance = uint64(op & 0x3f)
			case 2: // DW_CFA_offset
				b.uleb()
			case 3: // DW_CFA_restore
			default:
				switch op {
				case 0x00: // nop
				case 0x01: // set_loc
					if f.cie.fdeEnc != 0 {
						return rule, img.errorf(f.cie.sec, f.off, "unsupported DW_CFA_set_loc")
					}
					loc = b.uint(f.cie.addrSize)
					if each != nil {
						each(rule)
					}
					if loc > addr && part == 1 {
						return rule, nil
					}
				case 0x02: // advance_loc1
					advance = uint64(b.u8())
				case 0x03: // advance_loc2
					advance = uint64(b.u16())
				case 0x04: // advance_loc4
					advance = uint64(b.u32())
				case 0x05, 0x14: // offset_extended, val_offset
					b.uleb()
					b.uleb()
				case 0x06, 0x07, 0x08: // restore_extended, undefined, same_value
					b.uleb()
				case 0x09: // register
					b.uleb()
					b.uleb()
				case 0x0a: // remember_state
					if len(stack) >= maxFrameStates {
						return rule, img.errorf(f.cie.sec, f.off, "more than %d remembered states", maxFrameStates)
					}
					stack = append(stack, rule)
				case 0x0b: // restore_state
					if len(stack) == 0 {
						return rule, img.errorf(f.cie.sec, f.off, "DW_CFA_restore_state without a remembered state")
					}
					rule = stack[len(stack)-1]
					stack = stack[:len(stack)-1]
				case 0x0c: // def_cfa
					rule = cfaRule{reg: b.uleb(), off: int64(b.uleb()), defined: true}
				case 0x0d, 0x0e, 0x13: // change a rule of register plus offset
					if !rule.defined || rule.expr != nil {
						return rule, img.errorf(f.cie.sec, f.off, "call frame instruction %#02x without a register rule to change", op)
					}
					switch op {
					case 0x0d: // def_cfa_register
						rule.reg = b.uleb()
					case 0x0e: // def_cfa_offset
						rule.off = int64(b.uleb())
					case 0x13: // def_cfa_offset_sf
						rule.off = b.sleb() * f.cie.dataAlign
					}
				case 0x0f: // def_cfa_expression
					rule = cfaRule{expr: b.bytes(b.uleb()), defined: true}
				case 0x10, 0x16: // expression, val_expression
					b.uleb()
					b.skip(b.uleb())
				case 0x11, 0x15: // offset_extended_sf, val_offset_sf
					b.uleb()
					b.sleb()
				case 0x12: // def_cfa_sf
					rule = cfaRule{reg: b.uleb(), defined: true}
					rule.off = b.sleb() * f.cie.dataAlign
				case 0x2d: // AARCH64_negate_ra_state, GNU_window_save: no operand
				case 0x2e: // GNU_args_size
					b.uleb()
				case 0x2f: // GNU_negative_offset_extended
					b.uleb()
					b.uleb()
				default:
					return rule, img.errorf(f.cie.sec, f.off, "unknown call frame instruction %#02x", op)
				}
			}
			if b.bad {
				return rule, img.errorf(f.cie.sec, f.off, "a call frame instruction is cut short")
			}
			if advance != 0 && part == 1 {
				if each != nil {
					each(rule)
				}
				loc += advance * f.cie.codeAlign
				if loc > addr {
					return rule, nil
				}
			}
		}
	}
	if each != nil {
		each(rule)
	}
	return rule, nil
}
