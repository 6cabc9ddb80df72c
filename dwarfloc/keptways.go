package dwarfloc

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/folded"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/resolve"
	"github.com/bpfprologue/bpfprologue/internal/runs"
)

// To find the ways into a body takes longer than all else that a question asks about it, and they are the image's, not the question's. So
// they are kept with the image's index.

// keptWays reads the ways of a record's body into w, whose memory it uses, if they were found before.
func (u *unit) keptWays(rec int32, w *runs.Ways) (ok bool) {
	if !u.img.r.Index.Keeps() {
		return false
	}
	packed := u.kept.Find(u.Index, u.Number, rec)
	if packed == nil {
		return false
	}
	p := runs.Unpack(packed)
	if p.Next(w); !p.Whole() {
		return false // they are found again
	}
	for i := range w.In {
		if !u.img.r.Executable(w.In[i].Probe) {
			return false
		}
	}
	return true
}

// keepWays notes the ways of a record's body.
func (u *unit) keepWays(rec int32, w *runs.Ways) {
	if u.img.r.Index.Keeps() {
		u.kept.Add(rec, w.Append(nil))
	}
}

// folded reports whether runs of another function may be in a record's body. What the unit says of that is kept with the number after its records'.
func (u *unit) folded(rec int32) (bool, error) {
	if !folded.May(u.Unit, rec) {
		return folded.Foreign(u.Unit, rec)
	}
	type key struct{}
	roots, err := entries.Remembered(&u.Derived, key{}, func() (folded.Functions, error) {
		keeps, number := u.img.r.Index.Keeps(), int32(len(u.Recs))
		if kept, ok := folded.Unpack(u.kept.Find(u.Index, u.Number, number)); keeps && ok {
			return kept, nil
		}
		found, err := folded.In(u.Unit)
		if err == nil && keeps {
			u.kept.Add(number, found.Pack())
		}
		return found, err
	})
	if err != nil || roots.Has(&u.Body, rec) {
		return err == nil, err
	}
	return folded.Foreign(u.Unit, rec)
}

// keptCoverage is inside.Kept.
func (img *Image) keptCoverage() (b []byte) {
	if !img.whole() || !img.ready() {
		return nil
	}
	err := img.guard(func() error {
		b = slices.Clone(img.r.Index.DerivedOfImage(index.BlockCoverage))
		return nil
	})
	if err != nil {
		return nil
	}
	return b
}

// keepCoverage is inside.Keep.
func (img *Image) keepCoverage(b []byte) {
	if img.whole() && img.r.Index.Keeps() {
		img.r.Index.DeriveImage(index.BlockCoverage, b)
	}
}

// whole reports whether the image answers by all that its own debug information says, and by nothing else.
func (img *Image) whole() bool {
	return img.r != nil && img.o.TypesOf == nil && img.o.Recover == nil && img.lost == nil
}

// keepDerived is inside.KeepDerived.
func (img *Image) keepDerived() error {
	if img.r == nil || !img.r.Index.Keeps() {
		return nil
	}
	return img.guard(func() error {
		for i := range img.units {
			img.units[i].kept.Keep(img.r.Index, i)
		}
		if asked, more := img.file.Asked(); more {
			img.r.Index.DeriveImage(index.BlockAsked, asked)
		}
		if learned, more := resolve.ControlsOf(img.r).Learned(); more {
			img.r.Index.DeriveImage(index.BlockControls, learned)
		}
		if claims, more := resolve.ControlsOf(img.r).Claims(); more {
			img.r.Index.DeriveImage(index.BlockClaims, claims)
		}
		if extents, more := img.r.Extents(); more {
			img.r.Index.DeriveImage(index.BlockExtents, extents)
		}
		if plain, more := img.r.PlainBodies(); more {
			img.r.Index.DeriveImage(index.BlockPlain, plain)
		}
		return img.r.Index.KeepDerived()
	})
}
