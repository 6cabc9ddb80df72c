package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
)

// usualMaxSites is how many sites are traced at most unless --max-sites says another number. '*' is 60,000 sites of a small program
// in Rust, with all of its standard library, and 600,000 of a kernel: what was meant is asked for before they are planned and attached,
// which takes minutes, and before gigabytes of hits are printed.
const usualMaxSites = 10_000

// errTooMany ends the counting of a plan's sites.
var errTooMany = errors.New("too many sites")

// countFirst returns an error if a pattern has too many sites. It counts them without making the plan, which would not fit into
// memory for all of a kernel.
func (h *target) countFirst(ctx context.Context, x *subject, defs []*probe.Definition) error {
	if h.maxSites == 0 {
		return nil
	}
	sites := 0
	for _, def := range defs {
		if !strings.ContainsAny(def.Point.Function, "*?[") {
			continue
		}
		err := plan.Each(ctx, x.img, def, x.options, plan.Visitor[struct{}]{
			Site: func(*plan.Plan, *plan.Site) (struct{}, error) { return struct{}{}, nil },
			Next: func(struct{}, int) error {
				if sites++; sites > h.maxSites {
					return errTooMany
				}
				return nil
			},
		})
		if errors.Is(err, errTooMany) {
			return h.tooMany(fmt.Sprintf("%v: there are more than %s", def, count(h.maxSites, "site")))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkSites returns an error if plans have too many sites together.
func (h *target) checkSites(plans []*plan.Plan) error {
	sites := 0
	for _, p := range plans {
		sites += len(p.Sites)
	}
	if h.maxSites == 0 || sites <= h.maxSites {
		return nil
	}
	return h.tooMany(fmt.Sprintf("%v: there are %s", plans[0].Definition, count(sites, "site")))
}

func (h *target) tooMany(what string) error {
	return fmt.Errorf("%s, and --max-sites is %d: name fewer functions, also by --filter, or raise it (0: any number); "+
		"--max-hits and --max-rate bound what is printed", what, h.maxSites)
}
