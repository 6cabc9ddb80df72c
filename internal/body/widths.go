package body

import "github.com/bpfprologue/bpfprologue/internal/symbolic"

// Wanted is a shift to the right or a division whose width is looked for in the code.
type Wanted struct {
	Numbers func(s *State) (of, by Number, ok bool) // by what registers hold at the place where they are
	Signed  bool
	Divides bool
	Short   uint8 // fewer bits that it may also have, or 0
}

// WidthsNear reports whether the code around a link-time address makes an operation, as one of 32 bits, as one of 64, or as one of as many as are Short. It looks at the straight code that leads there from
// the only place that it is reached from, and at what follows as long as registers hold what the operation is of: on the way without jumps, and on those that leave it.
func (c *Code) WidthsNear(at uint64, x *Wanted) (narrow, wide, short bool) {
	if c.Graph == nil {
		return false, false, false
	}
	site, ok := c.Graph.At(at)
	if !ok {
		return false, false, false
	}
	w := widths{c: c, Wanted: x, site: int32(site), first: int32(site), state: c.Arch.State()}
	if before, ok := c.Graph.OnlyBefore(w.site); ok && c.Why == "" && before+1 == w.site {
		w.first = c.Graph.Blocks[c.Graph.Block(before)].First
	}
	w.follow(-1, 0)
	for _, b := range w.blocks {
		for _, to := range c.Graph.Blocks[b].Succs {
			if c.Graph.Blocks[to].First != c.Graph.Blocks[b].Last {
				w.follow(b, to)
			}
		}
	}
	return w.narrow, w.wide, w.short
}

// widths looks for an operation in the code.
type widths struct {
	*Wanted
	c            *Code
	first, site  int32
	state        *State
	blocks       []int32 // on the way without jumps
	found        []symbolic.Operation
	narrow, wide bool
	short        bool
}

// follow looks at the way that leaves the one without jumps behind a block, to another, or with -1 at that one.
func (w *widths) follow(leaves, to int32) {
	w.state.Restart()
	w.found = w.found[:0]
	g, without, behind := w.c.Graph, leaves < 0, false
	var of, by Number
	for i := w.first; int(i) < len(g.Insns); i++ {
		if i == w.site && !behind {
			var ok bool
			if of, by, ok = w.Numbers(w.state); !ok {
				return
			}
			behind = true
		}
		w.state.Step(g.Bytes(i), g.Insns[i].Addr)
		if x, ok := w.state.Operation(); ok && x.Signed == w.Signed && x.Divides == w.Divides {
			w.found = append(w.found, x)
		}
		b := g.Block(i)
		if g.Blocks[b].Last > i+1 {
			continue
		}
		if without && behind {
			w.blocks = append(w.blocks, b)
		}
		if b == leaves {
			i, leaves = g.Blocks[to].First-1, -1
		} else if !g.FallsThrough(b) || behind && !w.state.Holds(of) {
			break
		}
	}
	for i := range w.found {
		if w.Short > 0 && w.state.IsOf(&w.found[i], of, by, w.Short) {
			w.short = true
			continue
		}
		is32 := w.state.IsOf(&w.found[i], of, by, 32)
		w.narrow, w.wide = w.narrow || is32, w.wide || !is32 && w.state.IsOf(&w.found[i], of, by, 64)
	}
}
