package oracle

import "fmt"

// ranges returns the address ranges of an entry (DWARF 5 section 2.17).
func (r *Reader) ranges(n *node) ([][2]uint64, error) {
	var out [][2]uint64
	if low, ok := n.Val(attrLowpc).(uint64); ok {
		switch high := n.Val(attrHighpc).(type) {
		case uint64:
			out = append(out, [2]uint64{low, high})
		case int64:
			out = append(out, [2]uint64{low, low + uint64(high)})
		}
	}
	t := n.unit
	section, read := ".debug_ranges", r.rangesV4
	if t.Version >= 5 {
		section, read = ".debug_rnglists", r.rangesV5
	}
	var off uint64
	switch v := n.Val(attrRanges).(type) {
	case nil:
		return out, nil
	case int64:
		off = uint64(v)
	case uint64: // DW_FORM_rnglistx: an index into the unit's table of offsets
		base, ok := t.root.Val(attrRnglistsBase).(int64)
		if !ok {
			return nil, fmt.Errorf("oracle: unit at %#x has no DW_AT_rnglists_base", t.Off)
		}
		c := r.f.cursor(r.f.sections[section], uint64(base)+v*uint64(t.offset()))
		if off = uint64(base) + c.uint(t.offset()); c.bad {
			return nil, fmt.Errorf("oracle: no ranges with index %d", v)
		}
	default:
		return nil, fmt.Errorf("oracle: ranges of the entry at %#x: %T", uint64(n.Offset), v)
	}
	c := r.f.cursor(r.f.sections[section], off)
	list, err := read(t, &c)
	if err == nil && c.bad {
		err = fmt.Errorf("the list runs out of the section")
	}
	if err != nil {
		return nil, fmt.Errorf("oracle: %s at %#x: %w", section, off, err)
	}
	return append(out, list...), nil
}

// rangesV4 reads .debug_ranges (DWARF 4 section 2.17.3).
func (r *Reader) rangesV4(t *tree, c *cursor) ([][2]uint64, error) {
	var out [][2]uint64
	base := t.lowPC()
	for !c.bad {
		lo, hi := c.uint(t.address), c.uint(t.address)
		switch {
		case lo == 0 && hi == 0:
			return out, nil
		case lo == Extend(^uint64(0), t.address, false):
			base = hi
		default:
			out = append(out, [2]uint64{r.f.wrap(base + lo), r.f.wrap(base + hi)})
		}
	}
	return out, nil
}

// rangesV5 reads .debug_rnglists (DWARF 5 sections 2.17.3 and 7.25).
func (r *Reader) rangesV5(t *tree, c *cursor) (out [][2]uint64, err error) {
	base := t.lowPC()
	for !c.bad && err == nil {
		var lo, hi uint64
		switch kind := c.uint(1); kind {
		case 0x00: // end_of_list
			return out, nil
		case 0x01: // base_addressx
			base, err = r.indexed(t, c.uleb())
			continue
		case 0x02: // startx_endx
			if lo, err = r.indexed(t, c.uleb()); err == nil {
				hi, err = r.indexed(t, c.uleb())
			}
		case 0x03: // startx_length
			lo, err = r.indexed(t, c.uleb())
			hi = lo + c.uleb()
		case 0x04: // offset_pair
			lo = r.f.wrap(base + c.uleb())
			hi = r.f.wrap(base + c.uleb())
		case 0x05: // base_address
			base = c.uint(t.address)
			continue
		case 0x06: // start_end
			lo = c.uint(t.address)
			hi = c.uint(t.address)
		case 0x07: // start_length
			lo = c.uint(t.address)
			hi = lo + c.uleb()
		default:
			return nil, fmt.Errorf("entry of unknown kind %#x", kind)
		}
		out = append(out, [2]uint64{lo, hi})
	}
	return out, err
}
