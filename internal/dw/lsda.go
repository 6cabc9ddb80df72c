package dw

import "github.com/bpfprologue/bpfprologue/internal/bin"

// Pad is where an exception leads: one that a call in [Lo, Hi) throws may continue at To. All are
// link-time addresses.
type Pad struct{ Lo, Hi, To uint64 }

const (
	ehFrame     = ".eh_frame"
	exceptTable = ".gcc_except_table"
)

// LandingPads returns where exceptions lead from the calls in [lo, hi), in the order of the
// tables: those of the language-specific data areas in .gcc_except_table, which GCC, clang and
// rustc write for C++, Rust and other languages, and for the cleanup attribute of C. Their form
// is that of parse_lsda_header and the personality routine in GCC's libstdc++-v3/libsupc++
// (eh_personality.cc). Object files and modules have none here: they are not relocated.
func (d *Data) LandingPads(lo, hi uint64) (out []Pad, err error) {
	if len(d.Except) == 0 {
		return nil, nil
	}
	fdes, damage := d.framesIn(lo, hi)
	covered := false
	for i := range fdes {
		f := &fdes[i]
		if f.cie.sec != ehFrame {
			continue
		}
		if f.cie.err != nil {
			return nil, f.cie.err
		}
		covered = true
		pads, err := d.padsOf(f)
		if err != nil {
			return nil, err
		}
		for _, p := range pads {
			if p.Lo < hi && p.Hi > lo {
				out = append(out, p)
			}
		}
	}
	if !covered {
		return nil, damage // it may be in what could not be read
	}
	return out, nil
}

// padsOf reads the landing pads of a frame description.
func (d *Data) padsOf(f *FDE) ([]Pad, error) {
	addr, ok := d.languageData(f)
	if !ok {
		return nil, nil
	}
	at := addr - d.ExceptAddr
	if at >= uint64(len(d.Except)) {
		return nil, d.Errorf(f.cie.sec, f.off, "the language-specific data at %#x is not in %s", addr, exceptTable)
	}
	b := &bin.Reader{D: d.Except, P: int(at), BigEndian: d.BigEndian}
	pads := f.lo
	if enc := b.U8(); enc != ehOmit {
		pads = d.pointer(b, enc, d.ExceptAddr)
	}
	if enc := b.U8(); enc != ehOmit {
		b.ULEB() // where types are
	}
	enc := b.U8()
	sites := bin.Reader{D: b.Bytes(b.ULEB()), BigEndian: d.BigEndian}
	if b.Bad {
		return nil, d.Errorf(exceptTable, at, "the call sites do not fit into the section")
	}
	var out []Pad
	for sites.P < len(sites.D) {
		// These have no base of their own.
		from := d.pointer(&sites, enc&0x0f, 0)
		size := d.pointer(&sites, enc&0x0f, 0)
		pad := d.pointer(&sites, enc&0x0f, 0)
		sites.ULEB() // action
		switch {
		case sites.Bad:
			return nil, d.Errorf(exceptTable, at, "a call site is cut short or has an unsupported encoding %#x", enc)
		case from > f.hi-f.lo || size > f.hi-f.lo-from:
			return nil, d.Errorf(exceptTable, at, "the call site at +%#x, of %d bytes, is not in its function, which has %d", from, size, f.hi-f.lo)
		case pad != 0:
			out = append(out, Pad{f.lo + from, f.lo + from + size, pads + pad})
		}
	}
	return out, nil
}

// languageData returns the address of a frame description's language-specific data. ok is false
// if it has none, or in a form that no compiler writes: indirect.
func (d *Data) languageData(f *FDE) (addr uint64, ok bool) {
	c := f.cie
	if c.lsdaEnc == ehOmit || c.lsdaEnc&ehIndirect != 0 {
		return 0, false
	}
	b := bin.Reader{D: c.d, P: int(f.off), BigEndian: d.BigEndian}
	h, ok := d.frameEntry(frameSection{ehFrame, c.d, true}, &b)
	if !ok {
		return 0, false
	}
	e := &h.rest
	d.ehPointer(e, c.fdeEnc)
	d.ehPointer(e, c.fdeEnc&0x0f)
	size := e.ULEB()
	if size > uint64(len(e.D)-e.P) {
		return 0, false
	}
	e.D = e.D[:e.P+int(size)]
	raw := *e
	if d.ehPointer(&raw, c.lsdaEnc&0x0f) == 0 || raw.Bad {
		return 0, false // zero means none, whatever it is relative to
	}
	addr = d.ehPointer(e, c.lsdaEnc)
	return addr, !e.Bad
}
