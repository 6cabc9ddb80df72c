package packfile

import (
	"bytes"

	"github.com/bpfprologue/bpfprologue/internal/sealed"
)

// Reseal makes all checksums of a section right again, as somebody would who has changed it. It reports whether there is room
// for them.
func Reseal(d []byte) bool {
	if len(d) < sealed.HeaderSize {
		return false
	}
	Kind.Reseal(d)
	Seal(d, 0, 0, 0, uint64(len(d)))
	return true
}

// Unpacked returns a section whose pages are not compressed, so that a test can change what is in them.
func Unpacked(d []byte) ([]byte, error) {
	f, err := Open(d, "")
	if err != nil {
		return nil, err
	}
	parts := make([]sealed.Data, numParts)
	for i, p := range f.parts {
		b, err := f.own.Bytes(p.From, p.To)
		if err != nil {
			return nil, err
		}
		parts[i] = sealed.Data{Bytes: b, Records: p.N}
	}
	plain := Kind
	plain.Mapped = true
	return bytes.Join(plain.Assemble(f.own.Header()[sealed.AtFacts:sealed.AtParts], parts), nil), nil
}
