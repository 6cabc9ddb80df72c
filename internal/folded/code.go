package folded

import (
	"bytes"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// most is how many instructions code has at most that only leads to a function: with those that keep the stack aligned, or protect it.
const most = 8

// leads reports whether code does nothing but lead to an address.
func leads(f *image.File, arch *insn.Arch, code dw.Range, to uint64) bool {
	b, err := f.Bytes(code.Lo, code.Hi-code.Lo)
	if err != nil {
		return false
	}
	there := false
	for n := 0; len(b) > 0; n++ {
		in, ok := arch.Next(b)
		if !ok || n == most || in.Size > len(b) {
			return false
		}
		if in.Branches || in.Call {
			if there || code.Hi-uint64(len(b))+uint64(in.Target) != to {
				return false
			}
			there = true
		}
		b = b[in.Size:]
	}
	return there
}

// equal reports whether two pieces of code are the same, and lead to the same addresses outside.
func equal(f *image.File, arch *insn.Arch, x, y dw.Range) bool {
	if x.Hi-x.Lo != y.Hi-y.Lo {
		return false
	}
	a, errA := f.Bytes(x.Lo, x.Hi-x.Lo)
	b, errB := f.Bytes(y.Lo, y.Hi-y.Lo)
	if errA != nil || errB != nil || len(a) != len(b) {
		return false
	}
	for at := 0; at < len(a); {
		p, ok := arch.Next(a[at:])
		if !ok || at+p.Size > len(a) {
			return false
		}
		if end := at + p.Size; !bytes.Equal(a[at:end], b[at:end]) {
			q, ok := arch.Next(b[at:])
			if !ok || p.Target == 0 || q.Target == 0 || x.Lo+uint64(at)+uint64(p.Target) != y.Lo+uint64(at)+uint64(q.Target) || p.Call != q.Call || p.Size != q.Size {
				return false
			}
		}
		at += p.Size
	}
	return true
}
