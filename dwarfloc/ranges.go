package dwarfloc

// addrRange is a range of link-time addresses, [lo, hi).
type addrRange struct{ lo, hi uint64 }

// maxEntries bounds a range or location list; the longest of a kernel has some
// thousand.
const maxEntries = 1 << 16

// rangeList reads the value of a DW_AT_ranges: .debug_ranges up to DWARF 4
// (section 2.17.3), .debug_rnglists since DWARF 5 (section 2.17.3). Empty ranges
// stay in: their address says where an inlined instance begins.
func (u *unit) rangeList(v value) ([]addrRange, error) {
	if u.version < 5 {
		return u.rangesV4(v.u)
	}
	off := v.u
	if v.form == formRnglistx {
		var err error
		if off, err = u.listOffset(".debug_rnglists", u.img.rnglists, u.rngBase, v.u); err != nil {
			return nil, err
		}
	}
	return u.rangesV5(off)
}

// listOffset looks up an index of a list section's offset table (DWARF 5 section
// 7.28 and 7.29).
func (u *unit) listOffset(name string, d []byte, base, index uint64) (uint64, error) {
	if base == 0 {
		base = 12 // behind the first header of the section
		if u.dwarf64 {
			base = 20
		}
	}
	b := buf{d: d, be: u.img.be}
	if index > uint64(len(d)) {
		b.fail()
	}
	b.seek(base + index*uint64(u.offsetSize()))
	rel := b.offset(u.dwarf64)
	if b.bad {
		return 0, u.img.errorf(name, base, "list index %d is outside the section", index)
	}
	return base + rel, nil
}

func (u *unit) rangesV4(off uint64) ([]addrRange, error) {
	b := buf{d: u.img.ranges, be: u.img.be}
	b.seek(off)
	base := u.lowpc
	var out []addrRange
	for len(out) < maxEntries {
		lo, hi := b.uint(int(u.addrSize)), b.uint(int(u.addrSize))
		switch {
		case b.bad:
			return nil, u.img.errorf(".debug_ranges", off, "the range list does not end")
		case lo == 0 && hi == 0:
			return out, nil
		case lo == u.maxAddr():
			base = hi
		default:
			out = append(out, addrRange{base + lo, base + hi})
		}
	}
	return nil, u.img.errorf(".debug_ranges", off, "the range list has more than %d entries", maxEntries)
}

func (u *unit) maxAddr() uint64 {
	if u.addrSize == 4 {
		return 1<<32 - 1
	}
	return 1<<64 - 1
}

func (u *unit) rangesV5(off uint64) ([]addrRange, error) {
	b := buf{d: u.img.rnglists, be: u.img.be}
	b.seek(off)
	base := u.lowpc
	var out []addrRange
	var err error
	indexed := func() uint64 {
		a, e := u.addrx(b.uleb())
		if e != nil && err == nil {
			err = e
		}
		return a
	}
	for range maxEntries {
		at := b.p
		kind := b.u8()
		var r addrRange
		switch kind {
		case rleEndOfList:
			if b.bad {
				return nil, u.img.errorf(".debug_rnglists", off, "the range list does not end")
			}
			return out, err
		case rleBaseAddressx:
			base = indexed()
			continue
		case rleBaseAddress:
			base = b.uint(int(u.addrSize))
			continue
		case rleStartxEndx:
			r.lo = indexed()
			r.hi = indexed()
		case rleStartxLength:
			r.lo = indexed()
			r.hi = r.lo + b.uleb()
		case rleOffsetPair:
			r.lo = base + b.uleb()
			r.hi = base + b.uleb()
		case rleStartEnd:
			r.lo = b.uint(int(u.addrSize))
			r.hi = b.uint(int(u.addrSize))
		case rleStartLength:
			r.lo = b.uint(int(u.addrSize))
			r.hi = r.lo + b.uleb()
		default:
			return nil, u.img.errorf(".debug_rnglists", uint64(at), "unknown entry kind %#02x", kind)
		}
		if b.bad {
			return nil, u.img.errorf(".debug_rnglists", off, "the range list does not end")
		}
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return nil, u.img.errorf(".debug_rnglists", off, "the range list has more than %d entries", maxEntries)
}

// pcAttrs gathers the attributes that say where an entry's code is.
type pcAttrs struct {
	low, high, ranges, entry value
	entryView                uint64
}

func (a *pcAttrs) take(name attrName, v value) {
	switch name {
	case attrLowpc:
		a.low = v
	case attrHighpc:
		a.high = v
	case attrRanges:
		a.ranges = v
	case attrEntrypc:
		a.entry = v
	case attrGNUEntryView:
		a.entryView = v.u
	}
}

// extent returns the ranges of an entry's code.
func (u *unit) extent(a *pcAttrs) ([]addrRange, error) {
	if a.ranges.form != 0 {
		return u.rangeList(a.ranges)
	}
	if a.low.form == 0 {
		return nil, nil
	}
	lo, err := u.address(a.low)
	if err != nil {
		return nil, err
	}
	hi := lo
	switch {
	case a.high.form == 0:
	case a.high.isConstant():
		hi = lo + a.high.u
	default:
		if hi, err = u.address(a.high); err != nil {
			return nil, err
		}
	}
	return []addrRange{{lo, hi}}, nil
}

// start returns the address at which an entry's code is entered: DW_AT_entry_pc
// (an address, or since DWARF 5 section 2.18 an offset from the base address),
// else DW_AT_low_pc, else the first range, which need not be the lowest.
func (u *unit) start(a *pcAttrs) (addr uint64, ok bool, err error) {
	if a.entry.form != 0 && !a.entry.isConstant() {
		addr, err = u.address(a.entry)
		return addr, err == nil, err
	}
	if a.low.form != 0 {
		addr, err = u.address(a.low)
	} else if a.ranges.form != 0 {
		r, e := u.rangeList(a.ranges)
		if e != nil || len(r) == 0 {
			return 0, false, e
		}
		addr = r[0].lo
	} else {
		return 0, false, nil
	}
	if a.entry.form != 0 {
		addr += a.entry.u
	}
	return addr, err == nil, err
}

func covers(ranges []addrRange, addr uint64) bool {
	for _, r := range ranges {
		if addr >= r.lo && addr < r.hi {
			return true
		}
	}
	return false
}
