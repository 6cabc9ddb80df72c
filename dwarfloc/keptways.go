package dwarfloc

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/body"
)

// To find the ways into a body takes longer than all else that a question asks about it, and they are the image's, not the question's. So
// they are kept with the image's index, each unit's in a block: for each record its number, as the distance from the one before, the
// length of its ways, and these.

// keptWays are the ways of a unit's bodies that are known.
type keptWays struct {
	mu    sync.Mutex
	read  bool
	known map[int32][]byte // by record
	added bool
}

// keptWays returns the ways of a record's body, if they were found before.
func (u *unit) keptWays(rec int32) (w body.Ways, ok bool) {
	if !u.img.r.Index.Keeps() {
		return w, false
	}
	k := &u.kept
	k.mu.Lock()
	k.readBlock(u)
	packed, ok := k.known[rec]
	k.mu.Unlock()
	if !ok {
		return w, false
	}
	p := packedWays{bin.Reader{D: packed}}
	p.next(&w)
	if p.b.Bad || p.b.P != len(packed) {
		return body.Ways{}, false // they are found again
	}
	for i := range w.In {
		if !u.img.r.Executable(w.In[i].Probe) {
			return body.Ways{}, false
		}
	}
	return w, true
}

// keepWays notes the ways of a record's body.
func (u *unit) keepWays(rec int32, w *body.Ways) {
	if !u.img.r.Index.Keeps() {
		return
	}
	k := &u.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	k.readBlock(u)
	if k.known == nil {
		k.known = make(map[int32][]byte)
	}
	k.known[rec], k.added = appendWays(nil, w), true
}

// readBlock reads what the index has of the unit, once.
func (k *keptWays) readBlock(u *unit) {
	if k.read {
		return
	}
	k.read = true
	b := bin.Reader{D: u.img.r.Index.Derived(u.Number)}
	rec := uint64(0)
	for len(b.D) > b.P && !b.Bad {
		rec += b.ULEB()
		packed := b.Bytes(b.ULEB())
		if b.Bad || rec >= uint64(len(u.Recs)) {
			return
		}
		if k.known == nil {
			k.known = make(map[int32][]byte)
		}
		k.known[int32(rec)] = packed
	}
}

// deriveWays gives the index the ways that were added, and forgets all.
func (u *unit) deriveWays() {
	k := &u.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.added {
		var b bytes.Buffer
		last := int32(0)
		for _, rec := range slices.Sorted(maps.Keys(k.known)) {
			packed := k.known[rec]
			b.Write(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(rec-last)), uint64(len(packed))))
			b.Write(packed)
			last = rec
		}
		u.img.r.Index.Derive(u.Number, b.Bytes())
	}
	k.read, k.known, k.added = false, nil, false
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
		return img.r.Index.KeepDerived()
	})
}
