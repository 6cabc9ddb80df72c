package whose

import (
	"context"
	"fmt"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/glob"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/selected"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/sites"
)

// UsualMaxSites is how many sites are traced at most unless --max-sites says another number. '*' is 60,000 sites of a small program
// in Rust, with all of its standard library, 23,000 of one in C++, and 600,000 of a kernel: what was meant is asked for before they are planned and attached,
// which takes minutes, and before gigabytes of hits are printed.
const UsualMaxSites = 30_000

// Definitions are the definitions about an image.
type Definitions struct {
	Image  *dwarfloc.Image
	Filter glob.Matcher
	All    []*probe.Definition
}

// CountFirst returns an error if patterns have too many sites. It counts them without making the plan, which would not fit into
// memory for all of a kernel. What is wrong with a definition the plan reports.
func (h *Target) CountFirst(ctx context.Context, all []Definitions) error {
	sum := 0
	for _, one := range all {
		for _, def := range one.All {
			p := &def.Point
			sel, err := selected.Of(def, one.Filter)
			if p.Function == "" || p.HasLine || p.Lazy != "" || err != nil {
				continue
			}
			list, err := sites.List(ctx, one.Image, sel)
			if err == nil {
				sum += list.Len()
			}
		}
	}
	return h.check(all[0].All[0], sum)
}

// CheckSites returns an error if plans have too many sites together, ways into bodies and lines included.
func (h *Target) CheckSites(plans []*plan.Plan) error {
	sum := 0
	for _, p := range plans {
		sum += len(p.Sites)
	}
	if sum == 0 {
		return nil
	}
	return h.check(plans[0].Definition, sum)
}

func (h *Target) check(def *probe.Definition, sites int) error {
	if h.MaxSites == 0 || sites <= h.MaxSites {
		return nil
	}
	return fmt.Errorf("%v: there are %s, and --max-sites is %d: name fewer functions, also by --filter, or raise it (0: any number); "+
		"--max-hits and --max-rate bound what is printed", def, screen.Count(sites, "site"), h.MaxSites)
}
