package flow

import "github.com/bpfprologue/bpfprologue/internal/insn"

// Reading is where instructions begin in the code of one function.
//
// It follows the code as a processor does, on all ways from addresses where an instruction
// is known to begin. So data between instructions is not taken for instructions: nothing
// leads there. Code to which only indirect jumps lead is read last, on from the instruction
// before it.
type Reading struct {
	arch    *insn.Arch
	code    []byte
	mark    []uint8
	strange map[int]bool // offsets of what does not decode
}

// What a byte is. It is both if the code is entered in two ways: x86 programs jump over the
// prefix LOCK.
const (
	firstByte = 1 << iota // an instruction begins there
	laterByte             // it is in an instruction that begins before it
)

// Boundary says whether an instruction begins at an address.
type Boundary uint8

const (
	// Unknown means that the code up to there does not decode.
	Unknown Boundary = iota
	// Begins means that an instruction begins there.
	Begins
	// Inside means that an instruction begins before it and ends after it.
	Inside
)

// Read returns the reading of some code, of which nothing is known yet.
func Read(arch *insn.Arch, code []byte) *Reading {
	return &Reading{arch: arch, code: code, mark: make([]uint8, len(code)), strange: make(map[int]bool)}
}

// From follows the code from an offset at which an instruction begins.
func (r *Reading) From(at int) {
	for ways := []int{at}; len(ways) > 0; {
		at := ways[len(ways)-1]
		ways = ways[:len(ways)-1]
		for at >= 0 && at < len(r.code) && r.mark[at]&firstByte == 0 {
			in, ok := r.arch.Next(r.code[at:])
			if !ok || in.Size <= 0 || in.Size > len(r.code)-at {
				r.strange[at] = true
				break
			}
			r.mark[at] |= firstByte
			for i := at + 1; i < at+in.Size; i++ {
				r.mark[i] |= laterByte
			}
			if to := int64(at) + in.Target; in.Branches && to >= 0 && to < int64(len(r.code)) {
				ways = append(ways, int(to))
			}
			if !in.Onward {
				break
			}
			at += in.Size
		}
	}
}

// Known reports whether the byte at an offset has been read.
func (r *Reading) Known(at int) bool { return r.mark[at] != 0 || r.strange[at] }

// At says whether an instruction begins at an offset. With Inside, the instruction that holds
// the byte goes from before to after. With Unknown, before is what does not decode.
func (r *Reading) At(at int) (b Boundary, before, after int) {
	if !r.Known(at) {
		r.readOn(at)
	}
	switch {
	case r.mark[at]&laterByte != 0:
		for before = at - 1; before > 0 && r.mark[before]&firstByte == 0; before-- {
		}
		for after = at + 1; after < len(r.code) && r.mark[after]&laterByte != 0; after++ {
		}
		return Inside, before, after
	case r.mark[at]&firstByte != 0:
		return Begins, at, at
	}
	for before = at; before > 0 && !r.strange[before]; before-- {
	}
	return Unknown, before, at
}

// Returns reads all of the code. It returns the offsets of the instructions after which
// execution goes on nowhere in it: those that return. If something does not decode, strange
// is its offset, and otherwise -1.
func (r *Reading) Returns() (at []int, strange int) {
	strange = -1
	for i := range r.code {
		if !r.Known(i) {
			r.readOn(i)
		}
		if r.strange[i] && strange < 0 {
			strange = i
		}
		if r.mark[i]&firstByte == 0 {
			continue
		}
		if in, ok := r.arch.Next(r.code[i:]); ok && !in.Onward && !in.Branches && !in.Lost {
			at = append(at, i)
		}
	}
	return at, strange
}

// readOn reads from the last instruction that is known before an offset until the offset
// is known, or something does not decode.
func (r *Reading) readOn(at int) {
	from := at
	for from > 0 && !r.Known(from-1) {
		from--
	}
	if from > 0 && r.strange[from-1] {
		return // where the next instruction begins is not known
	}
	for from < len(r.code) && !r.Known(at) && !r.strange[from] {
		r.From(from)
		for from < len(r.code) && r.mark[from] != 0 {
			from++
		}
	}
}
