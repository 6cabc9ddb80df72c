package runs

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/body"
)

// maxAlong is how many instructions Along looks at.
const maxAlong = 8

// Along returns link-time addresses further along the straight code that begins at one in a record's body, in order, up to
// where the next run of its function begins or this one ends. No instruction before them changes what reads has. There
// are none in code that could not be followed, or that has no markers of statements. Instructions that the kernel may
// replace, or that lead elsewhere, end the straight code: a NOP can become a jump (static branches).
func (c *Code) Along(rec int32, addr uint64, reads body.Reads) (out []uint64, err error) {
	if c.Why != "" {
		return nil, nil
	}
	g := c.Graph
	n, ok := g.At(addr)
	if !ok {
		return nil, nil
	}
	var ends map[uint64]bool // of a function out of line: nothing in the first block
	if i, ok := c.BodyOf(rec); ok && c.Bodies[i].Parent >= 0 {
		if ends, err = c.endsOf(c.Bodies[i].Text); err != nil || ends == nil {
			return nil, err
		}
	} else if n != 0 {
		return nil, nil
	}
	at := int32(n)
	last := g.Blocks[g.Block(at)].Last
	for ; at+1 < last && len(out) < maxAlong; at++ {
		if !c.Keeps(at, reads) || ends[g.Insns[at+1].Addr] {
			break
		}
		out = append(out, g.Insns[at+1].Addr)
	}
	return out, nil
}

// endsOf returns where runs of the bodies of one function begin and end in the code, or nil if that is
// not known of all: beyond, hits would not be in the order of the runs.
func (c *Code) endsOf(function body.Text) (map[uint64]bool, error) {
	if ends, known := c.ends[function]; known {
		return ends, nil
	}
	ends := make(map[uint64]bool)
	for k := range c.Bodies {
		b := &c.Bodies[k]
		if b.Text != function || b.Parent < 0 {
			continue
		}
		ways, err := c.Ways(b.Rec)
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
		c.ends = make(map[body.Text]map[uint64]bool)
	}
	c.ends[function] = ends
	return ends, nil
}
