// Package sealed is the format that packs and kept indexes share: parts, cut into pages that are checked one by one when they
// are read. See docs/packs.md.
package sealed

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"slices"
)

// A section is a header of fixed size, a table of pages, and the pages: parts, which follow each other, cut into pieces
// of PageSize bytes, each of which may be compressed alone. Offsets in errors are those of parts, the first of which has the
// offset HeaderSize, as if nothing were compressed; damage of the section itself has the section's. Numbers are little-endian.

// HeaderSize is the size of a header, and PageSize that of what is compressed together, in bytes.
const (
	HeaderSize = 320
	PageSize   = 16 << 10
)

// Kind is what sections hold.
type Kind struct {
	Magic   string // the first 8 bytes
	Version uint32
	Section string // what errors call it
	What    string // and its contents, as "the pack"
	Damaged error  // is wrapped by errors about damage
	Parts   []string
	// Mapped sections are not compressed, and read where they are. Nobody else may write to them.
	Mapped bool
}

// Offsets in the header. Between flags and parts is what each kind notes in its own way.
const (
	atVersion = 8   // 4 bytes
	atHeader  = 12  // 4: HeaderSize
	atSize    = 16  // 8: of the section
	atSum     = 24  // 32: SHA-256 of the section from atHeadSum on
	atHeadSum = 56  // 4: CRC-32C of the header without the 36 bytes before AtFacts
	AtFacts   = 60  // what each kind notes in its own way, up to AtParts
	AtParts   = 200 // for each part 4 and 4: bytes, and records
	pageEntry = 8   // in the table of pages: 4 and 4: bytes that are stored, and their CRC-32C
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sum returns the CRC-32C of parts that follow each other.
func Sum(parts ...[]byte) (crc uint32) {
	for _, p := range parts {
		crc = crc32.Update(crc, castagnoli, p)
	}
	return crc
}

// headSum is the checksum of a header.
func headSum(b []byte) uint32 { return Sum(b[:atSum], b[AtFacts:HeaderSize]) }

// Data is a part to write, and how many records it has.
type Data struct {
	Bytes   []byte
	Records int
}

// Assemble makes a section of parts, in pieces that follow each other, the first of which has the header. facts are what the header
// has from AtFacts on. Pieces may be the parts' own bytes.
func (k *Kind) Assemble(facts []byte, parts []Data) (pieces [][]byte) {
	le := binary.LittleEndian
	size := 0
	for _, p := range parts {
		size += len(p.Bytes)
	}
	b := make([]byte, HeaderSize, HeaderSize+pagesOf(size)*pageEntry)
	copy(b, k.Magic)
	le.PutUint32(b[atVersion:], k.Version)
	le.PutUint32(b[atHeader:], HeaderSize)
	copy(b[AtFacts:AtParts], facts)
	bodies := make([][]byte, len(parts))
	for i, p := range parts {
		bodies[i] = p.Bytes
		le.PutUint32(b[AtParts+8*i:], uint32(len(p.Bytes)))
		le.PutUint32(b[AtParts+8*i+4:], uint32(p.Records))
	}
	entry := func(n int, sum uint32) {
		b = le.AppendUint32(b, uint32(n))
		b = le.AppendUint32(b, sum)
	}
	if k.Mapped {
		eachPage(bodies, entry)
	} else {
		bodies = slices.Collect(slices.Chunk(bytes.Join(bodies, nil), PageSize))
		compressAll(bodies)
		for _, page := range bodies {
			entry(len(page), Sum(page))
		}
	}
	stored := len(b)
	for _, p := range bodies {
		stored += len(p)
	}
	le.PutUint64(b[atSize:], uint64(stored))
	pieces = append([][]byte{b}, bodies...)
	seal(pieces)
	return pieces
}

// eachPage calls f with the size and the checksum of each page of what some pieces have together.
func eachPage(pieces [][]byte, f func(n int, sum uint32)) {
	n, sum := 0, uint32(0)
	for _, p := range pieces {
		for len(p) > 0 {
			part := p[:min(len(p), PageSize-n)]
			p, n, sum = p[len(part):], n+len(part), crc32.Update(sum, castagnoli, part)
			if n == PageSize {
				f(n, sum)
				n, sum = 0, 0
			}
		}
	}
	if n > 0 {
		f(n, sum)
	}
}

// Seal makes the checksums of a header right, those of its pages are.
func Seal(section []byte) { seal([][]byte{section}) }

// seal is Seal for a section in pieces, the first of which has the header.
func seal(pieces [][]byte) {
	head := pieces[0]
	binary.LittleEndian.PutUint32(head[atHeadSum:], headSum(head))
	h := sha256.New()
	for i, p := range pieces {
		if i == 0 {
			p = p[atHeadSum:]
		}
		for part := range slices.Chunk(p, PageSize) { // what is hashed at once cannot be interrupted, not even by a collection of the heap
			_, _ = h.Write(part)
		}
	}
	h.Sum(head[atSum:atSum])
}

// Reseal makes all checksums of a section right again, as somebody would who has changed it. It reports whether there is room
// for them.
func (k *Kind) Reseal(d []byte) bool {
	if len(d) < HeaderSize {
		return false
	}
	le := binary.LittleEndian
	size := 0
	for i := range k.Parts {
		size += int(le.Uint32(d[AtParts+8*i:]))
	}
	pages := pagesOf(size)
	at := HeaderSize + pages*pageEntry
	for p := range pages {
		if HeaderSize+(p+1)*pageEntry > len(d) {
			break
		}
		n := int(le.Uint32(d[HeaderSize+p*pageEntry:]))
		if at+n > len(d) {
			break
		}
		le.PutUint32(d[HeaderSize+p*pageEntry+4:], Sum(d[at:at+n]))
		at += n
	}
	Seal(d)
	return true
}

func pagesOf(size int) int { return (size + PageSize - 1) / PageSize }
