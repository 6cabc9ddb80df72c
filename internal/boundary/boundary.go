// Package boundary says whether an instruction begins at an address, as far as the code of its function is known, and what a probe there would change.
package boundary

import (
	"cmp"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/probed"
)

// Code are the instructions around an address, as far as they are known: those of its function from Lo to Hi,
// link-time addresses.
type Code struct {
	Lo, Hi  uint64
	Why     string // nothing is known of them, or ""
	enters  bool   // the function begins at Lo: it is not a part that the rest of it jumps to
	u       *body.Unit
	rec     int32
	below   string // see belowStack
	looked  bool   // it is known
	reading *flow.Reading
}

// Kind says whether an instruction begins at an address.
type Kind uint8

const (
	// Begins is where an instruction begins.
	Begins Kind = iota
	// Inside is inside an instruction.
	Inside
	// Unknown is behind code that does not decode.
	Unknown
)

// Of reads the part of the code of a record's function that holds an address. It begins where the function
// does, or another of its ranges, or its symbol, for which there is a name: a function that leaves room for ftrace
// begins after its symbol (-fpatchable-function-entry).
func Of(u *body.Unit, rec int32, addr uint64, symbol string) (b Code, err error) {
	ranges, err := u.OutermostRanges(rec)
	if err != nil {
		return b, err
	}
	img := u.Image
	b.enters = true
	for i, r := range ranges {
		if addr >= r.Lo && addr < r.Hi {
			b.Lo, b.Hi, b.enters = r.Lo, r.Hi, i == 0
		}
	}
	if sym := img.SymbolAt(addr, symbol); sym != nil && sym.Size > 0 && (b.Hi == 0 || sym.Addr < b.Lo) {
		b.Lo, b.Hi = sym.Addr, max(b.Hi, sym.Addr+sym.Size)
	}
	sec := img.SectionAt(addr)
	if sec == nil || b.Lo < sec.Addr || addr < b.Lo || addr >= b.Hi {
		return Code{Why: "where its function begins is not known"}, nil
	}
	b.Hi = min(b.Hi, sec.Addr+sec.Size)
	code, err := img.Bytes(b.Lo, b.Hi-b.Lo)
	if err != nil {
		// A file with debug information only, or one that is cut short.
		return Code{Why: "the file does not have the function's code"}, nil
	}
	b.u, b.rec, b.reading = u, rec, flow.Read(insn.For(img.Instructions()), code)
	b.reading.From(0)
	return b, nil
}

// Has reports whether the boundaries are those around an address.
func (b *Code) Has(addr uint64) bool { return b.Hi != 0 && addr >= b.Lo && addr < b.Hi }

// At says whether an instruction begins at an address. before and after are the link-time addresses of the instruction that
// holds it and of the next one, or before is that of what does not decode.
func (b *Code) At(addr uint64) (kind Kind, before, after uint64, err error) {
	at := int(addr - b.Lo)
	if !b.reading.Known(at) {
		if err := b.followRows(addr); err != nil {
			return Unknown, 0, 0, err
		}
	}
	is, from, to := b.reading.At(at)
	before, after = b.Lo+uint64(from), b.Lo+uint64(to)
	switch is {
	case flow.Inside:
		return Inside, before, after, nil
	case flow.Unknown:
		return Unknown, before, after, nil
	}
	return Begins, before, after, nil
}

// followRows follows the code from rows of the line table before an address, which are at
// instructions: they lead into code that only indirect jumps reach.
func (b *Code) followRows(before uint64) error {
	rows, err := b.u.Rows()
	if err != nil {
		return err
	}
	i, _ := slices.BinarySearchFunc(rows, b.Lo, func(r dw.Row, a uint64) int { return cmp.Compare(r.Addr, a) })
	for ; i < len(rows) && rows[i].Addr < before; i++ {
		if at := int(rows[i].Addr - b.Lo); !rows[i].End && !b.reading.Known(at) {
			b.reading.From(at)
		}
	}
	return nil
}

// Returns returns the addresses of the instructions that return, from Lo to Hi. known is false if not all of them are, and
// strange is then where the code does not decode.
func (b *Code) Returns() (at []uint64, strange uint64, known bool, err error) {
	if err := b.followRows(b.Hi); err != nil {
		return nil, 0, false, err
	}
	ends, bad := b.reading.Returns()
	if bad >= 0 {
		return nil, b.Lo + uint64(bad), false, nil
	}
	for _, off := range ends {
		at = append(at, b.Lo+uint64(off))
	}
	return at, 0, true, nil
}

// Harm says why a uprobe, or in a kernel a kprobe, at an address would change what the program computes, and the bytes of the instruction there. why is ""
// if it would not, or if that is not known: a file with debug information only has no code.
func (b *Code) Harm(img *body.Image, addr uint64) (code []byte, why string, err error) {
	rules := probed.For(img.Instructions())
	if rules == nil {
		return nil, "", nil
	}
	code, err = img.Instruction(addr)
	if err != nil || code == nil {
		return nil, "", nil
	}
	does, why := probed.UprobeHarms, ""
	if kernel, err := img.IsKernel(); err != nil || !kernel { // damaged tables of a kernel say nothing of its code
		does, why = rules.Uprobe(code)
	} else if why = rules.Kprobe(code); why == "" {
		return nil, "", nil
	}
	switch does {
	case probed.UprobeHarms:
	case probed.UprobeRepeats:
		why = "it would be hit for each element"
	case probed.UprobeCalls:
		if addr == b.Lo && b.enters {
			return nil, "", nil // at its beginning a function has nothing there yet
		}
		if why, err = b.belowStack(rules); err != nil || why == "" {
			return nil, "", err
		}
		why = "Linux 6.18 to 7.2 make a call of it, which writes below the stack pointer, where " + why
	default:
		return nil, "", nil
	}
	if in, ok := insn.For(img.Instructions()).Next(code); ok {
		code = code[:in.Size]
	}
	return code, why, nil
}

// belowStack says what may be below the stack pointer in the function, in any of its ranges, that must not change; "" for nothing.
func (b *Code) belowStack(rules *probed.Rules) (what string, err error) {
	if b.looked {
		return b.below, nil
	}
	b.looked, b.below = true, "the function keeps variables"
	if b.u == nil {
		b.below = "the function may keep variables: its code is not known"
		return b.below, nil
	}
	ranges, err := b.u.OutermostRanges(b.rec)
	if err != nil {
		return b.below, err
	}
	ranges = append(ranges, dw.Range{Lo: b.Lo, Hi: b.Hi})
	if b.u.IsGo() {
		// Go keeps nothing there, since signals write there too, but its stacks end soon.
		b.below = "a function that does not compare it with the end of its goroutine's stack may have no room"
		if code, err := b.u.Image.Bytes(ranges[0].Lo, ranges[0].Hi-ranges[0].Lo); err == nil && probed.ChecksGoStack(code) {
			b.below = ""
		}
		return b.below, nil
	}
	for _, r := range ranges {
		code, err := b.u.Image.Bytes(r.Lo, r.Hi-r.Lo)
		if err != nil || rules.BelowStack(code) {
			return b.below, nil
		}
	}
	b.below = ""
	return "", nil
}
