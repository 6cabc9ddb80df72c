package oracle

import (
	"fmt"
)

// Rule is the rule by which an expression was chosen. The names are dwarfloc's.
type Rule string

// The rules that dwarfloc uses too.
const (
	RuleNone      Rule = "none"
	RuleConstant  Rule = "constant"    // DW_AT_const_value
	RuleWhole     Rule = "whole-scope" // one expression
	RuleView      Rule = "view"        // the entry that covers address and view
	RuleLaterView Rule = "later-view"  // the first entry at the address with a later view
	RuleFirst     Rule = "first"       // the empty entry at the address, without views
	RuleAddress   Rule = "address"     // the entry that covers the address, without views
	RuleDefault   Rule = "default"     // DW_LLE_default_location
)

// listEntry is one entry of a location list.
type listEntry struct {
	lo, hi         uint64
	viewLo, viewHi uint64
	viewed         bool
	isDefault      bool
	expr           []byte
}

// choose applies the rules for (address, view) to a whole list.
func choose(list []listEntry, addr, view uint64) ([]byte, Rule) {
	before := func(a, av, b, bv uint64) bool { return a < b || a == b && av < bv }
	for _, e := range list {
		switch {
		case e.isDefault:
		case e.viewed && !before(addr, view, e.lo, e.viewLo) && before(addr, view, e.hi, e.viewHi):
			return e.expr, RuleView
		case !e.viewed && e.lo == addr && e.hi == addr:
			return e.expr, RuleFirst // what a parameter is before the body assigns it
		case !e.viewed && e.lo <= addr && addr < e.hi:
			return e.expr, RuleAddress
		}
	}
	for _, e := range list {
		if e.viewed && e.lo == addr && e.viewLo >= view { // also one that is empty there
			return e.expr, RuleLaterView
		}
	}
	for _, e := range list {
		if e.isDefault {
			return e.expr, RuleDefault
		}
	}
	return nil, RuleNone
}

// list reads the location list that an attribute refers to. views is the
// attribute with the view pairs, or nil.
func (r *Reader) list(t *tree, loc, views *field) ([]listEntry, error) {
	section := ".debug_loclists"
	if t.Version < 5 {
		section = ".debug_loc"
	}
	c := r.f.cursor(r.f.sections[section], 0)
	off, err := r.listOffset(t, loc)
	if err != nil {
		return nil, err
	}
	c.p = off
	var out []listEntry
	if t.Version < 5 {
		out, err = r.listV4(t, &c)
	} else {
		out, err = r.listV5(t, &c)
	}
	if err == nil && c.bad {
		err = fmt.Errorf("the list runs out of the section")
	}
	if err == nil && views != nil {
		err = pair(out, cursor{d: c.d}, views)
	}
	if err != nil {
		return nil, fmt.Errorf("oracle: %s at %#x: %w", section, off, err)
	}
	return out, nil
}

// pair gives each bounded entry its views: pairs of ULEB128, in the list's order.
func pair(list []listEntry, c cursor, views *field) error {
	off, ok := views.Val.(int64)
	if !ok {
		return fmt.Errorf("view pairs of type %T", views.Val)
	}
	c.p = uint64(off)
	for i := range list {
		if list[i].isDefault {
			continue
		}
		list[i].viewed = true
		list[i].viewLo, list[i].viewHi = c.uleb(), c.uleb()
	}
	if c.bad {
		return fmt.Errorf("the view pairs run out of the section")
	}
	return nil
}

func (r *Reader) listOffset(t *tree, loc *field) (uint64, error) {
	switch v := loc.Val.(type) {
	case int64: // an offset in the section
		return uint64(v), nil
	case uint64: // DW_FORM_loclistx: an index into the unit's table of offsets
		base, ok := t.root.Val(attrLoclistsBase).(int64)
		if !ok {
			return 0, fmt.Errorf("oracle: unit at %#x has no DW_AT_loclists_base", t.Off)
		}
		size := t.offset()
		c := r.f.cursor(r.f.sections[".debug_loclists"], uint64(base)+v*uint64(size))
		off := uint64(base) + c.uint(size)
		if c.bad {
			return 0, fmt.Errorf("oracle: no list with index %d", v)
		}
		return off, nil
	}
	return 0, fmt.Errorf("oracle: location of type %T", loc.Val)
}

func (t *tree) lowPC() uint64 {
	v, _ := t.root.Val(attrLowpc).(uint64)
	return v
}

// listV4 reads .debug_loc (DWARF 4 section 2.6.2).
func (r *Reader) listV4(t *tree, c *cursor) ([]listEntry, error) {
	var out []listEntry
	base := t.lowPC()
	for !c.bad {
		lo, hi := c.uint(r.f.word), c.uint(r.f.word)
		switch {
		case lo == 0 && hi == 0:
			return out, nil
		case lo == Extend(^uint64(0), r.f.word, false):
			base = hi
		default:
			out = append(out, listEntry{lo: r.f.wrap(base + lo), hi: r.f.wrap(base + hi), expr: c.bytes(c.uint(2))})
		}
	}
	return out, nil
}

// listV5 reads .debug_loclists (DWARF 5 sections 2.6.2 and 7.7.3).
func (r *Reader) listV5(t *tree, c *cursor) ([]listEntry, error) {
	var out []listEntry
	base := t.lowPC()
	var views *[2]uint64
	add := func(e listEntry) {
		e.expr = c.bytes(c.uleb())
		if views != nil {
			e.viewed, e.viewLo, e.viewHi = true, views[0], views[1]
			views = nil
		}
		out = append(out, e)
	}
	for !c.bad {
		kind := c.uint(1)
		var err1, err2 error
		var e listEntry
		switch kind {
		case 0x00: // end_of_list
			return out, nil
		case 0x01: // base_addressx
			if base, err1 = r.indexed(t, c.uleb()); err1 != nil {
				return nil, err1
			}
			continue
		case 0x02: // startx_endx
			e.lo, err1 = r.indexed(t, c.uleb())
			e.hi, err2 = r.indexed(t, c.uleb())
		case 0x03: // startx_length
			e.lo, err1 = r.indexed(t, c.uleb())
			e.hi = e.lo + c.uleb()
		case 0x04: // offset_pair
			e.lo = r.f.wrap(base + c.uleb())
			e.hi = r.f.wrap(base + c.uleb())
		case 0x05: // default_location
			out = append(out, listEntry{isDefault: true, expr: c.bytes(c.uleb())})
			continue
		case 0x06: // base_address
			base = c.uint(r.f.word)
			continue
		case 0x07: // start_end
			e.lo = c.uint(r.f.word)
			e.hi = c.uint(r.f.word)
		case 0x08: // start_length
			e.lo = c.uint(r.f.word)
			e.hi = e.lo + c.uleb()
		case 0x09: // GNU_view_pair, for the next bounded entry
			views = &[2]uint64{c.uleb(), c.uleb()}
			continue
		default:
			return nil, fmt.Errorf("entry of unknown kind %#x", kind)
		}
		if err1 != nil {
			return nil, err1
		}
		if err2 != nil {
			return nil, err2
		}
		add(e)
	}
	return out, nil
}

// indexed returns an address of .debug_addr.
func (r *Reader) indexed(t *tree, i uint64) (uint64, error) {
	base, ok := t.root.Val(attrAddrBase).(int64)
	if !ok {
		return 0, fmt.Errorf("oracle: unit at %#x has no DW_AT_addr_base", t.Off)
	}
	c := r.f.cursor(r.f.sections[".debug_addr"], uint64(base)+uint64(r.f.word)*i)
	a := c.uint(r.f.word)
	if c.bad {
		return 0, fmt.Errorf("oracle: no address with index %d", i)
	}
	return a, nil
}

// wrap reduces an address to its size.
func (f *File) wrap(addr uint64) uint64 { return Extend(addr, f.word, false) }
