package packfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
)

// assemble puts the parts together. The section is sealed as one that is alone.
func (e *encoder) assemble(parts [numParts][]byte) []byte {
	le := binary.LittleEndian
	body := bytes.Join(parts[:], nil)
	b := make([]byte, headerSize)
	var stored []byte
	for p := 0; p < len(body); p += pageSize {
		page := compress(body[p:min(p+pageSize, len(body))])
		b = le.AppendUint32(b, uint32(len(page)))
		b = le.AppendUint32(b, crc32.Checksum(page, castagnoli))
		stored = append(stored, page...)
	}
	b = append(b, stored...)
	copy(b, magic)
	le.PutUint32(b[atVersion:], Version)
	le.PutUint32(b[atHeader:], headerSize)
	le.PutUint64(b[atSize:], uint64(len(b)))
	x := &e.w.facts
	flags := uint32(0)
	if x.Kernel {
		flags |= flagKernel
	}
	if x.Checked {
		flags |= flagChecked
	}
	if x.Types.Base {
		flags |= flagBase
	}
	le.PutUint32(b[atFlags:], flags)
	inlined, values := 0, 0
	for i := range e.w.sites {
		s := &e.w.sites[i]
		if s.inline {
			inlined++
		}
		values += len(e.w.tuples.all[s.tuple])
	}
	for i, n := range []int{len(e.w.sites), inlined, values, len(e.blockList), len(e.funs), e.roots} {
		le.PutUint32(b[atCounts+4*i:], uint32(n))
	}
	le.PutUint32(b[atBase:], x.Types.BaseTypes)
	le.PutUint32(b[atBase+4:], x.Types.BaseStrings)
	copy(b[atBase+8:], x.Types.BaseSum[:])
	counts := [numParts]int{len(e.names), len(e.texts), len(e.funs), len(e.funs), len(e.typ), len(e.params), len(e.sigs), len(e.values), len(e.frames), len(e.results),
		len(e.tuples), len(e.blockList)}
	for i := range parts {
		le.PutUint32(b[atParts+8*i:], uint32(len(parts[i])))
		le.PutUint32(b[atParts+8*i+4:], uint32(counts[i]))
	}
	Seal(b, 0, 0, 0, uint64(len(b)))
	return b
}

// Seal notes checksums in a whole file, of which size bytes from at on are the section, and btfSize bytes from btf on .BTF,
// which is before it.
func Seal(file []byte, btf, btfSize, at, size uint64) {
	le := binary.LittleEndian
	b := file[at : at+size]
	for _, x := range []struct {
		at    int
		parts [][]byte
	}{{atRest, [][]byte{file[:btf], file[btf+btfSize : at], file[at+size:]}}, {atBTF, [][]byte{file[btf : btf+btfSize]}}} {
		crc, sum := sums(x.parts...)
		le.PutUint32(b[x.at:], crc)
		copy(b[x.at+4:], sum[:])
	}
	le.PutUint32(b[atHeadSum:], headSum(b))
	sum := sha256.Sum256(b[atHeadSum:])
	copy(b[atSum:], sum[:])
}

// headSum is the checksum of a header.
func headSum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:atSum], castagnoli), castagnoli, b[atFlags:headerSize])
}

func sums(parts ...[]byte) (crc uint32, sum [sha256.Size]byte) {
	h := sha256.New()
	for _, p := range parts {
		crc = crc32.Update(crc, castagnoli, p)
		_, _ = h.Write(p)
	}
	h.Sum(sum[:0])
	return crc, sum
}
