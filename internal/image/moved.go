package image

import (
	"fmt"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/bin"
)

// relaSize is the bytes of an Elf64_Rela: offset, info, addend.
const relaSize = 24

// Moved returns the addresses that are written between lo and hi when an image is loaded, or by the image itself: the addends of RELATIVE relocations in
// .rela.dyn, which name no symbol. An arm64 kernel, and a program that is position-independent, do not have them in place.
func (f *File) Moved(lo, hi uint64) (map[uint64]uint64, error) {
	i := slices.IndexFunc(f.sections, func(s Section) bool { return s.Name == ".rela.dyn" })
	if i < 0 || f.Arch().WordSize != 8 {
		return nil, nil
	}
	d, err := f.Bytes(f.sections[i].Addr, f.sections[i].Size)
	if err != nil {
		return nil, fmt.Errorf(".rela.dyn: %w", err)
	}
	out := make(map[uint64]uint64)
	for r := (bin.Reader{D: d, BigEndian: f.BigEndian()}); len(r.D)-r.P >= relaSize; {
		if at, info, addend := r.U64(), r.U64(), r.U64(); at >= lo && at < hi && info>>32 == 0 {
			out[at] = addend
		}
	}
	return out, nil
}
