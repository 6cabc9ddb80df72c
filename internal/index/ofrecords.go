package index

import (
	"encoding/binary"
	"maps"
	"slices"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/bin"
)

// OfRecords is what was derived for the records of one unit, in its block: for each of these records its number, as the distance from the one
// before, the length of what was derived, and that. The zero value is ready to use, by several goroutines.
type OfRecords struct {
	mu    sync.Mutex
	read  bool
	block []byte           // the index's
	next  bin.Reader       // in block: questions are asked in the order of records, mostly
	last  int32            // record before next, or 0
	added map[int32][]byte // by record: those that are not in block
}

// Add notes what was derived for a record.
func (k *OfRecords) Add(rec int32, packed []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.added == nil {
		k.added = make(map[int32][]byte)
	}
	k.added[rec] = packed
}

// Find returns what was derived for a record of a unit, which must not be changed, or nil.
func (k *OfRecords) Find(x *Index, unit int, rec int32) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	if packed, ok := k.added[rec]; ok {
		return packed
	}
	if !k.read {
		k.read, k.block = true, x.Derived(unit)
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

func (k *OfRecords) rewind() { k.next, k.last = bin.Reader{D: k.block}, 0 }

// step reads the next record of the block, and what was derived for it.
func (k *OfRecords) step() (rec int32, packed []byte) {
	distance := k.next.ULEB()
	packed = k.next.Bytes(k.next.ULEB())
	if distance > 1<<31-1-uint64(k.last) {
		k.next.Bad = true
	}
	return k.last + int32(distance), packed
}

// Keep gives the index what was added, and forgets all.
func (k *OfRecords) Keep(x *Index, unit int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.added != nil {
		if !k.read {
			k.block = x.Derived(unit)
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
		x.Derive(unit, b)
	}
	k.read, k.block, k.added = false, nil, nil
}
