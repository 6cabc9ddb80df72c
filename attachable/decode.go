package attachable

import (
	"bytes"

	"golang.org/x/arch/x86/x86asm"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
)

// decoder is what is to be known of an architecture's instructions.
type decoder struct {
	// callSize is the bytes of ftrace's call at a function's beginning.
	callSize uint64
	// next decodes one instruction: its size, and the distance from its end that it
	// branches to, if it does so directly. ok is false for one that is not known.
	next func(code []byte) (size int, branch int64, branches, ok bool)
}

// decoders are the architectures whose instructions are decoded. For others mid-
// instruction addresses and loops are not checked.
var decoders = map[string]*decoder{
	"amd64": {callSize: 5, next: nextX86},
	"arm64": {callSize: 4, next: func(code []byte) (int, int64, bool, bool) { return 4, 0, false, len(code) >= 4 }},
}

func nextX86(code []byte) (size int, branch int64, branches, ok bool) {
	inst, err := x86asm.Decode(code, 64)
	// What x86asm does not know behind a prefix, it makes the prefix an instruction.
	if err != nil || inst.Len == 1 && bytes.IndexByte(x86Prefixes, code[0]) >= 0 {
		prefixes, other := alike(code)
		if inst, err = x86asm.Decode(other, 64); err != nil || inst.Len < 3 {
			return 0, 0, false, false
		}
		return prefixes + inst.Len, 0, false, true
	}
	if rel, is := inst.Args[0].(x86asm.Rel); is && inst.Op != x86asm.CALL {
		return inst.Len, int64(rel), true, true
	}
	return inst.Len, 0, false, true
}

// alike is, behind the prefixes, an instruction of the same size in place of one of
// the groups 0F 01, 0F AE and 0F C7, many of which x86asm does not know (ENCLS, RDPKRU,
// VMGEXIT, XSAVES): all have a ModRM byte and no immediate, as IMUL, 0F AF, has. It is
// empty for others.
func alike(code []byte) (prefixes int, other []byte) {
	for prefixes < len(code) && bytes.IndexByte(x86Prefixes, code[prefixes]) >= 0 {
		prefixes++
	}
	other = bytes.Clone(code[min(prefixes, 15):min(len(code), 15)])
	at := 0
	if len(other) > 0 && other[0]&0xf0 == 0x40 {
		at = 1 // REX
	}
	if len(other) < at+3 || other[at] != 0x0f {
		return 0, nil
	}
	switch other[at+1] {
	case 0x01, 0xae, 0xc7:
		other[at+1] = 0xaf
		return prefixes, other
	}
	return 0, nil
}

// x86Prefixes are the prefixes of an instruction besides REX.
var x86Prefixes = []byte{0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3}

func (t *Table) decoder() *decoder { return decoders[t.img.Arch().Name] }

func (t *Table) callSize() uint64 {
	if d := t.decoder(); d != nil {
		return d.callSize
	}
	return 1
}

// instructionSize is the bytes of the instruction at an address, or 1 when it is not
// known.
func (t *Table) instructionSize(addr uint64) uint64 {
	d := t.decoder()
	code, err := t.img.Contents(addr, 16)
	if d == nil || err != nil {
		return 1
	}
	size, _, _, ok := d.next(code)
	if !ok {
		return 1
	}
	return uint64(size)
}

// boundary reports whether an instruction begins at an address, as the kernel finds
// out: it decodes from the beginning of the function. checked is false when that does
// not work here.
func (t *Table) boundary(from, addr uint64) (at, checked bool) {
	d := t.decoder()
	if d == nil {
		return false, false
	}
	code, err := t.img.Contents(from, addr-from+16)
	if err != nil {
		return false, false
	}
	for from < addr {
		size, _, _, ok := d.next(code)
		if !ok || size <= 0 || size > len(code) {
			return false, false
		}
		from += uint64(size)
		code = code[size:]
	}
	return from == addr, true
}

// Refires reports whether a branch in an inlined site's own code leads back to the
// site's address: then its probe fires on every turn of that loop. checked is false
// when the code cannot be decoded.
func (t *Table) Refires(s *dwarfloc.Site) (again, checked bool, err error) {
	if s.Kind == dwarfloc.Entry {
		return false, true, nil
	}
	d := t.decoder()
	if d == nil || t.img.Arch().Name == "arm64" {
		return false, false, nil
	}
	ranges, err := s.Ranges()
	if err != nil {
		return false, false, err
	}
	checked = true
	for _, r := range ranges {
		if r.Hi <= r.Lo {
			continue
		}
		code, err := t.img.Contents(r.Lo, r.Hi-r.Lo)
		if err != nil {
			return false, false, err
		}
		for at := r.Lo; len(code) > 0; {
			size, branch, branches, ok := d.next(code)
			if !ok || size <= 0 || size > len(code) {
				checked = false
				break
			}
			if branches && at >= s.Addr && at+uint64(size)+uint64(branch) == s.Addr {
				return true, true, nil
			}
			at += uint64(size)
			code = code[size:]
		}
	}
	return false, checked, nil
}
