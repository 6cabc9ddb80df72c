package flow

import (
	"math/bits"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// Loop is what LoopUpdates looks for.
type Loop struct {
	Body   []insn.Code
	Around uint64 // an address in the body
	Lowest uint64 // where the function begins: a branch to less leaves it
	Lo, Hi uint64 // which instructions may update a register
}

// LoopUpdates returns the general registers that a body computes from themselves, as "n--" does,
// in loops around an address: those whose last instruction is in the body, at the address or
// after it, and branches to the address or before it. Loops that the body does not close, such
// as one in which it is inlined, do not count.
func LoopUpdates(a *insn.Arch, l *Loop) (updated insn.Registers) {
	first, last := l.Around, uint64(0)
	each := func(visit func(at uint64, code []byte, in insn.Insn)) {
		for _, part := range l.Body {
			for at := 0; at < len(part.Bytes); {
				in, ok := a.Next(part.Bytes[at:])
				if !ok || in.Size <= 0 {
					break
				}
				visit(part.Addr+uint64(at), part.Bytes[at:], in)
				at += in.Size
			}
		}
	}
	each(func(at uint64, _ []byte, in insn.Insn) {
		if to := at + uint64(in.Target); in.Branches && at >= l.Around && to <= l.Around && to >= l.Lowest {
			first, last = min(first, to), max(last, at)
		}
	})
	if last == 0 {
		return 0
	}
	each(func(at uint64, code []byte, _ insn.Insn) {
		if at >= max(first, l.Lo) && at <= last && at < l.Hi {
			updated |= a.Updates(code)
		}
	})
	return updated
}

// blockSet are some blocks, a bit for each: an interpreter has a loop for each pair of its instructions, through thousands of blocks.
type blockSet []uint64

func (b blockSet) has(n int32) bool { return b[n/64]>>(n%64)&1 != 0 }

// add reports whether a block was not in the set.
func (b blockSet) add(n int32) bool {
	was := b.has(n)
	b[n/64] |= 1 << (n % 64)
	return !was
}

// all yields the blocks in their order.
func (b blockSet) all(yield func(n int32) bool) {
	for i, word := range b {
		for ; word != 0; word &= word - 1 {
			if !yield(int32(i*64 + bits.TrailingZeros64(word))) {
				return
			}
		}
	}
}

func (b blockSet) size() (n int) {
	for _, word := range b {
		n += bits.OnesCount64(word)
	}
	return n
}

// loop returns the blocks of the loop that an edge closes: those that lead to it, from its end.
func (g *Graph) loop(from, to int32) blockSet {
	blocks := make(blockSet, (len(g.Blocks)+63)/64)
	blocks.add(to)
	if !blocks.add(from) {
		return blocks
	}
	for work := []int32{from}; len(work) > 0; {
		n := work[len(work)-1]
		work = work[:len(work)-1]
		for _, p := range g.preds[n] {
			if blocks.add(p) {
				work = append(work, p)
			}
		}
	}
	return blocks
}

// maxAhead bounds the blocks through which Ahead follows paths.
const maxAhead = 1024

// Ahead follows the paths behind a block. It reports whether one comes to a block that stops it, and whether another one comes to the end of the function without such a
// one. left is false if there are too many blocks.
func (g *Graph) Ahead(from int32, stops func(block int32) bool) (stopped, left bool) {
	seen := make(map[int32]bool)
	for work := slices.Clone(g.Blocks[from].Succs); len(work) > 0; {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		if seen[b] || b == from {
			continue
		}
		if len(seen) == maxAhead {
			return stopped, false
		}
		if seen[b] = true; stops(b) {
			stopped = true
			continue
		}
		if k := g.Insns[g.Blocks[b].Last-1].Kind; k == Leave || k == Quit {
			left = true
		}
		work = append(work, g.Blocks[b].Succs...)
	}
	return stopped, left
}

// BehindLoop reports whether straight code leads to an instruction from a loop that it is not in.
func (s *Solver) BehindLoop(at int32) bool {
	const longest = 4 // blocks
	exits := s.Exits()
	for range longest {
		b := s.g.Block(at)
		if exits[b] {
			return true
		}
		before, ok := s.g.OnlyBefore(s.g.Blocks[b].First)
		if !ok {
			break
		}
		at = before
	}
	return false
}
