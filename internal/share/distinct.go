package share

import (
	"context"
	"fmt"
	"runtime"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/plan"
)

// EachDistinct calls f for the parameters of sites, in the groups that a Sharer makes,
// from several goroutines. Groups whose prologue the same goroutine has seen before are left
// out. first is the number of the first of args among the site's parameters. It returns the number of sites.
func EachDistinct(ctx context.Context, img *dwarfloc.Image, o Options, f func(worker int, s *dwarfloc.Site, args []plan.Argument, first int) error) (sites uint64, err error) {
	type worker struct {
		sites  uint64
		sharer *Sharer
	}
	workers := make([]worker, runtime.GOMAXPROCS(0))
	for i := range workers {
		workers[i].sharer = NewSharer(img, o)
	}
	err = img.EachSite(ctx, nil, func(number int, r dwarfloc.SiteRef) error {
		w := &workers[number]
		w.sites++
		params, err := r.Params()
		if err != nil {
			return err
		}
		groups, err := w.sharer.Parameters(params)
		if err != nil {
			return fmt.Errorf("%#x: %w", r.Addr, err)
		}
		var s *dwarfloc.Site
		var kept []*dwarfloc.Variable
		at := 0
		for _, g := range groups {
			from := at
			at += len(g.Params)
			if !g.First {
				continue
			}
			if kept == nil {
				if s, err = r.Site(); err != nil {
					return err
				}
				if kept, err = s.Params(); err != nil {
					return err
				}
			}
			if err := f(number, s, o.Arguments(kept[from:at]), from); err != nil {
				return err
			}
		}
		return nil
	})
	for i := range workers {
		sites += workers[i].sites
	}
	return sites, err
}
