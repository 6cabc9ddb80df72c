package entries

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// What the code says of parameters takes longer to find out than what the debug information says of them, and of most bodies it says nothing. Of a
// kernel's bodies that is kept with the index, a bit for each record.

// plainBodies are the bodies of an image of whose parameters, where they begin, the debug information lacks nothing that is found elsewhere.
type plainBodies struct {
	mu   sync.Mutex
	read bool
	bits [][]byte // by unit, by record
	more bool     // the index has not all of them
}

// has reports whether the body of a unit's record is known to be such a one.
func (x *plainBodies) has(from *index.Index, u *index.Unit, rec int32) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.begin(from)
	bits := x.bits[u.Number]
	return int(rec/8) < len(bits) && bits[rec/8]>>(rec%8)&1 != 0
}

// set notes that it is.
func (x *plainBodies) set(from *index.Index, u *index.Unit, rec int32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.begin(from)
	bits := &x.bits[u.Number]
	if n := (len(u.Recs) + 7) / 8; len(*bits) < n {
		*bits = append(slices.Clip(*bits), make([]byte, n-len(*bits))...)
	}
	(*bits)[rec/8] |= 1 << (rec % 8)
	x.more = true
}

// begin reads what the index has.
func (x *plainBodies) begin(from *index.Index) {
	if x.read {
		return
	}
	x.read = true
	x.bits = make([][]byte, len(from.Units))
	if !from.Keeps() {
		return
	}
	b := bin.Reader{D: bytes.Clone(from.DerivedOfImage(index.BlockPlain))} // the index's is mapped, and may go
	for i := range x.bits {
		if x.bits[i] = b.Bytes(b.ULEB()); b.Bad {
			clear(x.bits) // they are found again
			return
		}
	}
}

// pack returns a form of them for the index, and whether there are more than it has.
func (x *plainBodies) pack() (packed []byte, more bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.more {
		return nil, false
	}
	for _, bits := range x.bits {
		packed = binary.AppendUvarint(packed, uint64(len(bits)))
		packed = append(packed, bits...)
	}
	return packed, true
}
