package insn

import "sync/atomic"

// decoded keeps what a decoder said of some instructions: a search for jump tables asks about the same ones
// again and again, and the decoders try one pattern after the other. Each word has one place, which the
// last one that was decoded takes.
type decoded [1 << 12]atomic.Pointer[decodedWord]

type decodedWord struct {
	word uint64
	size int
	op   operation
	ok   bool
}

// by returns a function that says what a decoder and its table say of an instruction, which has at most eight bytes, or nil.
func (d *decoded) by(o *operations) func(code []byte) *operation {
	return func(code []byte) *operation {
		word := uint64(0)
		for _, b := range code {
			word = word<<8 | uint64(b)
		}
		const fibonacci = 0x9e3779b97f4a7c15
		place := &d[word*fibonacci>>52]
		x := place.Load()
		if x == nil || x.word != word || x.size != len(code) {
			x = &decodedWord{word: word, size: len(code)}
			x.op, x.ok = o.named(code)
			x.op.does = o.effects()[x.op.name]
			place.Store(x)
		}
		if !x.ok {
			return nil
		}
		return &x.op
	}
}
