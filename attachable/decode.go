package attachable

import (
	"encoding/binary"
	"slices"
)

// decoder is what is to be known of an architecture's instructions.
type decoder struct {
	// callSize is the bytes of ftrace's call at a function's beginning.
	callSize uint64
	// fixed is the bytes of every instruction, or 0 where they differ.
	fixed uint64
	// next decodes the instruction that some code begins with. ok is false for one that is
	// not known.
	next func(code []byte) (in instruction, ok bool)
	// steps are the instructions of a fixed size that the kernel's kprobes take or refuse:
	// the first pattern that fits decides, and what none fits they take.
	steps []pattern
	// load and store begin and end a sequence that must not be interrupted; the kernel
	// looks for it in so many instructions before.
	load, store pattern
	sequence    uint64
}

// pattern is the instructions whose words have a value under a mask.
type pattern struct {
	mask, value uint32
	refused     bool
}

func (p pattern) fits(word uint32) bool { return word&p.mask == p.value }

// instruction is one instruction: its size, and where the processor may go from it. From
// a return it goes nowhere.
type instruction struct {
	size     int
	onward   bool  // to the instruction behind it, also when a call comes back
	branches bool  // to target
	lost     bool  // to an address that is not in the instruction
	target   int64 // bytes from the instruction's beginning
}

// decoders are the architectures whose instructions are decoded. For others mid-
// instruction addresses and loops are not checked.
var decoders = map[string]*decoder{
	"amd64": {callSize: 5, next: nextX86},
	"arm64": {callSize: 4, fixed: 4, next: nextARM64, steps: arm64Steps, load: arm64Load, store: arm64Store, sequence: 32},
}

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
	if d == nil {
		return 1
	}
	if d.fixed > 0 {
		return d.fixed
	}
	code, err := t.img.Bytes(addr, 16)
	if err != nil {
		return 1
	}
	in, ok := d.next(code)
	if !ok {
		return 1
	}
	return uint64(in.size)
}

// refuses is why kprobes do not take the instruction at an address of a function that
// begins at from, or CauseNone.
func (t *Table) refuses(from, addr uint64) Cause {
	d := t.decoder()
	if d == nil || len(d.steps) == 0 || addr < from || (addr-from)%d.fixed != 0 {
		return CauseNone
	}
	from = max(from, addr-min(addr, d.sequence*d.fixed))
	code, err := t.img.Bytes(from, addr+d.fixed-from)
	if err != nil {
		return CauseNone
	}
	return d.refuses(code)
}

// refuses looks at the last instruction of some code, and at those before it.
func (d *decoder) refuses(code []byte) Cause {
	last := len(code) - int(d.fixed)
	word := func(at int) uint32 { return binary.LittleEndian.Uint32(code[at:]) }
	if i := slices.IndexFunc(d.steps, func(p pattern) bool { return p.fits(word(last)) }); i >= 0 && d.steps[i].refused {
		return causeCannotStep
	}
	for at := last - int(d.fixed); at >= 0; at -= int(d.fixed) {
		switch {
		case d.store.fits(word(at)):
			return CauseNone
		case d.load.fits(word(at)):
			return causeInExclusive
		}
	}
	return CauseNone
}

// boundary reports whether an instruction begins at an address, as the kernel finds
// out: it decodes from the beginning of the function. checked is false when that does
// not work here.
func (t *Table) boundary(from, addr uint64) (at, checked bool) {
	d := t.decoder()
	if d == nil {
		return false, false
	}
	if d.fixed > 0 {
		return (addr-from)%d.fixed == 0, true
	}
	code, err := t.img.Bytes(from, addr-from+16)
	if err != nil {
		return false, false
	}
	for from < addr {
		in, ok := d.next(code)
		if !ok || in.size <= 0 || in.size > len(code) {
			return false, false
		}
		from += uint64(in.size)
		code = code[in.size:]
	}
	return from == addr, true
}
