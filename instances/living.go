package instances

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Close ends all probes. It returns when all are gone, or AttachOptions.End has returned, and may be
// called again.
func (a *Attachment) Close() error {
	links := a.links
	a.links, a.Attached = nil, nil
	if len(links) == 0 {
		return nil
	}
	var silent error
	if a.power != nil && a.w.o.End != nil {
		silent = a.Silence(true)
	}
	return errors.Join(silent, a.w.end(links))
}

// Silence makes all probes do nothing, at once, or work again. They stay where they are. The error
// wraps ErrNotDispatched if the plan is not dispatched.
func (a *Attachment) Silence(on bool) error {
	if a.power == nil {
		return fmt.Errorf("%w: its programs have no switch", ErrNotDispatched)
	}
	a.power.off = on
	return a.power.set()
}

// Detach ends the probes at those of the attached sites for which which returns true. The others
// stay. Sites that share a link get another one meanwhile: if the plan is dispatched, no hit is seen
// twice, and on each processor one that happens right then may be missed; if not, hits are seen
// twice while there are two links.
func (a *Attachment) Detach(ctx context.Context, which func(site int) bool) error {
	return a.change(ctx, func(site int) bool {
		_, is := slices.BinarySearch(a.Attached, site)
		return is && !which(site)
	})
}

// Reattach attaches those of the sites that are not attached for which which returns true: they
// were detached, or refused. What is refused now is in Refused.
func (a *Attachment) Reattach(ctx context.Context, which func(site int) bool) error {
	return a.change(ctx, func(site int) bool {
		_, is := slices.BinarySearch(a.Attached, site)
		return is || which(site)
	})
}

// addition is sites that a batch gets.
type addition struct {
	batch *batch
	sites []int
}

// change returns which of a batch's links stay, which end, and the sites that need others, so that
// there are probes at the sites for which want returns true.
func (b *batch) change(links []*bound, want func(site int) bool) (stay, end []*bound, sites []int) {
	attached := make(map[int]bool)
	for _, l := range links {
		for _, site := range l.sites {
			attached[site] = true
		}
	}
	var wanted, missing []int
	for _, site := range b.sites {
		if !want(site) {
			continue
		}
		wanted = append(wanted, site)
		if !attached[site] {
			missing = append(missing, site)
		}
	}
	switch {
	case !b.multi:
		for _, l := range links {
			if want(l.sites[0]) {
				stay = append(stay, l)
			} else {
				end = append(end, l)
			}
		}
		return stay, end, missing
	case len(missing) == 0 && len(wanted) == len(attached):
		return links, nil, nil
	}
	return nil, links, wanted // one link for those that stay, and those that come
}

// change leaves probes at the sites for which want returns true. If it cannot, nothing changes.
func (a *Attachment) change(ctx context.Context, want func(site int) bool) error {
	forget, err := a.w.witness()
	if err != nil {
		return err
	}
	defer forget()
	var kept, gone []*bound
	var added []addition
	for _, b := range a.w.all {
		own := slices.DeleteFunc(slices.Clone(a.links), func(l *bound) bool { return l.batch != b })
		stay, end, sites := b.change(own, want)
		kept, gone = append(kept, stay...), append(gone, end...)
		if len(sites) > 0 {
			added = append(added, addition{b, sites})
		}
	}
	before, refused := a.links, a.Refused
	a.have(kept)
	a.w.ctx, a.w.done, a.w.total = ctx, 0, 0
	for _, x := range added {
		a.w.total += len(x.sites)
	}
	a.Refused = slices.DeleteFunc(slices.Clone(refused), func(r Refusal) bool {
		return slices.ContainsFunc(added, func(x addition) bool { return slices.Contains(x.sites, r.Site) })
	})
	turn := func() {
		for _, x := range added {
			if a.power != nil && x.batch.multi {
				a.power.change(x.batch.slot)
			}
		}
	}
	turn()
	for _, x := range added {
		if err := a.w.batch(x.batch, x.sites); err != nil {
			turn()
			err = errors.Join(err, a.w.end(a.links[len(kept):]))
			a.Refused = refused
			a.have(before)
			return err
		}
	}
	a.sort()
	if a.power != nil {
		err = a.power.set()
	}
	return errors.Join(err, a.w.end(gone))
}

// have sets what is attached.
func (a *Attachment) have(links []*bound) {
	a.links, a.Attached = slices.Clip(links), nil
	for _, l := range links {
		a.Attached = append(a.Attached, l.sites...)
	}
	slices.Sort(a.Attached)
}
