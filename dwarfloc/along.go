package dwarfloc

import (
	"context"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/loc"
)

// maxAlong is how many instructions Along looks at.
const maxAlong = 8

// Along returns, for each site of kind SiteInline, others further along the straight code that begins
// there, in order, up to where the next run begins or this one ends. A probe there is hit by the same
// runs, and finds the site's values of vars, since no instruction before it changes what their
// locations depend on. There are none for a site in code that could not be followed, or that has no
// markers of statements, as clang's: see Ways. vars returns the variables of a site, by its index, and
// whether what they point to is fetched too.
//
// An error is about a file that cannot be read, or damaged debug information, or the cause of ctx.
func (img *Image) Along(ctx context.Context, sites []*Site, vars func(site int) (vars []*Variable, memory bool)) ([][]*Site, error) {
	out := make([][]*Site, len(sites))
	if img.told != nil {
		return out, nil
	}
	err := img.eachCode(ctx, sites, func(c *code, which []int) (err error) {
		if c.why != "" || !c.marked() {
			return nil
		}
		for _, i := range which {
			v, memory := vars(i)
			if out[i], err = c.along(sites[i], readsOf(v, memory)); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// along is Along for one site in the code. Instructions that the kernel may replace, or that lead
// elsewhere, end the straight code: a NOP can become a jump (static branches).
func (c *code) along(s *Site, reads insn.Writes) (out []*Site, err error) {
	g := c.graph
	n, ok := g.At(s.Addr)
	if !ok {
		return nil, nil
	}
	i, ok := c.body(s.rec)
	if !ok {
		return nil, nil
	}
	ends, err := c.endsOf(c.bodies[i].text)
	if err != nil || ends == nil {
		return nil, err
	}
	at := int32(n)
	last := g.Blocks[g.Block(at)].Last
	for ; at+1 < last && len(out) < maxAlong; at++ {
		text := g.Bytes(at)
		in, ok := c.arch.Next(text)
		w, known := c.arch.Writes(text)
		if g.Insns[at].Kind != flow.Plain || !ok || in.Branches || in.Call || in.Nop || !known || w.Touches(reads) || ends[g.Insns[at+1].Addr] {
			break
		}
		out = append(out, s.elsewhere(g.Insns[at+1].Addr, 0, s.here()))
	}
	return out, nil
}

// endsOf returns where runs of the bodies of one function begin and end in the code, or nil if that is
// not known of all: beyond, hits would not be in the order of the runs.
func (c *code) endsOf(function text) (map[uint64]bool, error) {
	if ends, known := c.ends[function]; known {
		return ends, nil
	}
	ends := make(map[uint64]bool)
	for k := range c.bodies {
		b := &c.bodies[k]
		if b.text != function || b.parent < 0 {
			continue
		}
		ways, err := c.ways(b.rec)
		if err != nil {
			return nil, err
		}
		if ways.Unknown != "" {
			ends = nil
			break
		}
		for _, w := range slices.Concat(ways.In, ways.Out) {
			ends[w.Addr], ends[w.Probe] = true, true
		}
	}
	if c.ends == nil {
		c.ends = make(map[text]map[uint64]bool)
	}
	c.ends[function] = ends
	return ends, nil
}

// readsOf returns what the values of variables depend on, if memory is set with what they point to.
func readsOf(vars []*Variable, memory bool) (reads insn.Writes) {
	reads.Memory = memory
	for _, v := range vars {
		v.Loc.Exprs(func(e *loc.Expr) {
			e.Walk(func(e *loc.Expr) {
				switch e.Op {
				case loc.OpReg:
					reads.Registers |= 1 << (e.K & 63)
				case loc.OpDeref, loc.OpText, loc.OpGlob:
					reads.Memory = true
				}
			})
		})
		reads.Memory = reads.Memory || v.Loc.Kind == loc.KindMemory || v.Loc.Kind == loc.KindPieces
	}
	return reads
}
