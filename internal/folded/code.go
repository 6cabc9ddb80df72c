package folded

import (
	"bytes"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// most is how many instructions code has at most that only leads to a function: with those that keep the stack aligned, or protect it.
const most = 8

// leads returns the address to which code only leads, or 0.
func leads(f *image.File, arch *insn.Arch, code dw.Range) (to uint64) {
	b, err := f.Bytes(code.Lo, code.Hi-code.Lo)
	if err != nil {
		return 0
	}
	for n := 0; len(b) > 0; n++ {
		in, ok := arch.Next(b)
		if !ok || n == most || in.Size > len(b) {
			return 0
		}
		if in.Branches || in.Call {
			if to != 0 {
				return 0
			}
			to = code.Hi - uint64(len(b)) + uint64(in.Target)
		}
		b = b[in.Size:]
	}
	return to
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
