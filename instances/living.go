package instances

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Close ends all probes. It returns when all are gone, and may be called again.
func (a *Attachment) Close() error {
	links := a.links
	a.links, a.Attached = nil, nil
	return a.w.end(links)
}

// end closes links side by side: the kernel waits for each, until nothing runs there any more.
func (w *attacher) end(links []*bound) error {
	restore := w.hasten(len(links))
	errs := make([]error, len(links))
	_ = manyTimes(len(links), func(i int) error {
		errs[i] = links[i].Close()
		return nil
	})
	return errors.Join(append(errs, restore())...)
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

// change leaves probes at the sites for which want returns true. If it cannot, nothing changes.
func (a *Attachment) change(ctx context.Context, want func(site int) bool) error {
	forget, err := a.w.r.witness()
	if err != nil {
		return err
	}
	defer forget()
	type addition struct {
		batch *batch
		sites []int
	}
	var kept, gone []*bound
	var added []addition
	for _, b := range a.w.all {
		var attached, wanted []int
		for _, l := range a.links {
			if l.batch == b {
				attached = append(attached, l.sites...)
			}
		}
		for _, site := range b.sites {
			if want(site) {
				wanted = append(wanted, site)
			}
		}
		slices.Sort(attached)
		slices.Sort(wanted)
		missing := slices.DeleteFunc(slices.Clone(wanted), func(site int) bool { return slices.Contains(attached, site) })
		stays := func(l *bound) bool { return slices.Contains(wanted, l.sites[0]) }
		switch {
		case b.multi && slices.Equal(attached, wanted):
			stays = func(*bound) bool { return true }
		case b.multi: // one link for those that stay, and those that come
			stays, missing = func(*bound) bool { return false }, wanted
		}
		for _, l := range a.links {
			switch {
			case l.batch != b:
			case stays(l):
				kept = append(kept, l)
			default:
				gone = append(gone, l)
			}
		}
		if !b.multi || !slices.Equal(attached, wanted) {
			added = append(added, addition{b, missing})
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
				a.power.turns[x.batch.slot] ^= 1
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
