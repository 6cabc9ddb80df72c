package dwarfloc

import (
	"encoding/binary"
	"maps"
	"slices"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/folded"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/resolve"
	"github.com/bpfprologue/bpfprologue/internal/runs"
)

// To find the ways into a body takes longer than all else that a question asks about it, and they are the image's, not the question's. So
// they are kept with the image's index, each unit's in a block: for each record its number, as the distance from the one before, the
// length of its ways, and these.

// keptWays are the ways of a unit's bodies that are known.
type keptWays struct {
	mu    sync.Mutex
	read  bool
	block []byte           // the index's
	next  bin.Reader       // in block: questions are asked in the order of records, mostly
	last  int32            // record before next, or 0
	added map[int32][]byte // by record: those that are not in block
}

// keptWays reads the ways of a record's body into w, whose memory it uses, if they were found before.
func (u *unit) keptWays(rec int32, w *runs.Ways) (ok bool) {
	if !u.img.r.Index.Keeps() {
		return false
	}
	packed := u.kept.find(u, rec)
	if packed == nil {
		return false
	}
	p := packedWays{bin.Reader{D: packed}}
	p.next(w)
	if p.b.Bad || p.b.P != len(packed) {
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
		u.kept.add(rec, appendWays(nil, w))
	}
}

// folded reports whether runs of another function may be in a record's body. What the unit says of that is kept with the number after its records'.
func (u *unit) folded(rec int32) (bool, error) {
	type key struct{}
	roots, err := entries.Remembered(&u.Derived, key{}, func() (folded.Functions, error) {
		keeps, number := u.img.r.Index.Keeps(), int32(len(u.Recs))
		if kept, ok := folded.Unpack(u.kept.find(u, number)); keeps && ok {
			return kept, nil
		}
		found, err := folded.In(&u.Body)
		if err == nil && keeps {
			u.kept.add(number, found.Pack())
		}
		return found, err
	})
	if err != nil || roots[u.Recs[rec].Root] {
		return err == nil, err
	}
	return folded.Foreign(u.Unit, rec)
}

func (k *keptWays) add(rec int32, packed []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.added == nil {
		k.added = make(map[int32][]byte)
	}
	k.added[rec] = packed
}

// find returns the packed ways of a record, or nil.
func (k *keptWays) find(u *unit, rec int32) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	if packed, ok := k.added[rec]; ok {
		return packed
	}
	if !k.read {
		k.read, k.block = true, u.img.r.Index.Derived(u.Number)
		k.rewind()
	}
	if rec <= k.last {
		k.rewind()
	}
	for before := k.next; !k.next.Bad && k.next.P < len(k.block); before = k.next {
		at, packed := k.step()
		switch {
		case k.next.Bad || at > rec:
			k.next = before
			return nil
		case at == rec:
			k.last = rec
			return packed
		}
		k.last = at
	}
	return nil
}

func (k *keptWays) rewind() { k.next, k.last = bin.Reader{D: k.block}, 0 }

// step reads the next record of the block, and its ways.
func (k *keptWays) step() (rec int32, packed []byte) {
	distance := k.next.ULEB()
	packed = k.next.Bytes(k.next.ULEB())
	if distance > 1<<31-1-uint64(k.last) {
		k.next.Bad = true
	}
	return k.last + int32(distance), packed
}

// deriveWays gives the index the ways that were added, and forgets all.
func (u *unit) deriveWays() {
	k := &u.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.added != nil {
		if !k.read {
			k.block = u.img.r.Index.Derived(u.Number)
		}
		for k.rewind(); !k.next.Bad && k.next.P < len(k.block); {
			rec, packed := k.step()
			if _, is := k.added[rec]; !is && !k.next.Bad {
				k.added[rec] = packed
			}
			k.last = rec
		}
		var b []byte
		last := int32(0)
		for _, rec := range slices.Sorted(maps.Keys(k.added)) {
			b = binary.AppendUvarint(b, uint64(rec-last))
			b = binary.AppendUvarint(b, uint64(len(k.added[rec])))
			b = append(b, k.added[rec]...)
			last = rec
		}
		u.img.r.Index.Derive(u.Number, b)
	}
	k.read, k.block, k.added = false, nil, nil
}

// keepDerived is inside.KeepDerived.
func (img *Image) keepDerived() error {
	if img.r == nil || !img.r.Index.Keeps() {
		return nil
	}
	return img.guard(func() error {
		for i := range img.units {
			img.units[i].deriveWays()
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
