package plan

import (
	"context"
	"errors"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/refusals"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// fetchedAt returns the variables that a site's arguments and conditions are made of, and whether what
// they point to is fetched too: texts, arrays.
func fetchedAt(s *Site) (vars []*dwarfloc.Variable, memory bool) {
	for j := range s.Args {
		vars = append(vars, s.Args[j].Variable)
		memory = memory || s.Args[j].Kind != prologue.KindScalar && s.Args[j].Kind != prologue.KindComm
	}
	for j := range s.If {
		vars = append(vars, s.If[j].Variable)
	}
	return vars, memory
}

// moveFromHarm moves probes from instructions at which they would harm the program to the next one that sees the same runs and values.
// The others stay refused.
func (p *Plan) moveFromHarm(ctx context.Context) error {
	var sites []*dwarfloc.Site
	var which []int
	for i := range p.Sites {
		if s := &p.Sites[i]; errors.Is(s.Refused, refusals.ErrHarmful) {
			sites, which = append(sites, s.Site), append(which, i)
		}
	}
	if len(sites) == 0 {
		return nil
	}
	all, err := inside.Along(p.Image, ctx, sites, func(n int) ([]*dwarfloc.Variable, bool) {
		return fetchedAt(&p.Sites[which[n]])
	})
	if err != nil {
		return err
	}
	for n, further := range all {
		problems, err := inside.CheckInstructions(p.Image, further)
		if err != nil {
			return err
		}
		for k, at := range further {
			if s := &p.Sites[which[n]]; problems[k] == nil {
				s.MovedFrom, s.Refused, s.Site = s.Addr, nil, at
				break
			}
		}
	}
	return nil
}

// moveToCheaper moves probes of inlined bodies to where they cost less: see Options.Cost.
func (p *Plan) moveToCheaper(ctx context.Context, cost func(addr uint64) int) error {
	var sites []*dwarfloc.Site
	var which []int
	costs := make([]int, len(p.Sites))
	for i := range p.Sites {
		s := &p.Sites[i]
		if costs[i] = cost(s.Addr); costs[i] != 0 && s.Kind == dwarfloc.SiteInline && s.Refused == nil {
			sites, which = append(sites, s.Site), append(which, i)
		}
	}
	all, err := inside.Along(p.Image, ctx, sites, func(n int) ([]*dwarfloc.Variable, bool) {
		return fetchedAt(&p.Sites[which[n]])
	})
	if err != nil {
		return err
	}
	for n, further := range all {
		s, best := &p.Sites[which[n]], costs[which[n]]
		from := s.Addr
		for _, at := range further {
			if c := cost(at.Addr); c >= 0 && (best < 0 || c < best) {
				s.Site, s.MovedFrom, best = at, from, c
			}
		}
	}
	return nil
}
