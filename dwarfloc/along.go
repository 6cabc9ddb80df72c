package dwarfloc

import (
	"context"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Along returns, for each site of kind SiteInline, others further along the straight code that begins
// there, in order, up to where the next run begins or this one ends. A probe there is hit by the same
// runs, and finds the site's values of vars, since no instruction before it changes what their
// locations depend on. There are none for a site in code that could not be followed, or that has no
// markers of statements, as clang's: see Ways. vars returns the variables of a site, by its index, and
// whether what they point to is fetched too.
//
// An error is about a file that cannot be read, or damaged debug information, or the cause of ctx.
func (img *Image) Along(ctx context.Context, sites []*Site, vars func(site int) (vars []*Variable, memory bool)) ([][]*Site, error) {
	return img.by.along(ctx, sites, vars)
}

func (img dwarfImage) along(ctx context.Context, sites []*Site, vars func(site int) (vars []*Variable, memory bool)) ([][]*Site, error) {
	out := make([][]*Site, len(sites))
	err := img.eachCode(ctx, sites, func(c *body.Code, which []int) (err error) {
		for _, i := range which {
			s := sites[i]
			reads, known := readsOf(vars(i))
			if !known {
				continue
			}
			further, err := c.Along(s.rec, s.Addr, reads)
			if err != nil {
				return err
			}
			for _, addr := range further {
				out[i] = append(out[i], s.elsewhere(addr, 0, s.here()))
			}
		}
		return nil
	})
	return out, err
}

// readsOf returns what the values of variables depend on, if memory is set with what they point to. known is false if that
// includes registers that code is not asked about: vector registers.
func readsOf(vars []*Variable, memory bool) (reads body.Reads, known bool) {
	reads.Memory, known = memory, true
	for _, v := range vars {
		v.Loc.Exprs(func(e *loc.Expr) {
			e.Walk(func(e *loc.Expr) {
				switch e.Op {
				case ops.Reg:
					known = known && e.K < 64
					reads.Registers |= 1 << (e.K & 63)
				case ops.Deref, ops.Text, ops.Glob:
					reads.Memory = true
				}
			})
		})
		reads.Memory = reads.Memory || v.Loc.Kind == loc.KindMemory || v.Loc.Kind == loc.KindPieces
	}
	return reads, known
}
