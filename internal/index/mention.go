package index

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
)

// One function's name stands in the debug information as an offset in a string
// section, four bytes that are rare elsewhere. Looking for these bytes is faster than
// reading entries, and a unit without them has no site of the function: an inlined
// instance takes its name from an entry of its own unit, unless a reference leads to
// another one. Units with such references are read in any case.

// maxNeedles bounds how many places of a name are looked for. Linkers share the ends
// of strings, so "kmalloc" is found at the end of 29 strings of a kernel; each costs
// a pass over all units, and 8 are as much as reading all.
const maxNeedles = 8

// Mentions returns the units that can have sites of the selector's literal, in order
// of their size. ok is false when looking for them does not pay, or would not find
// all.
func (x *Index) Mentions(ctx context.Context, sel *Selector) (units []int, ok bool, err error) {
	if sel.literal == "" || len(sel.offsets) > maxNeedles || len(x.Data.StrOffsets) > 0 || x.Data.BigEndian {
		return nil, false, nil // names by index, in units of DWARF 5 made by clang
	}
	var always []bool
	needles := make([]needle, 0, len(sel.offsets)+1)
	err = x.Guard(func() error {
		always = x.crossing()
		rare := rarity(x.Data.Info)
		for _, n := range sel.offsets {
			needles = append(needles, newNeedle(binary.LittleEndian.AppendUint32(nil, uint32(n)), rare))
		}
		needles = append(needles, newNeedle(append([]byte(sel.literal), 0), rare))
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	found := make([]bool, len(x.Units))
	err = x.Parallel(len(x.Units), func(_ *Scanner, i int) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		u := &x.Units[i]
		d := x.Data.Info[u.First:u.End]
		found[i] = always[i] || slices.ContainsFunc(needles, func(n needle) bool { return n.in(d) })
		return nil
	})
	for _, i := range x.AllUnits() {
		if found[i] {
			units = append(units, i)
		}
	}
	return units, true, err
}

// crossing finds the units whose abbreviations can have references to other units'
// functions: link-time optimised and de-duplicated ones. It looks for the bytes of
// DW_AT_abstract_origin or DW_AT_specification with DW_FORM_ref_addr, and may find
// more than there is.
func (x *Index) crossing() []bool {
	var at []uint64
	for _, a := range []dw.Attr{dw.AttrAbstractOrigin, dw.AttrSpecification} {
		pair := []byte{byte(a), byte(dw.FormRefAddr)}
		for p := 0; ; p++ {
			i := bytes.Index(x.Data.Abbrev[p:], pair)
			if i < 0 {
				break
			}
			p += i
			at = append(at, uint64(p))
		}
	}
	slices.Sort(at)
	out := make([]bool, len(x.Units))
	if len(at) == 0 {
		return out
	}
	starts := make([]uint64, len(x.Units))
	for i := range x.Units {
		starts[i] = x.Units[i].AbbrevOff
	}
	slices.Sort(starts)
	starts = slices.Compact(starts)
	for i := range x.Units {
		from := x.Units[i].AbbrevOff
		to := uint64(len(x.Data.Abbrev))
		if j, _ := slices.BinarySearch(starts, from+1); j < len(starts) {
			to = starts[j]
		}
		j, _ := slices.BinarySearch(at, from)
		out[i] = j < len(at) && at[j] < to
	}
	return out
}

// rarity counts how often each byte is in a part of a section.
func rarity(d []byte) *[256]int {
	var n [256]int
	d = d[len(d)/2:]
	for _, c := range d[:min(len(d), 1<<16)] {
		n[c]++
	}
	return &n
}

// needle is what is looked for: by its rarest byte first.
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

func (n needle) in(d []byte) bool {
	c := n.b[n.rare]
	for p := n.rare; p < len(d); p++ {
		i := bytes.IndexByte(d[p:], c)
		if i < 0 {
			return false
		}
		p += i
		if bytes.HasPrefix(d[p-n.rare:], n.b) {
			return true
		}
	}
	return false
}
