package index

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"os"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/mapping"
	"github.com/bpfprologue/bpfprologue/internal/sealed"
	"github.com/bpfprologue/bpfprologue/internal/store"
)

// What answers derive of a unit, and the scan does not need, is kept too, in blocks that only their maker reads, and after those of all
// units those of the image: the kept file is written anew with them when the image is not used any more. Several processes may do so;
// the last one's is left.

// Blocks of the image, which come after those of its units.
const (
	BlockAsked    = iota // symbols: see image.File.Asked
	BlockControls        // see witness.Controls
	BlockExtents         // see entries.Image.UnitsAt
	BlockPlain           // see entries.Unit.Plain
	BlockClaims          // see witness.Controls.Keep
	BlockCoverage        // see coverage.MeasureAll
	imageBlocks
)

// derived has the blocks that are not in the kept file.
type derived struct {
	mu     sync.Mutex
	blocks map[int][]byte // by unit; the image's are after all units'
	facts  [sha256.Size]byte
	known  bool // facts, the hash of the contents that the kept file is of
}

// keptBlocks is where blocks are in a kept file.
type keptBlocks struct {
	file *sealed.File
	ends []byte // for each block 4 bytes: where it ends; empty if there are none
	from int    // where the first one begins
}

// block returns a unit's block.
func (k *keptBlocks) block(unit int) ([]byte, error) {
	if len(k.ends) < 4*(unit+1) {
		return nil, nil
	}
	from := uint32(0)
	if unit > 0 {
		from = binary.LittleEndian.Uint32(k.ends[4*(unit-1):])
	}
	return k.file.Bytes(k.from+int(from), k.from+int(binary.LittleEndian.Uint32(k.ends[4*unit:])))
}

// Keeps reports whether there is a file that keeps the image's scan, or will be.
func (x *Index) Keeps() bool {
	x.derived.mu.Lock()
	defer x.derived.mu.Unlock()
	return x.derived.known
}

// Derived returns a unit's block, which must not be changed, or nil.
func (x *Index) Derived(unit int) []byte {
	x.derived.mu.Lock()
	b, ok := x.derived.blocks[unit]
	x.derived.mu.Unlock()
	if ok || x.Kept == nil {
		return b
	}
	b, err := x.Kept.blocks.block(unit)
	if err != nil {
		return nil // it is derived again
	}
	return b
}

// Derive sets a unit's block.
func (x *Index) Derive(unit int, block []byte) {
	x.derived.mu.Lock()
	defer x.derived.mu.Unlock()
	if x.derived.blocks == nil {
		x.derived.blocks = make(map[int][]byte)
	}
	x.derived.blocks[unit] = block
}

// DerivedOfImage is Derived for a block of the image.
func (x *Index) DerivedOfImage(block int) []byte { return x.Derived(len(x.Units) + block) }

// DeriveImage sets a block of the image.
func (x *Index) DeriveImage(block int, b []byte) { x.Derive(len(x.Units)+block, b) }

// keptFrom notes the hash of the contents that the kept file is of.
func (x *Index) keptFrom(facts []byte) {
	x.derived.mu.Lock()
	defer x.derived.mu.Unlock()
	copy(x.derived.facts[:], facts)
	x.derived.known = true
}

// KeepDerived writes the blocks that were set into the kept file, if it is still of the same contents.
func (x *Index) KeepDerived() error {
	x.derived.mu.Lock()
	defer x.derived.mu.Unlock()
	name := x.keptName()
	if name == "" || !x.derived.known || len(x.derived.blocks) == 0 {
		return nil
	}
	dir, err := store.Create(x.O.Dir, isKept)
	if err != nil {
		return err
	}
	defer dir.Close()
	f, err := dir.File(name, x.maxKept())
	if errors.Is(err, os.ErrNotExist) {
		return nil // it was removed meanwhile
	}
	if err != nil {
		return err
	}
	m, err := mapping.Of(f, x.KeptPath())
	if err != nil {
		return err
	}
	err = mapping.Guard(func() error {
		if len(m.Data) < KeptKnown {
			return nil
		}
		own := len(m.Data) - KeptKnown
		body, err := x.withBlocks(m.Data[:own])
		if err != nil || body == nil || int64(sizeOf(body)+KeptKnown) > x.maxKept() {
			return err
		}
		x.derived.blocks = nil
		if err := dir.Write(name, append(body, m.Data[own:])...); err != nil {
			return err
		}
		return dir.Evict(limitOf(x.O.Limit), name)
	})
	return errors.Join(err, m.Close())
}

// withBlocks returns a kept file with other blocks, in pieces of which some are d's, or nil if it is of other contents.
func (x *Index) withBlocks(d []byte) ([][]byte, error) {
	f, err := KeptKind.Open(d, x.KeptPath())
	if err != nil || !bytes.HasPrefix(f.Header()[sealed.AtFacts:], x.derived.facts[:]) {
		return nil, err
	}
	parts := make([]sealed.Data, keptParts)
	for i := range parts {
		p := f.Part(i)
		b, err := f.Bytes(p.From, p.To)
		if err != nil {
			return nil, err
		}
		parts[i] = sealed.Data{Bytes: b, Records: p.N}
	}
	old := keptBlocks{f, parts[keptEnds].Bytes, f.Part(keptDerived).From}
	var ends, blocks []byte
	for i := range len(x.Units) + imageBlocks {
		b, ok := x.derived.blocks[i]
		if !ok {
			if b, err = old.block(i); err != nil {
				return nil, err
			}
		}
		blocks = append(blocks, b...)
		ends = binary.LittleEndian.AppendUint32(ends, uint32(len(blocks)))
	}
	parts[keptEnds], parts[keptDerived] = sealed.Data{Bytes: ends, Records: len(x.Units) + imageBlocks}, sealed.Data{Bytes: blocks}
	return KeptKind.Assemble(x.derived.facts[:], parts), nil
}
