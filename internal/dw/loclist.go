package dw

import (
	"github.com/bpfprologue/bpfprologue/internal/bin"
)

// A location list says where a variable is over ranges of addresses (DWARF 5 section
// 2.6.2, up to DWARF 4 .debug_loc). GCC adds views: several source positions can share one
// machine address, and an entry may begin and end at one address while it covers views 2
// to 5 of it. The pairs of views stand at DW_AT_GNU_locviews, one pair for each bounded
// entry in order, or in the list itself as DW_LLE_view_pair. (GCC: gcc/dwarf2out.cc,
// output_loc_list and output_loclists_offsets since GCC 8; the proposal is DWARF issue
// 170427.1.)

// LocEntry is one entry of a location list.
type LocEntry struct {
	Lo, Hi   uint64 // link-time addresses, [lo, hi)
	Viewed   bool   // the list has views
	Vlo, Vhi uint64 // views at lo and hi
	Whole    bool   // DW_LLE_default_location, which has no addresses
	Expr     []byte
	Off      uint64 // of the expression in its section
}

// locList reads one location list.
type locList struct {
	u       *Unit
	sec     string
	off     uint64
	b       bin.Reader
	views   bin.Reader // pairs at DW_AT_GNU_locviews
	hasView bool
	visit   func(*LocEntry) bool
}

// EachLocation calls visit for the entries of a location list until it returns false. The
// list is the value of a DW_AT_location, its views are at the value of a
// DW_AT_GNU_locviews or absent. It returns the name of the list's section.
func (u *Unit) EachLocation(list, views Value, visit func(*LocEntry) bool) (sec string, err error) {
	sec, d := ".debug_loclists", u.Data.Loclists
	off := list.U
	if u.Version < 5 {
		sec, d = ".debug_loc", u.Data.Loc
	} else if list.Form == FormLoclistx {
		if off, err = u.listOffset(sec, d, u.LocBase, list.U); err != nil {
			return sec, err
		}
	}
	switch list.Form {
	case FormSecOffset, FormLoclistx, FormData4, FormData8: // the latter two up to DWARF 3
	default:
		return sec, u.Data.Errorf(".debug_info", u.Off, "form %#x is no location", uint32(list.Form))
	}
	l := locList{u: u, sec: sec, off: off, b: bin.Reader{D: d, BigEndian: u.Data.BigEndian}, visit: visit}
	l.b.Seek(off)
	if views.Form != 0 {
		l.hasView = true
		l.views = bin.Reader{D: d, BigEndian: u.Data.BigEndian}
		l.views.Seek(views.U)
		// The pairs stand before the list; one that runs into it does not match it.
		if views.U < off && off <= uint64(len(d)) {
			l.views.D = d[:off]
		}
	}
	if u.Version < 5 {
		return sec, l.readV4()
	}
	return sec, l.readV5()
}

// bounded visits the entry for [lo, hi) whose expression comes next. pair is the views that
// the list itself gives, or nil.
func (l *locList) bounded(lo, hi uint64, pair *[2]uint64) (more bool, err error) {
	e := LocEntry{Lo: lo, Hi: hi}
	switch {
	case pair != nil:
		e.Viewed, e.Vlo, e.Vhi = true, pair[0], pair[1]
	case l.hasView:
		e.Viewed, e.Vlo, e.Vhi = true, l.views.ULEB(), l.views.ULEB()
		if l.views.Bad {
			return false, l.u.Data.Errorf(l.sec, l.off, "the list has more entries than its view list (DW_AT_GNU_locviews)")
		}
	}
	l.expr(&e)
	if l.b.Bad {
		return false, l.endless()
	}
	return l.visit(&e), nil
}

func (l *locList) endless() error {
	return l.u.Data.Errorf(l.sec, l.off, "the location list does not end")
}

// expr reads an entry's expression.
func (l *locList) expr(e *LocEntry) {
	var n uint64
	if l.u.Version < 5 {
		n = uint64(l.b.U16())
	} else {
		n = l.b.ULEB()
	}
	e.Off = uint64(l.b.P)
	e.Expr = l.b.Bytes(n)
}

func (l *locList) readV4() error {
	u, b := l.u, &l.b
	base := u.lowpc
	for range MaxEntries {
		lo, hi := b.Uint(int(u.AddrSize)), b.Uint(int(u.AddrSize))
		switch {
		case b.Bad:
			return l.endless()
		case lo == 0 && hi == 0:
			return nil
		case lo == u.maxAddr():
			base = hi
			continue
		}
		if more, err := l.bounded(base+lo, base+hi, nil); err != nil || !more {
			return err
		}
	}
	return l.tooLong()
}

func (l *locList) tooLong() error {
	return l.u.Data.Errorf(l.sec, l.off, "the location list has more than %d entries", MaxEntries)
}

func (l *locList) readV5() error {
	u, b := l.u, &l.b
	base := u.lowpc
	var pair *[2]uint64 // of a DW_LLE_view_pair, for the next entry
	for range MaxEntries {
		at := b.P
		kind := b.U8()
		var lo, hi uint64
		var e1, e2 error
		switch kind {
		case LleEndOfList:
			if b.Bad {
				return l.endless()
			}
			return nil
		case LleBaseAddressx:
			if base, e1 = u.Addrx(b.ULEB()); e1 != nil {
				return e1
			}
			continue
		case LleBaseAddress:
			base = b.Uint(int(u.AddrSize))
			continue
		case LleGNUViewPair:
			pair = &[2]uint64{b.ULEB(), b.ULEB()}
			continue
		case LleDefaultLocation:
			e := LocEntry{Whole: true}
			l.expr(&e)
			if !l.b.Bad && !l.visit(&e) {
				return nil
			}
			continue
		case LleStartxEndx:
			lo, e1 = u.Addrx(b.ULEB())
			hi, e2 = u.Addrx(b.ULEB())
		case LleStartxLength:
			lo, e1 = u.Addrx(b.ULEB())
			hi = lo + b.ULEB()
		case LleOffsetPair:
			lo = base + b.ULEB()
			hi = base + b.ULEB()
		case LleStartEnd:
			lo, hi = b.Uint(int(u.AddrSize)), b.Uint(int(u.AddrSize))
		case LleStartLength:
			lo = b.Uint(int(u.AddrSize))
			hi = lo + b.ULEB()
		default:
			return u.Data.Errorf(l.sec, uint64(at), "unknown entry kind %#02x", kind)
		}
		if e1 != nil {
			return e1
		}
		if e2 != nil {
			return e2
		}
		more, err := l.bounded(lo, hi, pair)
		if err != nil || !more {
			return err
		}
		pair = nil
	}
	return l.tooLong()
}
