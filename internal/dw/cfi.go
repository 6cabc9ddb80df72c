package dw

import (
	"fmt"
	"sort"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/radix"
)

// Call frame information (DWARF 5 section 6.4; .eh_frame: LSB 5.0 core
// specification, section 10.6) gives the canonical frame address (CFA) at any code
// address. Only the CFA's rule is needed here: a probe sees the registers as they
// are, so it does not matter where the caller's were saved. The sections are read
// once to index their entries; an entry's instructions run when a site needs them.

// CFARule says how to compute the canonical frame address: a register plus an
// offset in bytes, or an expression.
type CFARule struct {
	Reg     uint64
	Off     int64
	Expr    []byte
	defined bool // some instruction gave a rule
}

// FDE says where in a section to find the frame description of a range of code,
// whose link-time addresses are [lo, hi).
type FDE struct {
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
	fdes []FDE
	err  error
}

// Pointer encodings of .eh_frame.
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
	ehOmit    = 0xff
)

// CFA returns the rule for the canonical frame address at a link-time address. ok
// is false if no frame description covers it.
func (d *Data) CFA(addr uint64) (rule CFARule, ok bool, err error) {
	f, err := d.FrameOf(addr)
	if f == nil || err != nil {
		return CFARule{}, false, err
	}
	rule, err = d.runFrame(f, addr, nil)
	return rule, err == nil && rule.defined, err
}

// SteadyFrame reports whether the frame description that covers a link-time address
// has the same rule for the canonical frame address throughout its code.
func (d *Data) SteadyFrame(addr uint64) (bool, error) {
	f, err := d.FrameOf(addr)
	if f == nil || err != nil {
		return false, err
	}
	first, steady := CFARule{}, true
	_, err = d.runFrame(f, f.hi, func(r CFARule) {
		if !first.defined {
			first = r
		}
		steady = steady && r.Expr == nil && r.Reg == first.Reg && r.Off == first.Off
	})
	return steady && first.defined, err
}

// FrameOf returns the frame description that covers a link-time address, or nil.
func (d *Data) FrameOf(addr uint64) (*FDE, error) {
	t := &d.frames
	t.once.Do(func() {
		if len(d.Frame) > 0 {
			t.fdes, t.err = d.readFrames(frameSection{".debug_frame", d.Frame, false})
		}
		// A linked image may have some descriptions in each section: code built
		// without -g has only .eh_frame.
		if len(d.EhFrame) > 0 && t.err == nil {
			var eh []FDE
			eh, t.err = d.readFrames(frameSection{".eh_frame", d.EhFrame, true})
			t.fdes = append(t.fdes, eh...)
		}
		// The sort is stable: of equal addresses, the one read first stays first.
		t.fdes = radix.Sort(t.fdes, func(f *FDE) uint64 { return f.lo })
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

// frameSection is .debug_frame or .eh_frame, which differ in how entries refer to
// each other and encode addresses.
type frameSection struct {
	name string
	d    []byte
	eh   bool
}

func (d *Data) readFrames(sec frameSection) ([]FDE, error) {
	// A kernel's descriptions take 50 bytes each.
	out := make([]FDE, 0, len(sec.d)/48)
	cies := make(map[uint64]*cie)
	b := bin.Reader{D: sec.d, BigEndian: d.BigEndian}
	for b.P < len(sec.d) {
		start := uint64(b.P)
		n, dwarf64 := b.UnitLength()
		if n == 0 && !b.Bad {
			continue // the terminator of .eh_frame; more may follow in a linked image
		}
		if b.Bad || n > uint64(len(sec.d)-b.P) || n > 1<<31 {
			return nil, d.Errorf(sec.name, start, "invalid entry length %#x", n)
		}
		e := bin.Reader{D: sec.d[:b.P+int(n)], P: b.P, BigEndian: d.BigEndian}
		b.P += int(n)
		idPos := uint64(e.P)
		id := e.Offset(dwarf64 && !sec.eh)
		isCIE := id == 0
		if !sec.eh {
			isCIE = id == 0xffffffff && !dwarf64 || id == ^uint64(0)
		}
		if isCIE {
			c, err := d.readCIE(&e, sec.eh)
			if err != nil {
				return nil, d.Errorf(sec.name, start, "%v", err)
			}
			c.sec, c.d = sec.name, sec.d
			cies[start] = c
			continue
		}
		ref := id
		if sec.eh {
			ref = idPos - id
		}
		c := cies[ref]
		if c == nil {
			return nil, d.Errorf(sec.name, start, "no common information entry at %#x", ref)
		}
		f := FDE{cie: c, off: start}
		if sec.eh {
			f.lo = d.ehPointer(&e, c.fdeEnc)
			f.hi = f.lo + d.ehPointer(&e, c.fdeEnc&0x0f)
			if c.hasAugData {
				e.Skip(e.ULEB())
			}
		} else {
			f.lo = e.Uint(c.addrSize)
			f.hi = f.lo + e.Uint(c.addrSize)
		}
		if e.Bad {
			return nil, d.Errorf(sec.name, start, "the frame description does not fit into its length")
		}
		f.start, f.end = uint32(uint64(e.P)-start), uint32(uint64(len(e.D))-start)
		out = append(out, f)
	}
	return out, nil
}

func (d *Data) readCIE(e *bin.Reader, eh bool) (*cie, error) {
	c := &cie{version: e.U8(), addrSize: d.WordSize}
	aug := string(e.CString())
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
		e.U8() // return address register
	} else {
		e.ULEB()
	}
	if aug != "" {
		if aug[0] != 'z' {
			return nil, fmt.Errorf("unsupported augmentation %q", aug)
		}
		c.hasAugData = true
		data := bin.Reader{D: e.Bytes(e.ULEB()), BigEndian: e.BigEndian}
		for _, a := range aug[1:] {
			switch a {
			case 'L':
				data.U8()
			case 'P':
				d.ehPointer(&data, data.U8())
			case 'R':
				c.fdeEnc = data.U8()
			case 'S', 'B', 'G': // signal frame; arm64: return addresses signed with key B, MTE stack
			default:
				if eh {
					return nil, fmt.Errorf("unsupported augmentation %q", aug)
				}
			}
		}
		if data.Bad {
			return nil, fmt.Errorf("the augmentation data of %q is cut short", aug)
		}
	}
	if e.Bad {
		return nil, fmt.Errorf("the common information entry does not fit into its length")
	}
	c.instr = e.D[e.P:]
	return c, nil
}

// ehPointer reads an encoded pointer; the buffer's start is at d.ehFrameAddr.
func (d *Data) ehPointer(b *bin.Reader, enc uint8) uint64 {
	if enc == ehOmit {
		return 0
	}
	at := d.EhFrameAddr + uint64(b.P)
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
