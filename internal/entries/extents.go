package entries

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/radix"
)

// Where units have code is read from all of them, which for a library of many small units takes longer than most questions: it is kept with the image's index.

// extent is code of a unit.
type extent struct {
	dw.Range
	unit int
}

// extents are where the units of an image have code, by address.
type extents struct {
	once      sync.Once
	all       []extent
	unbounded []int // units that do not say it
	new       bool  // the index does not have them

	overlapOnce sync.Once
	overlap     map[int][]int
}

// unitExtents returns where the image's units have code.
func (img *Image) unitExtents() *extents {
	x := &img.extents
	x.once.Do(func() {
		if img.Index.Keeps() && x.unpack(img.Index.DerivedOfImage(index.BlockExtents), len(img.Units)) {
			return
		}
		x.read(img.Units)
	})
	return x
}

// read reads it from the units.
func (x *extents) read(units []Unit) {
	x.all, x.unbounded, x.new = nil, nil, true
	for i := range units {
		u := &units[i]
		if u.IsType() {
			continue
		}
		if u.Load() != nil { // damage is reported where the unit is asked for
			x.unbounded = append(x.unbounded, i)
			continue
		}
		ranges, bounded, err := u.Code()
		if err != nil || !bounded {
			x.unbounded = append(x.unbounded, i)
			continue
		}
		for _, r := range ranges {
			// A function without code has an address too, and perhaps another function's symbol.
			x.all = append(x.all, extent{dw.Range{Lo: r.Lo, Hi: max(r.Hi, r.Lo+1)}, i})
		}
	}
	radix.Sort(x.all, func(e *extent) uint64 { return e.Lo })
}

// pack returns the form for unpack.
func (x *extents) pack() []byte {
	b := binary.AppendUvarint(nil, uint64(len(x.all)))
	last := uint64(0)
	for _, e := range x.all {
		b = binary.AppendUvarint(b, e.Lo-last)
		b = binary.AppendUvarint(b, e.Hi-e.Lo)
		b = binary.AppendUvarint(b, uint64(e.unit))
		last = e.Lo
	}
	b = binary.AppendUvarint(b, uint64(len(x.unbounded)))
	for _, n := range x.unbounded {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

// unpack reads what pack has written. It returns false if there is nothing, or it is damaged.
func (x *extents) unpack(d []byte, units int) bool {
	b := bin.Reader{D: d}
	n := b.ULEB()
	if n > uint64(len(d)) {
		return false
	}
	x.all = make([]extent, n)
	last := uint64(0)
	for i := range x.all {
		e := &x.all[i]
		e.Lo = last + b.ULEB()
		e.Hi = e.Lo + b.ULEB()
		unit := b.ULEB()
		if unit >= uint64(units) {
			return false
		}
		last, e.unit = e.Lo, int(unit)
	}
	for left := b.ULEB(); left > 0 && !b.Bad; left-- {
		unit := b.ULEB()
		if unit >= uint64(units) {
			return false
		}
		x.unbounded = append(x.unbounded, int(unit))
	}
	return len(d) > 0 && !b.Bad && b.P == len(d)
}

// UnitsAt returns the numbers of the units that may have code at one of some sorted addresses, in their order.
func (img *Image) UnitsAt(sorted []uint64) []int {
	x := img.unitExtents()
	units := slices.Clone(x.unbounded)
	for _, e := range x.all {
		if i, _ := slices.BinarySearch(sorted, e.Lo); i < len(sorted) && sorted[i] < e.Hi {
			units = append(units, e.unit)
		}
	}
	slices.Sort(units)
	return slices.Compact(units)
}

// Overlapping returns the numbers of the units that have code where a unit has some.
func (img *Image) Overlapping(unit int) []int {
	x := img.unitExtents()
	x.overlapOnce.Do(func() {
		x.overlap = make(map[int][]int)
		for i := range x.all {
			for _, e := range x.all[i+1:] {
				if e.Lo >= x.all[i].Hi {
					break
				}
				if a, b := x.all[i].unit, e.unit; a != b && !slices.Contains(x.overlap[a], b) {
					x.overlap[a], x.overlap[b] = append(x.overlap[a], b), append(x.overlap[b], a)
				}
			}
		}
	})
	return x.overlap[unit]
}

// Extents returns where the image's units have code in the form of the index's block, and whether that has not got it.
func (img *Image) Extents() (packed []byte, more bool) {
	if x := &img.extents; x.new {
		return x.pack(), true
	}
	return nil, false
}
