package insn

import (
	"encoding/binary"
	"sync"
)

// forms are an architecture's instructions as data: how long they are, and where control goes after
// them. What no form fits goes on at the next instruction.
type forms struct {
	// word returns the first instruction in code as a number, and its size. ok is false if code is cut
	// short, or if nothing says how long the instruction is.
	word func(code []byte) (word uint64, size int, ok bool)
	// key are the bits of a word by which forms are found.
	key  piece
	list []form
	by   func() [][]uint16 // by the key's value
}

// form is what the instructions do whose words have a value under a mask. The first one that fits
// counts.
type form struct {
	mask, value uint64
	does        control
	to          *distance // to where they lead
}

// control says how execution goes on after an instruction.
type control uint16

const (
	ends    control = 1 << iota // not at the next instruction
	calls                       // a function
	lost                        // perhaps at an address that it does not contain
	leaves                      // perhaps in the function's caller
	traps                       // always
	idle                        // it does nothing
	unknown                     // no instruction, as far as is known
)

// distance is a number of bytes in an instruction: signed, and from the beginning of the instruction.
type distance struct {
	pieces []piece
	bits   uint8 // including those that are always 0
	plus   int64
}

// piece are bits of a word, and where they are in a number.
type piece struct{ at, bits, to uint8 }

func (p piece) of(word uint64) uint64 { return word >> p.at & (1<<p.bits - 1) }

// wordOfFour is the word of instructions that have four bytes, of which the first is the lowest. On arm64 that holds even where data is
// big-endian; on loong64 see the LoongArch Reference Manual, volume 1, section 1.4.
func wordOfFour(code []byte) (word uint64, size int, ok bool) {
	if len(code) < 4 {
		return 0, 0, false
	}
	return uint64(binary.LittleEndian.Uint32(code)), 4, true
}

// table makes forms.
func table(word func([]byte) (uint64, int, bool), key piece, list []form) *forms {
	return &forms{word: word, key: key, list: list, by: sync.OnceValue(func() [][]uint16 {
		return byKey(key, len(list), func(i int) (mask, value uint64) { return list[i].mask, list[i].value })
	})}
}

// byKey returns the numbers of those of n patterns that fit words with a value of a key, by that.
func byKey(key piece, n int, pattern func(i int) (mask, value uint64)) [][]uint16 {
	by := make([][]uint16, 1<<key.bits)
	for i := range n {
		mask, value := pattern(i)
		for k := range by {
			if (uint64(k)<<key.at^value)&mask&((1<<key.bits-1)<<key.at) == 0 {
				by[k] = append(by[k], uint16(i))
			}
		}
	}
	return by
}

// plain are the instructions of each size that only go on at the next one. They are copied in one piece, which is several times faster than
// from fields that were just set.
var plain = func() (out [maxX86 + 1]Insn) {
	for size := range out {
		out[size] = Insn{Size: size, Onward: true}
	}
	return out
}()

// next decodes the first instruction in code.
func (t *forms) next(code []byte) (Insn, bool) {
	word, size, ok := t.word(code)
	if !ok {
		return Insn{}, false
	}
	in := plain[size]
	for _, i := range t.by()[t.key.of(word)] {
		f := &t.list[i]
		if word&f.mask != f.value {
			continue
		}
		if f.does&unknown != 0 {
			return Insn{}, false
		}
		in.Onward, in.Call, in.Lost = f.does&ends == 0, f.does&calls != 0, f.does&lost != 0
		in.Leaves, in.Trap, in.Nop = f.does&leaves != 0, f.does&traps != 0, f.does&idle != 0
		if f.to != nil {
			in.Target = f.to.of(word)
			in.Branches = !in.Call
		}
		break
	}
	return in, true
}

func (d *distance) of(word uint64) int64 {
	n := uint64(0)
	for _, p := range d.pieces {
		n |= p.of(word) << p.to
	}
	return int64(n<<(64-d.bits))>>(64-d.bits) + d.plus
}
