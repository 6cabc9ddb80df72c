package dwarfloc

import (
	"context"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/runs"
	"github.com/bpfprologue/bpfprologue/loc"
)

// sitesAlong is inside.Along.
func (img *Image) sitesAlong(ctx context.Context, sites []*Site, vars func(site int) (vars []*Variable, memory bool)) ([][]*Site, error) {
	return img.by.along(ctx, sites, vars)
}

func (img dwarfImage) along(ctx context.Context, sites []*Site, vars func(site int) (vars []*Variable, memory bool)) ([][]*Site, error) {
	out := make([][]*Site, len(sites))
	err := img.eachCode(ctx, sites, func(c *runs.Code, which []int) (err error) {
		for _, i := range which {
			s := sites[i]
			reads, known := readsOf(vars(i))
			if !known {
				continue
			}
			further, err := c.Along(s.spot.Rec, s.Addr, reads)
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
