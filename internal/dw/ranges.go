package dw

import (
	"github.com/bpfprologue/bpfprologue/internal/bin"
)

// Range is a range of link-time addresses, [Lo, Hi).
type Range struct{ Lo, Hi uint64 }

// span returns a range. One that ends before it begins is empty: linkers give the functions that they
// drop an address from which a length leads around the end of the address space.
func span(lo, hi uint64) Range { return Range{lo, max(lo, hi)} }

// MaxEntries bounds a range or location list; a kernel's longest has about a
// thousand.
const MaxEntries = 1 << 16

// RangeList reads the value of a DW_AT_ranges: .debug_ranges up to DWARF 4
// (section 2.17.3), .debug_rnglists since DWARF 5 (section 2.17.3). Empty ranges
// are kept: their address says where an inlined instance begins.
func (u *Unit) RangeList(v Value) ([]Range, error) {
	return u.Extent(&PCs{Ranges: v})
}

// appendRanges adds those of RangeList.
func (u *Unit) appendRanges(out []Range, v Value) ([]Range, error) {
	if u.Version < 5 {
		off := v.U
		if u.Skeleton != nil {
			off += u.RngBase // which is not for the skeleton's own ranges
		}
		return u.rangesV4(out, off)
	}
	off := v.U
	if v.Form == FormRnglistx {
		var err error
		if off, err = u.listOffset(".debug_rnglists", u.Data.Rnglists, u.RngBase, v.U); err != nil {
			return nil, err
		}
	}
	return u.rangesV5(out, off)
}

// listOffset looks up an index in a list section's offset table (DWARF 5 sections
// 7.28 and 7.29).
func (u *Unit) listOffset(name string, d []byte, base, index uint64) (uint64, error) {
	base = u.listBase(base)
	b := bin.Reader{D: d, BigEndian: u.Data.BigEndian}
	if index > uint64(len(d)) {
		b.Fail()
	}
	b.Seek(base + index*uint64(u.OffsetSize()))
	rel := b.Offset(u.Dwarf64)
	if b.Bad {
		return 0, u.Data.Errorf(name, base, "list index %d is outside the section", index)
	}
	return base + rel, nil
}

// listBase returns the offset of a list section's offset table, which an attribute has if it is not 0.
func (u *Unit) listBase(base uint64) uint64 {
	switch {
	case base != 0:
		return base
	case u.Dwarf64:
		return 20 // after the first header of the section
	}
	return 12
}

func (u *Unit) rangesV4(out []Range, off uint64) ([]Range, error) {
	b := bin.Reader{D: u.Data.Ranges, BigEndian: u.Data.BigEndian}
	b.Seek(off)
	base := u.lowpc
	for most := len(out) + MaxEntries; len(out) < most; {
		lo, hi := b.Uint(int(u.AddrSize)), b.Uint(int(u.AddrSize))
		switch {
		case b.Bad:
			return nil, u.Data.Errorf(".debug_ranges", off, "the range list does not end")
		case lo == 0 && hi == 0:
			return out, nil
		case lo == u.maxAddr():
			base = hi
		default:
			out = append(out, span(base+lo, base+hi))
		}
	}
	return nil, u.Data.Errorf(".debug_ranges", off, "the range list has more than %d entries", MaxEntries)
}

func (u *Unit) maxAddr() uint64 {
	if u.AddrSize == 4 {
		return 1<<32 - 1
	}
	return 1<<64 - 1
}

func (u *Unit) rangesV5(out []Range, off uint64) ([]Range, error) {
	b := bin.Reader{D: u.Data.Rnglists, BigEndian: u.Data.BigEndian}
	b.Seek(off)
	base := u.lowpc
	var err error
	indexed := func() uint64 {
		a, e := u.Addrx(b.ULEB())
		if e != nil && err == nil {
			err = e
		}
		return a
	}
	for range MaxEntries {
		at := b.P
		kind := b.U8()
		var r Range
		switch kind {
		case RleEndOfList:
			if b.Bad {
				return nil, u.Data.Errorf(".debug_rnglists", off, "the range list does not end")
			}
			return out, err
		case RleBaseAddressx:
			base = indexed()
			continue
		case RleBaseAddress:
			base = b.Uint(int(u.AddrSize))
			continue
		case RleStartxEndx:
			r.Lo = indexed()
			r.Hi = indexed()
		case RleStartxLength:
			r.Lo = indexed()
			r.Hi = r.Lo + b.ULEB()
		case RleOffsetPair:
			r.Lo = base + b.ULEB()
			r.Hi = base + b.ULEB()
		case RleStartEnd:
			r.Lo = b.Uint(int(u.AddrSize))
			r.Hi = b.Uint(int(u.AddrSize))
		case RleStartLength:
			r.Lo = b.Uint(int(u.AddrSize))
			r.Hi = r.Lo + b.ULEB()
		default:
			return nil, u.Data.Errorf(".debug_rnglists", uint64(at), "unknown entry kind %#02x", kind)
		}
		if b.Bad {
			return nil, u.Data.Errorf(".debug_rnglists", off, "the range list does not end")
		}
		if err != nil {
			return nil, err
		}
		out = append(out, span(r.Lo, r.Hi))
	}
	return nil, u.Data.Errorf(".debug_rnglists", off, "the range list has more than %d entries", MaxEntries)
}

// PCs holds the attributes that say where an entry's code is.
type PCs struct {
	Low, High, Ranges, Entry Value
	EntryView                uint64
	Viewed                   bool // the entry has a view
}

// Take stores an attribute's value if it says where code is.
func (a *PCs) Take(name Attr, v Value) {
	switch name {
	case AttrLowpc:
		a.Low = v
	case AttrHighpc:
		a.High = v
	case AttrRanges:
		a.Ranges = v
	case AttrEntrypc:
		a.Entry = v
	case AttrGNUEntryView:
		a.EntryView, a.Viewed = v.U, true
	}
}

// Extent returns the ranges of an entry's code, in the order of the data.
func (u *Unit) Extent(a *PCs) ([]Range, error) {
	var few [8]Range // nearly no entry has more
	out, err := u.AppendExtent(few[:0], a)
	if err != nil {
		return nil, err
	}
	return append([]Range(nil), out...), nil
}

// AppendExtent adds the ranges of Extent to others.
func (u *Unit) AppendExtent(out []Range, a *PCs) ([]Range, error) {
	if a.Ranges.Form != 0 {
		return u.appendRanges(out, a.Ranges)
	}
	if a.Low.Form == 0 {
		return out, nil
	}
	lo, err := u.Address(a.Low)
	if err != nil {
		return nil, err
	}
	hi := lo
	switch {
	case a.High.Form == 0:
	case a.High.IsConstant():
		hi = lo + a.High.U
	default:
		if hi, err = u.Address(a.High); err != nil {
			return nil, err
		}
	}
	return append(out, span(lo, hi)), nil
}

// Start returns the link-time address at which an entry's code is entered:
// DW_AT_entry_pc (an address or, since DWARF 5 section 2.18, an offset from the base
// address), or else DW_AT_low_pc, or else the first range, which need not be the lowest.
func (u *Unit) Start(a *PCs) (addr uint64, ok bool, err error) {
	if a.Entry.Form != 0 && !a.Entry.IsConstant() {
		addr, err = u.Address(a.Entry)
		return addr, err == nil, err
	}
	if a.Low.Form != 0 {
		addr, err = u.Address(a.Low)
	} else if a.Ranges.Form != 0 {
		r, e := u.RangeList(a.Ranges)
		if e != nil || len(r) == 0 {
			return 0, false, e
		}
		addr = r[0].Lo
	} else {
		return 0, false, nil
	}
	if a.Entry.Form != 0 {
		addr += a.Entry.U
	}
	return addr, err == nil, err
}

// Covers reports whether any of the ranges contains an address.
func Covers(ranges []Range, addr uint64) bool {
	for _, r := range ranges {
		if addr >= r.Lo && addr < r.Hi {
			return true
		}
	}
	return false
}
