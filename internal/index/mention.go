package index

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"sync/atomic"

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
	if sel.ends {
		if units, ok, err = x.mentionsFirst(ctx, sel); ok || err != nil {
			return units, ok, err
		}
	}
	return x.mentionsOf(ctx, sel, sel.offsets)
}

// mentionsFirst is Mentions for a name that is only at the ends of longer strings, in one section. So a linker has merged the strings, and then equal
// ones share one place: of the 300,000 names of functions in four kernels none has two. (`ld -r` does not merge, and names have several places in what it
// writes, but as whole strings.) The other places are therefore not searched for if a function has its name at the first; ok is false if none has.
func (x *Index) mentionsFirst(ctx context.Context, sel *Selector) (units []int, ok bool, err error) {
	units, ok, err = x.mentionsOf(ctx, sel, sel.offsets[:1])
	if !ok || err != nil {
		return nil, false, err
	}
	var named atomic.Bool
	// Progress is shown by the question that reads all of the units: once.
	err = x.each(ctx, units, nil, func(_ *Scanner, u *Unit) error {
		if slices.ContainsFunc(u.Recs, func(r Rec) bool { return r.Name == sel.offsets[0] }) {
			named.Store(true)
		}
		return nil
	})
	return units, named.Load(), err
}

// mentionsOf is Mentions for a name at some offsets.
func (x *Index) mentionsOf(ctx context.Context, sel *Selector, offsets []NameRef) (units []int, ok bool, err error) {
	mentions, ok, err := x.mentioned(sel, offsets, true)
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
	return x.mentioned(sel, sel.offsets, false)
}

// mentioned is Mentioned, for a name at some offsets. functions says that only functions' names are asked for: then the name itself is
// searched for only in units that have some of those in their entries.
func (x *Index) mentioned(sel *Selector, offsets []NameRef, functions bool) (mentions func(unit int, is func(at uint64) bool) bool, ok bool, err error) {
	if sel.literal == "" || len(offsets) > maxNeedles || x.byIndex() {
		return nil, false, nil // clang's DWARF 5 refers to names by index
	}
	shapes, err := x.shapesOf()
	if err != nil {
		return nil, false, err
	}
	var order binary.AppendByteOrder = binary.LittleEndian
	if x.Data.BigEndian {
		order = binary.BigEndian
	}
	needles := make([]needle, 0, len(offsets))
	var text needle
	err = x.Guard(func() error {
		rare := rarity(x.Data.Info)
		for _, n := range offsets {
			needles = append(needles, newNeedle(order.AppendUint32(nil, uint32(x.offsetOf(n))), rare))
		}
		text = newNeedle(append([]byte(sel.literal), 0), rare)
		return nil
	})
	return func(i int, is func(at uint64) bool) bool {
		u := &x.Units[i]
		d := x.Data.Info[u.First:u.End]
		found := func(at int) bool { return is == nil || is(u.First+uint64(at)) }
		return shapes[i].crosses || slices.ContainsFunc(needles, func(n needle) bool { return n.in(d, found) }) ||
			(!functions || shapes[i].names) && text.in(d, func(int) bool { return true })
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
