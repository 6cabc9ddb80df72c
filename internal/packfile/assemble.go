package packfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"runtime"

	"github.com/bpfprologue/bpfprologue/internal/sealed"
)

// assemble puts the parts together. The section is sealed as one that is alone.
func (e *encoder) assemble(parts [numParts][]byte) []byte {
	le := binary.LittleEndian
	head := make([]byte, sealed.AtParts)
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
	le.PutUint32(head[atFlags:], flags)
	inlined, values := 0, 0
	for i := range e.w.sites {
		s := &e.w.sites[i]
		if s.inline {
			inlined++
		}
		values += len(e.w.tuples.all[s.tuple])
	}
	for i, n := range []int{len(e.w.sites), inlined, values, len(e.blockList), len(e.funs), e.roots} {
		le.PutUint32(head[atCounts+4*i:], uint32(n))
	}
	le.PutUint32(head[atBase:], x.Types.BaseTypes)
	le.PutUint32(head[atBase+4:], x.Types.BaseStrings)
	copy(head[atBase+8:], x.Types.BaseSum[:])
	counts := [numParts]int{len(e.names), len(e.texts), len(e.funs), len(e.funs), len(e.typ), len(e.params), len(e.sigs), len(e.values), len(e.frames), len(e.results),
		len(e.tuples), len(e.blockList), 1, len(parts[partBTFSums]) / 4}
	data := make([]sealed.Data, numParts)
	for i := range data {
		data[i] = sealed.Data{Bytes: parts[i], Records: counts[i]}
	}
	// What the parts were made of is given back, a quarter of a gigabyte of a kernel: compressing them takes memory too, in pieces
	// so large that the heap would grow by them before it is collected.
	*e.w, *e = Writer{}, encoder{}
	runtime.GC()
	b := bytes.Join(Kind.Assemble(head[sealed.AtFacts:], data), nil)
	Seal(b, 0, 0, 0, uint64(len(b)))
	return b
}

// Seal notes checksums in a whole file, of which size bytes from at on are the section, and btfSize bytes from btf on .BTF,
// which is before it.
func Seal(file []byte, btf, btfSize, at, size uint64) {
	b := file[at : at+size]
	for _, x := range []struct {
		at    int
		parts [][]byte
	}{{atRest, [][]byte{file[:btf], file[btf+btfSize : at], file[at+size:]}}, {atBTF, [][]byte{file[btf : btf+btfSize]}}} {
		binary.LittleEndian.PutUint32(b[x.at:], sealed.Sum(x.parts...))
		sum := hash(x.parts...)
		copy(b[x.at+4:], sum[:])
	}
	sealed.Seal(b)
}

// hash returns the SHA-256 of parts that follow each other.
func hash(parts ...[]byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, p := range parts {
		_, _ = h.Write(p)
	}
	h.Sum(sum[:0])
	return sum
}
