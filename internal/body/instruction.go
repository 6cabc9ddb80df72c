package body

import (
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// Decodes reports whether the image's instructions are decoded.
func (img *Image) Decodes() bool { return insn.For(img.Instructions()) != nil }

// OutermostRanges returns the code of the out-of-line function that contains a record's.
func (u *Unit) OutermostRanges(rec int32) ([]dw.Range, error) {
	e, err := u.Entry(u.Off + uint64(u.Recs[u.Outermost(rec)].Off))
	if err != nil {
		return nil, err
	}
	return u.extentOf(e)
}

// longest is the size in bytes of the longest instruction, and one more.
const longest = 16

// Instruction returns the bytes of the instruction at an address, and some after it; nil if the file has none there.
func (img *Image) Instruction(addr uint64) ([]byte, error) { return instruction(img.File, addr) }

func instruction(f *image.File, addr uint64) ([]byte, error) {
	sec := f.SectionAt(addr)
	if sec == nil {
		return nil, nil
	}
	return f.Bytes(addr, min(longest, sec.Addr+sec.Size-addr))
}

// Keeps reports whether an instruction, which code begins with, leaves what reads has, wherever it leads.
func Keeps(architecture string, code []byte, reads Reads) bool {
	arch := insn.For(architecture)
	if arch == nil {
		return false
	}
	in, ok := arch.Next(code)
	w, known := arch.Writes(code)
	return ok && (in.Branches || in.Nop) || known && !w.Touches(reads)
}
