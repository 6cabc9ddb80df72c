package dw

import (
	"github.com/bpfprologue/bpfprologue/internal/bin"
)

// A location list says where a variable is, by range of addresses (DWARF 5 section
// 2.6.2: .debug_loclists, .debug_loc up to DWARF 4). GCC adds views: several source
// positions can share one machine address, and an entry may begin and end at the same
// address and cover its views 2 to 5. The pairs of views are at DW_AT_GNU_locviews, one
// pair for each bounded entry in order, or in the list itself as DW_LLE_view_pair. (GCC:
// gcc/dwarf2out.cc, output_loc_list and output_loclists_offsets since GCC 8; the proposal
// is DWARF issue 170427.1.)

// LocEntry is one entry of a location list.
type LocEntry struct {
	Lo, Hi   uint64 // link-time addresses, [Lo, Hi)
	Viewed   bool   // the list has views
	VLo, VHi uint64 // views at Lo and Hi
	Default  bool   // DW_LLE_default_location, which has no addresses
	Expr     []byte
	Off      uint64 // offset of Expr in its section, in bytes
}

// LocReader reads one location list.
type LocReader struct {
	Section string // the list's section
	Err     error  // set if Next returned false because of damage

	u       *Unit
	off     uint64
	b       bin.Reader
	base    uint64
	views   bin.Reader // pairs at DW_AT_GNU_locviews
	hasView bool
	pair    [2]uint64 // from a DW_LLE_view_pair, for the next entry
	hasPair bool
	left    int // entries that the list may still have
}

// Locations returns a reader of a location list. list is the value of a DW_AT_location;
// views is that of a DW_AT_GNU_locviews, or absent.
func (u *Unit) Locations(list, views Value) (l LocReader) {
	sec, d := ".debug_loclists", u.Data.Loclists
	off := list.U
	l = LocReader{u: u}
	if u.Version < 5 {
		sec, d = ".debug_loc", u.Data.Loc
	} else if list.Form == FormLoclistx {
		if off, l.Err = u.listOffset(sec, d, u.LocBase, list.U); l.Err != nil {
			return l
		}
	}
	switch list.Form {
	case FormSecOffset, FormLoclistx, FormData4, FormData8: // the latter two up to DWARF 3
	default:
		l.Err = u.Data.Errorf(".debug_info", u.Off, "form %#x is no location", uint32(list.Form))
		return l
	}
	l.Section, l.off, l.base, l.left = sec, off, u.lowpc, MaxEntries
	l.b = bin.Reader{D: d, BigEndian: u.Data.BigEndian}
	l.b.Seek(off)
	if views.Form != 0 {
		if u.Skeleton != nil && u.Version >= 5 {
			views.U += u.listBase(u.LocBase) // from where GCC counts there (11 and 12), unlike in other units
		}
		l.hasView = true
		l.views = bin.Reader{D: d, BigEndian: u.Data.BigEndian}
		l.views.Seek(views.U)
		// The pairs precede the list. If they ran into it, they would not belong to it.
		if views.U < off && off <= uint64(len(d)) {
			l.views.D = d[:off]
		}
	}
	return l
}

// Next reads the next entry into e. It returns false at the end of the list, or at
// damage, which is then in l.Err.
func (l *LocReader) Next(e *LocEntry) bool {
	if l.Err != nil {
		return false
	}
	switch {
	case l.u.Skeleton != nil:
		return l.nextSplit(e)
	case l.u.Version >= 5:
		return l.nextV5(e)
	}
	return l.nextV4(e)
}

// nextSplit reads the next entry of a split unit's list. Those that GCC writes for the byte before the end of a call,
// it gives the address after the call and a length of -1 (seen with 12): they hold nowhere.
func (l *LocReader) nextSplit(e *LocEntry) bool {
	for {
		more := false
		if l.u.Version >= 5 {
			more = l.nextV5(e)
		} else {
			more = l.nextSplitV4(e)
		}
		if !more || e.Default || e.Hi >= e.Lo {
			return more
		}
	}
}

// bounded starts an entry for [lo, hi), takes its views and reads its expression.
func (l *LocReader) bounded(e *LocEntry, lo, hi uint64) bool {
	*e = LocEntry{Lo: lo, Hi: hi}
	switch {
	case l.hasPair:
		e.Viewed, e.VLo, e.VHi = true, l.pair[0], l.pair[1]
		l.hasPair = false
	case l.hasView:
		e.Viewed, e.VLo, e.VHi = true, l.views.ULEB(), l.views.ULEB()
		if l.views.Bad {
			return l.fail(l.off, "the list has more entries than its view list (DW_AT_GNU_locviews)")
		}
	}
	return l.expr(e)
}

// fail ends the list with an error.
func (l *LocReader) fail(off uint64, format string, args ...any) bool {
	l.Err = l.u.Data.Errorf(l.Section, off, format, args...)
	return false
}

func (l *LocReader) endless() bool { return l.fail(l.off, "the location list does not end") }

func (l *LocReader) tooLong() bool {
	return l.fail(l.off, "the location list has more than %d entries", MaxEntries)
}

// expr reads an entry's expression.
func (l *LocReader) expr(e *LocEntry) bool {
	var n uint64
	if l.u.Version < 5 {
		n = uint64(l.b.U16())
	} else {
		n = l.b.ULEB()
	}
	e.Off = uint64(l.b.P)
	e.Expr = l.b.Bytes(n)
	if l.b.Bad {
		return l.endless()
	}
	return true
}

func (l *LocReader) nextV4(e *LocEntry) bool {
	u, b := l.u, &l.b
	for ; l.left > 0; l.left-- {
		lo, hi := b.Uint(int(u.AddrSize)), b.Uint(int(u.AddrSize))
		switch {
		case b.Bad:
			return l.endless()
		case lo == 0 && hi == 0:
			return false
		case lo == u.maxAddr():
			l.base = hi
			continue
		}
		l.left--
		return l.bounded(e, l.base+lo, l.base+hi)
	}
	return l.tooLong()
}

// nextSplitV4 is nextV4 for .debug_loc.dwo, whose entries have kinds and no addresses.
func (l *LocReader) nextSplitV4(e *LocEntry) bool {
	b := &l.b
	for ; l.left > 0; l.left-- {
		at := b.P
		var lo, hi uint64
		switch kind := b.U8(); kind {
		case gnuLleEndOfList:
			if b.Bad {
				return l.endless()
			}
			return false
		case gnuLleBaseAddress:
			if l.base = l.addrx(); l.Err != nil {
				return false
			}
			continue
		case gnuLleStartEnd:
			lo = l.addrx()
			hi = l.addrx()
		case gnuLleStartLength:
			lo = l.addrx()
			hi = lo + uint64(int64(int32(b.U32())))
		case gnuLleOffsetPair:
			lo = l.base + uint64(b.U32())
			hi = l.base + uint64(b.U32())
		default:
			return l.fail(uint64(at), "unknown entry kind %#02x", kind)
		}
		if l.Err != nil {
			return false
		}
		l.left--
		return l.bounded(e, lo, hi)
	}
	return l.tooLong()
}

// addrx reads an index into .debug_addr.
func (l *LocReader) addrx() uint64 {
	a, err := l.u.Addrx(l.b.ULEB())
	if err != nil && l.Err == nil {
		l.Err = err
	}
	return a
}

func (l *LocReader) nextV5(e *LocEntry) bool {
	u, b := l.u, &l.b
	for ; l.left > 0; l.left-- {
		at := b.P
		kind := b.U8()
		var lo, hi uint64
		switch kind {
		case LleEndOfList:
			if b.Bad {
				return l.endless()
			}
			return false
		case LleBaseAddressx:
			if l.base = l.addrx(); l.Err != nil {
				return false
			}
			continue
		case LleBaseAddress:
			l.base = b.Uint(int(u.AddrSize))
			continue
		case LleGNUViewPair:
			l.pair, l.hasPair = [2]uint64{b.ULEB(), b.ULEB()}, true
			continue
		case LleDefaultLocation:
			l.left--
			*e = LocEntry{Default: true}
			return l.expr(e)
		case LleStartxEndx:
			lo = l.addrx()
			hi = l.addrx()
		case LleStartxLength:
			lo = l.addrx()
			hi = lo + b.ULEB()
		case LleOffsetPair:
			lo = l.base + b.ULEB()
			hi = l.base + b.ULEB()
		case LleStartEnd:
			lo, hi = b.Uint(int(u.AddrSize)), b.Uint(int(u.AddrSize))
		case LleStartLength:
			lo = b.Uint(int(u.AddrSize))
			hi = lo + b.ULEB()
		default:
			return l.fail(uint64(at), "unknown entry kind %#02x", kind)
		}
		if l.Err != nil {
			return false
		}
		l.left--
		return l.bounded(e, lo, hi)
	}
	return l.tooLong()
}
