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
	if sel.literal == "" || len(sel.offsets) > maxNeedles || len(x.Data.StrOffsets) > 0 || x.Data.BigEndian {
		return nil, false, nil // clang's DWARF 5 refers to names by index
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
// functions: link-time optimized and deduplicated ones. It searches for the bytes of
// DW_AT_abstract_origin or DW_AT_specification with DW_FORM_ref_addr, which can also
// match by chance.
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
