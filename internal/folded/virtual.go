package folded

import (
	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/image"
)

// Of virtual functions that were made one, link-time optimization leaves one name, and no symbol of the others. But the tables through which they
// are called tell (Itanium C++ ABI, section 2.5.2, "Virtual Table Components and Order"): each virtual function of a class has one place
// in its table, so that code which is at two places of it is that of two functions; and a derived class has the functions of its first base at the
// places where that has them, so that code which is at different places in the tables of two classes is, too. A linker that folds
// sections (--icf) leaves the same.

// virtual returns the link-time addresses of the code that several virtual functions have.
func virtual(img *entries.Image) (map[uint64]bool, error) {
	type key struct{}
	if known, ok := img.Derived.Load(key{}); ok {
		return known.(map[uint64]bool), nil
	}
	tables, err := img.File.Objects("_ZTV")
	if err != nil {
		return nil, err
	}
	x := virtuals{img: img, shared: make(map[uint64]bool), places: make(map[uint64]uint64)}
	var moved map[uint64]uint64
	if len(tables) > 0 {
		lo, hi := ^uint64(0), uint64(0)
		for _, t := range tables {
			lo, hi = min(lo, t.Addr), max(hi, t.Addr+t.Size)
		}
		moved, _ = img.File.Moved(lo, hi) // a debug file has no contents of that section, nor of the tables
	}
	for _, t := range tables {
		x.read(t, moved)
	}
	img.Derived.Store(key{}, x.shared)
	return x.shared, nil
}

// virtuals is what the tables of classes say of code.
type virtuals struct {
	img    *entries.Image
	shared map[uint64]bool
	places map[uint64]uint64 // of code: its place, counted from what describes the class
}

// read reads a class's table, of which some words are written when it is loaded.
func (x *virtuals) read(t image.Symbol, moved map[uint64]uint64) {
	file, size := x.img.File, uint64(x.img.Arch().WordSize)
	d, err := file.Bytes(t.Addr, t.Size)
	if err != nil {
		return // a debug file has the symbols, and not what they are of
	}
	seen := make(map[uint64]bool) // in the part of one of its bases
	described, parts := uint64(0), 0
	r := bin.Reader{D: d, BigEndian: file.BigEndian()}
	for at := t.Addr; at+size <= t.Addr+t.Size; at += size {
		w := r.Uint(int(size))
		if to, ok := moved[at]; ok {
			w = to
		}
		if x.img.Arch().LowBit {
			w &^= 1
		}
		switch s := file.SectionAt(w); {
		case s != nil && s.Exec:
			if seen[w] {
				x.shared[w] = true
			}
			seen[w] = true
			if parts == 1 { // the first base's, and the class's own
				if place, ok := x.places[w]; ok && place != at-described {
					x.shared[w] = true
				}
				x.places[w] = at - described
			}
		case s != nil: // what describes the class: functions of another base follow
			described = at
			parts++
			clear(seen)
		case w>>(8*size-1) != 0: // how far the object is behind that base
			clear(seen)
		}
	}
}

// sharesVirtual reports whether a function that is not inlined has the code of several virtual functions.
func sharesVirtual(u *entries.Unit, e dw.Entry) (bool, error) {
	at, live, err := begins(u, e)
	if err != nil || !live {
		return false, err
	}
	shared, err := virtual(u.Img)
	return shared[at.Addr], err
}
