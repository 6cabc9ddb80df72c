package dw

import (
	"fmt"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/bin"
)

// Call frame information (DWARF 5 section 6.4; .eh_frame: LSB 5.0 core
// specification, section 10.6) gives the canonical frame address (CFA) at any code
// address, and where a function has saved its caller's registers (Frame). The sections are read
// once to index their entries; an entry's instructions run when a site needs them.

// CFARule says how to compute the canonical frame address: a register plus an
// offset in bytes, or an expression.
type CFARule struct {
	Reg     uint64
	Off     int64
	Expr    []byte
	defined bool // some instruction gave a rule
}

// FDE is the frame description of a range of code, whose link-time addresses are [lo, hi).
type FDE struct {
	lo, hi uint64
	off    uint64 // in its section
	cie    *cie
	instr  []byte
}

// Range returns the code that the description is of.
func (f *FDE) Range() Range { return Range{f.lo, f.hi} }

type cie struct {
	d          []byte // the section
	sec        string
	codeAlign  uint64
	dataAlign  int64
	instr      []byte
	version    uint8
	returns    uint64 // the column of the return address
	addrSize   int
	fdeEnc     uint8 // .eh_frame: encoding of addresses
	lsdaEnc    uint8 // and of the language-specific data's
	hasAugData bool
	interrupts bool
	err        error // why it cannot be read; then so it is with what refers to it
}

// Pointer encodings of .eh_frame and .gcc_except_table.
const (
	ehAbsptr  = 0x00
	ehUleb    = 0x01
	ehUdata2  = 0x02
	EhUdata4  = 0x03
	ehUdata8  = 0x04
	ehSleb    = 0x09
	ehSdata2  = 0x0a
	EhSdata4  = 0x0b
	ehSdata8  = 0x0c
	EhPCRel   = 0x10
	EhDataRel = 0x30
	// ehIndirect means that the pointer is at the address.
	ehIndirect = 0x80
	ehOmit     = 0xff
)

// CFA returns the rule for the canonical frame address at a link-time address. ok
// is false if no frame description covers it.
func (d *Data) CFA(addr uint64) (rule CFARule, ok bool, err error) {
	f, ok, err := d.FrameOf(addr)
	if !ok || err != nil {
		return CFARule{}, false, err
	}
	rule, err = d.runFrame(&f, addr, nil)
	return rule, err == nil && rule.defined, err
}

// SteadyFrame reports whether the frame description that covers a link-time address
// has the same rule for the canonical frame address throughout its code.
func (d *Data) SteadyFrame(addr uint64) (bool, error) {
	f, ok, err := d.FrameOf(addr)
	if !ok || err != nil {
		return false, err
	}
	first, steady := CFARule{}, true
	_, err = d.runFrame(&f, f.hi, func(r CFARule) {
		if !first.defined {
			first = r
		}
		steady = steady && r.Expr == nil && r.Reg == first.Reg && r.Off == first.Off
	})
	return steady && first.defined, err
}

// frameSection is .debug_frame or .eh_frame, which differ in how entries refer to
// each other and encode addresses.
type frameSection struct {
	name string
	d    []byte
	eh   bool
}

// frameSection returns one of the two sections.
func (d *Data) frameSection(eh bool) frameSection {
	if eh {
		return frameSection{ehFrame, d.EhFrame, true}
	}
	return frameSection{".debug_frame", d.Frame, false}
}

// readFDE reads the frame description that an entry is. ok is false if it does not fit into its length.
func (d *Data) readFDE(sec frameSection, h *frameHead) (f FDE, ok bool) {
	c := d.cieOf(sec, h)
	e := &h.rest
	f = FDE{cie: c, off: h.start}
	if sec.eh {
		f.lo = d.ehPointer(e, c.fdeEnc)
		f.hi = f.lo + d.ehPointer(e, c.fdeEnc&0x0f)
		if c.hasAugData {
			e.Skip(e.ULEB())
		}
	} else {
		f.lo = e.Uint(c.addrSize)
		f.hi = f.lo + e.Uint(c.addrSize)
	}
	if e.Bad {
		return f, false
	}
	f.instr = e.D[e.P:]
	return f, true
}

// frameHead is how an entry of a frame section begins.
type frameHead struct {
	start, length uint64
	isCIE         bool
	isEnd         bool       // the terminator of .eh_frame; more may follow in a linked image
	ref           uint64     // offset of a description's CIE
	rest          bin.Reader // what follows
}

// frameEntry reads the beginning of an entry, and moves b to the next one. ok is false if
// the entry is not all there.
func (d *Data) frameEntry(sec frameSection, b *bin.Reader) (h frameHead, ok bool) {
	h.start = uint64(b.P)
	n, dwarf64 := b.UnitLength()
	h.length = n
	if n == 0 && !b.Bad {
		h.isEnd = true
		return h, true
	}
	if b.Bad || n > uint64(len(sec.d)-b.P) || n > 1<<31 {
		return h, false
	}
	h.rest = bin.Reader{D: sec.d[:b.P+int(n)], P: b.P, BigEndian: d.BigEndian}
	b.P += int(n)
	at := uint64(h.rest.P)
	id := h.rest.Offset(dwarf64 && !sec.eh)
	if h.ref = id; sec.eh {
		h.isCIE, h.ref = id == 0, at-id
	} else {
		h.isCIE = id == 0xffffffff && !dwarf64 || id == ^uint64(0)
	}
	return h, true
}

// cieAt reads the CIE at an offset in a frame section. It returns nil if there is none.
func (d *Data) cieAt(sec frameSection, off uint64) *cie {
	if off >= uint64(len(sec.d)) {
		return nil
	}
	b := bin.Reader{D: sec.d, P: int(off), BigEndian: d.BigEndian}
	h, ok := d.frameEntry(sec, &b)
	if !ok || !h.isCIE {
		return nil
	}
	c, err := d.readCIE(&h.rest, sec.eh)
	if err != nil {
		return d.lostCIE(sec, d.Errorf(sec.name, off, "%v", err))
	}
	c.sec, c.d = sec.name, sec.d
	return c
}

// lostCIE stands for a CIE that cannot be read: with what compilers mostly write, the
// addresses of the descriptions that refer to it can.
func (d *Data) lostCIE(sec frameSection, err error) *cie {
	return &cie{sec: sec.name, d: sec.d, addrSize: d.WordSize, fdeEnc: EhPCRel | EhSdata4, hasAugData: sec.eh, err: err}
}

func (d *Data) readCIE(e *bin.Reader, eh bool) (*cie, error) {
	c := &cie{version: e.U8(), addrSize: d.WordSize, lsdaEnc: ehOmit}
	aug := string(e.CString())
	if strings.HasPrefix(aug, "eh") {
		e.Skip(uint64(d.WordSize)) // GCC 2's exception table
	}
	switch c.version {
	case 1, 3:
	case 4:
		c.addrSize = int(e.U8())
		e.U8() // segment selector size
	default:
		return nil, fmt.Errorf("unsupported common information entry version %d", c.version)
	}
	if c.addrSize != 4 && c.addrSize != 8 {
		return nil, fmt.Errorf("invalid address size %d", c.addrSize)
	}
	c.codeAlign = e.ULEB()
	c.dataAlign = e.SLEB()
	if c.version == 1 {
		c.returns = uint64(e.U8())
	} else {
		c.returns = e.ULEB()
	}
	if err := d.augmentation(c, e, aug, eh); err != nil {
		return nil, err
	}
	if e.Bad {
		return nil, fmt.Errorf("the common information entry does not fit into its length")
	}
	c.instr = e.D[e.P:]
	return c, nil
}

// augmentation reads what a CIE's augmentation string says that it has. Without "z" first, no
// length says where that ends (extract_cie_info in GCC's libgcc/unwind-dw2.c).
func (d *Data) augmentation(c *cie, e *bin.Reader, aug string, eh bool) error {
	data := e
	letters, known := strings.CutPrefix(strings.TrimPrefix(aug, "eh"), "z")
	if c.hasAugData = known; known {
		data = &bin.Reader{D: e.Bytes(e.ULEB()), BigEndian: e.BigEndian}
	}
	for i, a := range letters {
		switch a {
		case 'L':
			c.lsdaEnc = data.U8()
		case 'P':
			d.ehPointer(data, data.U8())
		case 'R':
			c.fdeEnc = data.U8()
		case 'S': // not called, but interrupted
			c.interrupts = true
		case 'B', 'G': // arm64: return addresses signed with key B, MTE stack
		default:
			if !c.hasAugData || eh && strings.Contains(letters[i:], "R") {
				return fmt.Errorf("unsupported augmentation %q", aug)
			}
			return nil // its data can be skipped
		}
	}
	if data.Bad && !e.Bad {
		return fmt.Errorf("the augmentation data of %q is cut short", aug)
	}
	return nil
}

// ehPointer reads an encoded pointer of .eh_frame, from whose beginning the buffer is.
func (d *Data) ehPointer(b *bin.Reader, enc uint8) uint64 { return d.pointer(b, enc, d.EhFrameAddr) }

// pointer reads an encoded pointer from a buffer that is at an address.
func (d *Data) pointer(b *bin.Reader, enc uint8, base uint64) uint64 {
	if enc == ehOmit {
		return 0
	}
	at := base + uint64(b.P)
	var v uint64
	switch enc & 0x0f {
	case ehAbsptr:
		v = b.Uint(d.WordSize)
	case ehUleb:
		v = b.ULEB()
	case ehUdata2:
		v = uint64(b.U16())
	case EhUdata4:
		v = uint64(b.U32())
	case ehUdata8, ehSdata8:
		v = b.U64()
	case ehSleb:
		v = uint64(b.SLEB())
	case ehSdata2:
		v = uint64(b.Sint(2))
	case EhSdata4:
		v = uint64(b.Sint(4))
	default:
		b.Fail()
	}
	switch enc & 0x70 {
	case 0:
	case EhPCRel:
		v += at
	default: // relative to data or text: no compiler writes that to .eh_frame
		b.Fail()
	}
	return v
}
