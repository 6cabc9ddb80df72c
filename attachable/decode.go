package attachable

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/probed"
)

// decoder is what is known of the instructions of the image's architecture, or nil: then
// mid-instruction addresses and loops are not checked.
func (t *Table) decoder() *insn.Arch { return insn.For(inside.File(t.img).Instructions()) }

// rules are what the kernel does with probes at them. They are nil where the decoder is.
func (t *Table) rules() *probed.Rules { return probed.For(inside.File(t.img).Instructions()) }

// Decodes reports whether instructions of the image's architecture are looked at. Where they are not,
// CauseNone says only that the kernel's tables and sections allow a probe.
func (t *Table) Decodes() bool { return t.decoder() != nil }

func (t *Table) callSize() uint64 {
	if r := t.rules(); r != nil {
		return r.CallSize
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
	if d.Fixed > 0 {
		return d.Fixed
	}
	code := codeAt(t.img, addr, maxInstruction)
	if code == nil {
		return 1
	}
	in, ok := d.Next(code)
	if !ok {
		return 1
	}
	return uint64(in.Size)
}

// refuses returns why kprobes do not take the instruction at an address of a function that
// begins at from, or CauseNone.
func (t *Table) refuses(from, addr uint64) Cause {
	d, rules := t.decoder(), t.rules()
	if d == nil {
		return CauseNone
	}
	var code []byte
	if len(rules.Refusals) > 0 || d.Fixed == 0 {
		code = codeAt(t.img, addr, maxInstruction)
	}
	if len(rules.Refusals) > 0 {
		if slices.ContainsFunc(rules.Refusals, func(r probed.Refusal) bool { return slices.Compare(t.release[:], r.Since[:]) >= 0 && r.Is(code) }) {
			return causeCannotStep
		}
		if rules.Kprobe(code) != "" {
			return causeMisread
		}
	}
	if len(rules.Steps) == 0 || addr < from || d.Fixed > 0 && (addr-from)%d.Fixed != 0 {
		return CauseNone
	}
	if d.Fixed == 0 {
		if code != nil && rules.CannotStep(code) {
			return causeCannotStep
		}
		return CauseNone
	}
	from = max(from, addr-min(addr, rules.Sequence*d.Fixed))
	before, err := inside.File(t.img).Bytes(from, addr+d.Fixed-from)
	if err != nil {
		return CauseNone
	}
	return refuses(d, rules, t.release, before)
}

// refuses looks at the last instruction of some code, and at those before it that a sequence may
// begin with, as a release of the kernel does.
func refuses(d *insn.Arch, rules *probed.Rules, release [2]int, code []byte) Cause {
	last := len(code) - int(d.Fixed)
	if rules.CannotStep(code[last:]) {
		return causeCannotStep
	}
	i := slices.IndexFunc(rules.Exclusives, func(e probed.Exclusive) bool { return slices.Compare(e.Since[:], release[:]) <= 0 })
	for at := last - int(d.Fixed); at >= 0 && i >= 0; at -= int(d.Fixed) {
		switch word := d.Word(code[at:]); {
		case rules.Exclusives[i].Store.Fits(word):
			return CauseNone
		case rules.Exclusives[i].Load.Fits(word):
			return causeInExclusive
		}
	}
	return CauseNone
}

// boundary reports whether an instruction begins at an address of a function, as the kernel finds
// out: it decodes from the beginning of the function. checked is false when that does not work
// here.
func (t *Table) boundary(f span, addr uint64) (at, checked bool) {
	d := t.decoder()
	if d == nil {
		return false, false
	}
	if d.Fixed > 0 {
		return (addr-f.lo)%d.Fixed == 0, true
	}
	if methodsOf[t.img.Arch().Name].read == nil {
		return t.begins(d, f, addr)
	}
	r := t.reading(f)
	off := addr - f.lo
	if addr > r.strange || off >= uint64(len(r.code)) {
		return false, false
	}
	return addr == r.strange || r.begins[off/64]>>(off%64)&1 != 0, true
}

// begins is boundary where nothing else is asked about the function.
func (t *Table) begins(d *insn.Arch, f span, addr uint64) (at, checked bool) {
	code := codeAt(t.img, f.lo, f.hi-f.lo)
	end := addr - f.lo
	for off := uint64(0); off < end; {
		in, ok := d.Next(code[min(off, uint64(len(code))):])
		if !ok {
			return false, false
		}
		if off += uint64(in.Size); off > end {
			return false, true
		}
	}
	return true, true
}

// maxInstruction is more than the bytes of any instruction.
const maxInstruction = 16

// codeAt returns up to n bytes of code from an address, or nil if the file has none there:
// what follows the end of the section is left out.
func codeAt(img *dwarfloc.Image, addr, n uint64) []byte {
	s := inside.File(img).SectionAt(addr)
	if s == nil {
		return nil
	}
	code, err := inside.File(img).Bytes(addr, min(n, s.Addr+s.Size-addr))
	if err != nil {
		return nil
	}
	return code
}
