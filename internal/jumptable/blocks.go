package jumptable

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// blocks are the basic blocks of some code.
type blocks struct {
	at   []uint32 // offsets of instructions
	size []int32
	of   []int32  // which block an instruction is in
	from []int32  // the first instruction of a block, and at the end their number
	into [][]edge // of a block
	// What leads to the blocks to which nothing else does: jumps of which it is not known where they lead. A case of another switch.
	lost    []edge
	orphans []bool
}

// edge is a way from the end of a block.
type edge struct {
	from  int32 // block
	taken bool  // by the branch at its end
}

func blocksOf(a *insn.Arch, code *Code) (b blocks) {
	starts, ends := code.Starts, code.Ends
	n := len(starts)
	b.at, b.size, b.of = starts, make([]int32, n), make([]int32, n)
	list := make([]insn.Insn, n)
	begins := make([]bool, n)
	for i, at := range starts {
		if int(at) >= len(code.Bytes) {
			break
		}
		in, ok := a.Next(code.Bytes[at:])
		if !ok {
			in = insn.Insn{Size: 1}
		}
		if len(ends) > 0 && ends[0] == at {
			in.Onward, ends = false, ends[1:]
		}
		list[i], b.size[i] = in, int32(in.Size)
		if to, ok := slices.BinarySearch(starts, uint32(int64(at)+in.Target)); in.Branches && ok {
			begins[to] = true
		}
		if i+1 < n && (in.Branches || !in.Onward || starts[i+1] != at+uint32(in.Size)) {
			begins[i+1] = true
		}
	}
	index := func(at uint32) int32 {
		i, ok := slices.BinarySearch(starts, at)
		if !ok {
			return -1
		}
		return int32(i)
	}
	led := make(map[int32]bool, len(code.Led)) // jumps
	for _, e := range code.Led {
		if to := index(e.To); to >= 0 {
			begins[to] = true
		}
		led[index(e.From)] = true
	}
	for i := range list {
		if i == 0 || begins[i] {
			b.from = append(b.from, int32(i))
		}
		b.of[i] = int32(len(b.from) - 1)
	}
	b.into = make([][]edge, len(b.from))
	b.from = append(b.from, int32(n))
	b.orphans = make([]bool, len(b.into))
	for k := range b.into {
		end := b.from[k+1] - 1
		in, at := list[end], starts[end]
		if to, ok := slices.BinarySearch(starts, uint32(int64(at)+in.Target)); in.Branches && ok {
			b.into[b.of[to]] = append(b.into[b.of[to]], edge{int32(k), true})
		}
		if in.Onward && int(end+1) < n && starts[end+1] == at+uint32(in.Size) {
			b.into[k+1] = append(b.into[k+1], edge{int32(k), false})
		}
		if in.Lost && !in.Onward && !led[end] {
			b.lost = append(b.lost, edge{int32(k), true})
		}
	}
	for _, e := range code.Led {
		if from, to := index(e.From), index(e.To); from >= 0 && to >= 0 {
			b.into[b.of[to]] = append(b.into[b.of[to]], edge{b.of[from], true})
		}
	}
	for k := range b.into {
		if k > 0 && len(b.into[k]) == 0 {
			b.into[k], b.orphans[k] = b.lost, true
		}
	}
	return b
}

// lead makes the blocks those of code of which one edge more is known. It reports whether that can be done: the edge leads to where a
// block begins that is not the first, or to no known instruction.
func (b *blocks) lead(e Edge) bool {
	if from, ok := slices.BinarySearch(b.at, e.From); ok {
		n := len(b.lost)
		b.lost = slices.DeleteFunc(slices.Clone(b.lost), func(l edge) bool { return l.from == b.of[from] })
		if len(b.lost) != n {
			for k, orphan := range b.orphans {
				if orphan {
					b.into[k] = b.lost
				}
			}
		}
		to, ok := slices.BinarySearch(b.at, e.To)
		if !ok {
			return true
		}
		k := b.of[to]
		if k == 0 || b.from[k] != int32(to) {
			return false
		}
		if b.orphans[k] {
			b.into[k], b.orphans[k] = nil, false
		}
		b.into[k] = append(b.into[k], edge{b.of[from], true})
	}
	return true
}

func (b *blocks) blockOf(i int32) int32 { return b.of[i] }
