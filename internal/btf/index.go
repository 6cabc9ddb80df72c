package btf

import (
	"encoding/binary"

	"github.com/bpfprologue/bpfprologue/internal/bin"
)

// An index of a section says what New finds out by going through all types: where each 64th is, which have tags of
// declarations, and how enumerations are written. Numbers are little-endian:
//
//	4 number of types, 4 flags (1: enumerations say whether they are signed), 4 number of tags,
//	4 each: the offset of each 64th type,
//	4 and 4 each: type that has a tag, and offset of the tag's text

// Index returns the index of a section.
func Index(data []byte) ([]byte, error) {
	b, err := New(data, nil)
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	flags := uint32(0)
	if b.signs {
		flags = 1
	}
	out := le.AppendUint32(le.AppendUint32(le.AppendUint32(nil, uint32(b.n)), flags), uint32(len(b.tags)))
	for _, off := range b.at {
		out = le.AppendUint32(out, off)
	}
	for _, t := range b.tags {
		out = le.AppendUint32(le.AppendUint32(out, uint32(t.of)), t.tag)
	}
	return out, nil
}

// Indexed is New for a section with an index. Nothing is read of it but what is asked for, after check was called
// for the range, from and to being offsets in data.
func Indexed(data []byte, base *Types, index []byte, check func(from, to int) error) (*Types, error) {
	b, err := outline(data, base, check)
	if err != nil {
		return nil, err
	}
	r := bin.Reader{D: index}
	n, flags, tags := uint64(r.U32()), r.U32(), uint64(r.U32())
	steps := (n + step - 1) / step
	if uint64(len(index)) != 12+4*steps+8*tags || n > uint64(len(b.types)/typeSize) {
		return nil, b.errorf(0, "the index of %d types and %d tags has %d bytes", n, tags, len(index))
	}
	b.n, b.signs = int(n), flags&1 != 0
	b.at = make([]uint32, steps)
	for i := range b.at {
		b.at[i] = r.U32()
	}
	for range tags {
		b.tags = append(b.tags, tagged{ID(r.U32()), r.U32()})
	}
	return b, nil
}
