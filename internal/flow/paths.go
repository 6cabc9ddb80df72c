package flow

import (
	"cmp"
	"slices"
	"sort"
)

// What is asked of a function's code: its instructions and blocks, and the paths between them.

// At returns the number of the instruction at an address. ok is false if none that is reached
// begins there.
func (g *Graph) At(addr uint64) (n int, ok bool) {
	return slices.BinarySearchFunc(g.Insns, addr, func(in Insn, a uint64) int { return cmp.Compare(in.Addr, a) })
}

// Bytes returns the bytes of an instruction.
func (g *Graph) Bytes(n int32) []byte {
	in := &g.Insns[n]
	i := sort.Search(len(g.parts), func(i int) bool { return g.parts[i].Addr > in.Addr })
	p := &g.parts[i-1]
	return p.Bytes[in.Addr-p.Addr:][:in.Size]
}

// TableEdges returns how many edges its indirect jumps through tables have.
func (g *Graph) TableEdges() int { return len(g.work.led) }

// Block returns the number of the block that has an instruction.
func (g *Graph) Block(insn int32) int32 { return g.of[insn] }

// AfterCheck returns where a function goes on after a check at its beginning that can lead back
// there: Go's functions begin again when they have a larger stack. ok is false if it has none. The
// instructions from begin to end, without it, are the check.
func (g *Graph) AfterCheck() (begin, end int32, ok bool) {
	if g.entry < 0 || len(g.preds[g.entry]) == 0 {
		return 0, 0, false
	}
	b := &g.Blocks[g.entry]
	if g.Insns[b.Last-1].Kind != Branch || len(b.Succs) != 2 || int(b.Last) >= len(g.Insns) {
		return 0, 0, false
	}
	for _, p := range g.preds[g.entry] {
		// The way back is its own: one call, and a jump.
		if g.Insns[g.Blocks[p].Last-1].Kind != Jump || len(g.preds[p]) != 1 || g.preds[p][0] != g.entry {
			return 0, 0, false
		}
	}
	return b.First, b.Last, true
}

// From returns the first instruction at an address or behind it.
func (g *Graph) From(addr uint64) (n int32, ok bool) {
	i, _ := slices.BinarySearchFunc(g.Insns, addr, func(in Insn, a uint64) int { return cmp.Compare(in.Addr, a) })
	return int32(i), i < len(g.Insns)
}

// Repeats reports whether execution can come from a block back to it without another block.
func (g *Graph) Repeats(block, without int32) bool {
	seen := map[int32]bool{without: true}
	for work := []int32{block}; len(work) > 0; {
		n := work[len(work)-1]
		work = work[:len(work)-1]
		for _, to := range g.Blocks[n].Succs {
			if to == block {
				return true
			}
			if !seen[to] {
				seen[to] = true
				work = append(work, to)
			}
		}
	}
	return false
}

// Entry returns the block that runs first.
func (g *Graph) Entry() int32 { return g.entry }

// Paths returns how many edges lead to a block.
func (g *Graph) Paths(block int32) int { return len(g.preds[block]) }

// OnlyBehind reports whether execution comes to a block, if it does, from last instructions of others that are such.
func (g *Graph) OnlyBehind(block int32, such func(last int32) bool) bool {
	return !slices.ContainsFunc(g.preds[block], func(p int32) bool { return !such(g.Blocks[p].Last - 1) }) && block != g.entry
}

// FallsThrough reports whether execution goes on from a block to that after it without a jump.
func (g *Graph) FallsThrough(block int32) bool {
	b := &g.Blocks[block]
	last := &g.Insns[b.Last-1]
	return last.Kind != Jump && slices.Contains(b.Succs, block+1) && int(b.Last) < len(g.Insns) && last.Addr+uint64(last.Size) == g.Insns[b.Last].Addr
}

// Meets reports whether several paths meet at an instruction.
func (g *Graph) Meets(n int32) bool {
	b := g.Block(n)
	return g.Blocks[b].First == n && len(g.preds[b]) > 1
}

// OnlyBefore returns the instruction from which alone execution comes to another. ok is false if there are several, or none.
func (g *Graph) OnlyBefore(n int32) (before int32, ok bool) {
	b := g.Block(n)
	if g.Blocks[b].First < n {
		return n - 1, true
	}
	if len(g.preds[b]) != 1 || b == g.entry {
		return 0, false
	}
	return g.Blocks[g.preds[b][0]].Last - 1, true
}

// Forward is OnlyBefore that leaves out branches back, from higher addresses: those of a loop that begins there.
func (g *Graph) Forward(n int32) (before int32, ok bool) {
	b := g.Block(n)
	if g.Blocks[b].First < n || b == g.entry {
		return g.OnlyBefore(n)
	}
	for _, p := range g.preds[b] {
		last := g.Blocks[p].Last - 1
		switch {
		case g.Insns[last].Addr > g.Insns[n].Addr:
		case ok:
			return 0, false
		default:
			before, ok = last, true
		}
	}
	return before, ok
}

// AllPaths follows all paths from a block. It calls at for that block and for each block that the
// paths lead to, once, or twice for the first block if a path comes back to it. A block that at
// settles ends its paths, well or not. AllPaths reports whether all paths are settled well: none
// badly, and none ends unsettled.
func (g *Graph) AllPaths(from int32, at func(block int32) (settled, ok bool)) bool {
	seen := make(map[int32]bool)
	for work := []int32{from}; len(work) > 0; {
		n := work[len(work)-1]
		work = work[:len(work)-1]
		if settled, ok := at(n); settled && ok {
			continue
		} else if settled || len(g.Blocks[n].Succs) == 0 {
			return false
		}
		for _, to := range g.Blocks[n].Succs {
			if !seen[to] {
				seen[to] = true
				work = append(work, to)
			}
		}
	}
	return true
}

// AlwaysBehind reports whether execution comes to an instruction only behind others, of which the last that at says something of is such, on all paths from the entry.
func (g *Graph) AlwaysBehind(n int32, at func(n int32) (said, such bool)) bool {
	type place struct{ block, from int32 } // from is the instruction behind the last one that is looked at
	seen := make(map[int32]bool)
	found := false
	for work := []place{{g.Block(n), n}}; len(work) > 0; {
		p := work[len(work)-1]
		work = work[:len(work)-1]
		said, such := false, false
		for i := p.from - 1; !said && i >= g.Blocks[p.block].First; i-- {
			said, such = at(i)
		}
		switch {
		case said && such:
			found = true
			continue
		case said || p.block == g.entry || len(g.preds[p.block]) == 0:
			return false
		}
		for _, b := range g.preds[p.block] {
			if !seen[b] {
				seen[b] = true
				work = append(work, place{b, g.Blocks[b].Last})
			}
		}
	}
	return found
}
