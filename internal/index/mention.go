package index

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
)

// The debug information refers to a function's name by its offset in a string section:
// four bytes that are rare elsewhere. Searching for them is faster than reading
// entries, and a unit without them has no site of the function: an inlined instance
// takes its name from an entry in its own unit, unless a reference leads to another
// one. Units with such references are always read.

// maxNeedles bounds how many offsets of a name are searched for. Linkers merge the ends
// of strings, so "kmalloc" is at the end of 29 strings in a kernel. Each costs a pass
// over all units, and 8 passes take as long as reading all entries.
const maxNeedles = 8

// Mentions returns the units that can have sites of the selector's literal, by size. ok
// is false if the search would not be worth it, or would not find all of them.
func (x *Index) Mentions(ctx context.Context, sel *Selector) (units []int, ok bool, err error) {
	mentions, ok, err := x.Mentioned(sel)
	if !ok || err != nil {
		return nil, false, err
	}
	found := make([]bool, len(x.Units))
	err = x.Parallel(len(x.Units), func(_ *Scanner, i int) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		found[i] = mentions(i, nil)
		return nil
	})
	for _, i := range x.AllUnits() {
		if found[i] {
			units = append(units, i)
		}
	}
	return units, true, err
}

// Mentioned is Mentions for units that are asked for one by one, by their numbers. is, if it is not nil, is asked whether what refers to the
// name in .debug_info, at an offset, is what is looked for.
func (x *Index) Mentioned(sel *Selector) (mentions func(unit int, is func(at uint64) bool) bool, ok bool, err error) {
	if sel.literal == "" || len(sel.offsets) > maxNeedles || x.byIndex() {
		return nil, false, nil // clang's DWARF 5 refers to names by index
	}
	var always []bool
	var order binary.AppendByteOrder = binary.LittleEndian
	if x.Data.BigEndian {
		order = binary.BigEndian
	}
	needles := make([]needle, 0, len(sel.offsets))
	var text needle
	err = x.Guard(func() error {
		always = x.crossing()
		rare := rarity(x.Data.Info)
		for _, n := range sel.offsets {
			needles = append(needles, newNeedle(order.AppendUint32(nil, uint32(x.offsetOf(n))), rare))
		}
		text = newNeedle(append([]byte(sel.literal), 0), rare)
		return nil
	})
	return func(i int, is func(at uint64) bool) bool {
		u := &x.Units[i]
		d := x.Data.Info[u.First:u.End]
		found := func(at int) bool { return is == nil || is(u.First+uint64(at)) }
		return always[i] || slices.ContainsFunc(needles, func(n needle) bool { return n.in(d, found) }) || text.in(d, func(int) bool { return true })
	}, true, err
}

// byIndex reports whether units can refer to names by an index: clang's DWARF 5, and split units.
func (x *Index) byIndex() bool {
	by := false
	x.Data.EachFile(func(d *dw.Data) { by = by || len(d.StrOffsets) > 0 })
	return by
}

// offsetOf returns the offset of a name in its own file's section.
func (x *Index) offsetOf(n NameRef) uint64 {
	off := uint64(n &^ NameSection)
	x.Data.EachStr(n&NameSection == nameLineStr, func(from uint64, d []byte) {
		if at := uint64(n &^ NameSection); at >= from {
			off = at - from
		}
	})
	return off
}

// crossing finds the units whose abbreviations can have references to other units'
// functions: link-time optimized and deduplicated ones. It searches for the bytes of
// DW_AT_abstract_origin or DW_AT_specification with a form that leads elsewhere, which can also
// match by chance.
func (x *Index) crossing() []bool {
	x.crossOnce.Do(func() {
		x.crosses = make([]bool, len(x.Units))
		x.Data.EachFile(func(d *dw.Data) { x.crossingOf(d, x.crosses) })
	})
	return x.crosses
}

// crossingOf is crossing for the units of a file.
func (x *Index) crossingOf(d *dw.Data, out []bool) {
	var at []uint64
	for _, a := range []dw.Attr{dw.AttrAbstractOrigin, dw.AttrSpecification} {
		for _, f := range []dw.Form{dw.FormRefAddr, dw.FormGNURefAlt, dw.FormRefSup4, dw.FormRefSup8} {
			pair := binary.AppendUvarint([]byte{byte(a)}, uint64(f))
			for p := 0; ; p++ {
				i := bytes.Index(d.Abbrev[p:], pair)
				if i < 0 {
					break
				}
				p += i
				at = append(at, uint64(p))
			}
		}
	}
	slices.Sort(at)
	if len(at) == 0 {
		return
	}
	starts := make([]uint64, 0, len(x.Units))
	for i := range x.Units {
		if x.Units[i].Data == d {
			starts = append(starts, x.Units[i].AbbrevOff)
		}
	}
	slices.Sort(starts)
	starts = slices.Compact(starts)
	for i := range x.Units {
		if x.Units[i].Data != d {
			continue
		}
		from := x.Units[i].AbbrevOff
		to := uint64(len(d.Abbrev))
		if j, _ := slices.BinarySearch(starts, from+1); j < len(starts) {
			to = starts[j]
		}
		j, _ := slices.BinarySearch(at, from)
		out[i] = j < len(at) && at[j] < to
	}
}

// rarity counts how often each byte value occurs in a sample of a section.
func rarity(d []byte) *[256]int {
	var n [256]int
	d = d[len(d)/2:]
	for _, c := range d[:min(len(d), 1<<16)] {
		n[c]++
	}
	return &n
}

// needle is a byte string to search for, by its rarest byte first.
type needle struct {
	b    []byte
	rare int // index of that byte
}

func newNeedle(b []byte, rare *[256]int) needle {
	n := needle{b: b}
	for i, c := range b {
		if rare[c] < rare[b[n.rare]] {
			n.rare = i
		}
	}
	return n
}

// in reports whether d has the string at a place that found accepts.
func (n needle) in(d []byte, found func(at int) bool) bool {
	c := n.b[n.rare]
	for p := n.rare; p < len(d); p++ {
		i := bytes.IndexByte(d[p:], c)
		if i < 0 {
			return false
		}
		p += i
		if bytes.HasPrefix(d[p-n.rare:], n.b) && found(p-n.rare) {
			return true
		}
	}
	return false
}
