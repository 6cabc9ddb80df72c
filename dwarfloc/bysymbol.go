package dwarfloc

import (
	"context"
	"errors"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/answers"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/runs"
	"github.com/bpfprologue/bpfprologue/internal/sdt"
)

// Functions that only a symbol names: all of a stripped program, and what a program with debug information has from elsewhere, such as
// assembler code and libraries that are linked in.

// symbolsAlone returns what answers for a program or library without debug information, with Options.Symbols, or nil if that has no symbols
// either. Of a kernel BTF says more, and the sections of a module have no addresses yet.
func (img *Image) symbolsAlone() (*answers.Symbols, error) {
	f := img.file
	if !img.o.Symbols || f.IsRelocatable() || slices.ContainsFunc(f.Sections(), func(s image.Section) bool { return s.Name == "__ksymtab" }) {
		return nil, nil
	}
	t, err := newSymbols(f)
	probes := slices.ContainsFunc(f.Sections(), func(s image.Section) bool { return s.Name == sdt.BaseSection })
	if err != nil || t.None() && !probes {
		return nil, err
	}
	return t, nil
}

func newSymbols(f *image.File) (t *answers.Symbols, err error) {
	err = f.Guard(func() error {
		t, err = answers.NewSymbols(f, elfFlags(f))
		return err
	})
	return t, err
}

// onlySymbols is inside.OnlySymbols.
func (img *Image) onlySymbols(ctx context.Context, m Matcher, keep func(s *Site) (bool, error)) (*SiteList, error) {
	if img.r == nil || !img.o.Symbols {
		return &SiteList{heldList{}}, nil
	}
	t, err := newSymbols(img.file)
	if err != nil {
		return nil, err
	}
	var numbers []uint64
	err = img.guard(func() error {
		numbers, err = t.ListOthers(m, func(addr uint64) (bool, error) {
			_, err := img.by.siteAt(ctx, addr)
			if errors.Is(err, ErrNoFunction) {
				return false, nil
			}
			return true, err
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return answered{img, t}.listed(ctx, numbers, keep)
}

// held is inside.Held.
func (img *Image) held(sites []*Site) *SiteList {
	all := slices.SortedStableFunc(slices.Values(sites), compareSites)
	same := func(a, b *Site) bool { return compareSites(a, b) == 0 }
	return &SiteList{heldList{img, slices.CompactFunc(all, same)}}
}

// heldList is sites that are kept as they are: few, or of several sources.
type heldList struct {
	img *Image
	all []*Site
}

func (l heldList) len() int { return len(l.all) }

func (l heldList) sites(context.Context) ([]*Site, error) { return l.all, nil }

func (l heldList) each(ctx context.Context, from, to int, ways bool, f func(worker, i int, s *Site, w *runs.Ways) error) error {
	var known []runs.Ways
	if ways {
		var err error
		if known, err = l.img.waysOfSites(ctx, l.all[from:to]); err != nil {
			return err
		}
	}
	for i := from; i < to; i++ {
		var w *runs.Ways
		if ways {
			w = &known[i-from]
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := f(0, i, l.all[i], w); err != nil {
			return err
		}
	}
	return nil
}
