package dwarfloc

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/boundary"
	"github.com/bpfprologue/bpfprologue/internal/refusals"
)

// checkInstructions is inside.CheckInstructions.
func (img *Image) checkInstructions(sites []*Site) ([]error, error) {
	out := make([]error, len(sites))
	if len(sites) == 0 {
		return out, nil
	}
	return out, img.by.check(sites, out)
}

func (img dwarfImage) check(sites []*Site, out []error) error {
	if !slices.ContainsFunc(sites, func(s *Site) bool { return s.u == nil }) {
		return img.checkOwn(sites, out)
	}
	var own []*Site // that the debug information describes
	var at []int
	for i, s := range sites {
		if a, ok := s.by.(*answeredSite); ok {
			out[i] = a.problem(s)
			continue
		}
		own, at = append(own, s), append(at, i)
	}
	problems := make([]error, len(own))
	err := img.checkOwn(own, problems)
	for i, problem := range problems {
		out[at[i]] = problem
	}
	return err
}

func (img dwarfImage) checkOwn(sites []*Site, out []error) error {
	if len(sites) == 0 {
		return nil
	}
	if !img.r.Code.Decodes() {
		for i, s := range sites {
			out[i] = s.notDecoded("instructions of %s are not decoded", img.Arch().Name)
		}
		return nil
	}
	order := make([]int, len(sites))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(sites[a].Addr, sites[b].Addr) })
	return img.guard(func() (err error) {
		// Sites that are asked about one after the other are often of one function.
		u := sites[order[0]].u
		var f boundary.Code
		if last := u.checked.Swap(nil); last != nil {
			f = *last
		}
		defer func() { u.checked.Store(&f) }()
		for _, i := range order {
			s := sites[i]
			if !f.Has(s.Addr) {
				if f, err = boundary.Of(&s.u.Body, s.spot.Rec, s.Addr, s.Symbol); err != nil {
					return err
				}
			}
			if out[i], err = s.checkBoundary(&f); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkBoundary says whether an instruction begins at a site.
func (s *Site) checkBoundary(f *boundary.Code) (problem, err error) {
	img := s.u.img
	code, why, err := f.Harm(img.r.Code, s.Addr)
	if err != nil {
		return nil, err
	}
	if why != "" {
		return fmt.Errorf("%s: %#x: %w: % x: %s", img.Path(), s.Addr, refusals.ErrHarmful, code, why), nil
	}
	if f.Why != "" {
		if s.Kind == SiteEntry && !s.AfterPrologue {
			return nil, nil // it is where its function begins
		}
		return s.notDecoded("%s", f.Why), nil
	}
	kind, before, after, err := f.At(s.Addr)
	if err != nil {
		return nil, err
	}
	switch kind {
	case boundary.Inside:
		place := func(addr uint64) string {
			if begin := s.Addr - s.Offset; s.Symbol != "" && addr >= begin {
				at := Site{Symbol: s.Symbol, Offset: addr - begin}
				return fmt.Sprintf("%s (%#x)", at.SymbolOffset(), addr)
			}
			return fmt.Sprintf("%#x", addr)
		}
		return fmt.Errorf("%s: %w: %#x is in the one at %s; the next is at %s", img.Path(), refusals.ErrMidInstruction, s.Addr, place(before), place(after)), nil
	case boundary.Unknown:
		return s.strange(before, f.Hi)
	}
	return nil, nil
}

// strange returns the error for what does not decode at an address before hi.
func (s *Site) strange(addr, hi uint64) (problem, err error) {
	code, err := s.u.img.file.Bytes(addr, min(hi-addr, 8))
	if err != nil {
		return nil, err
	}
	return s.notDecoded("the instruction at %#x does not decode (% x)", addr, code), nil
}

// notDecoded returns an error that wraps refusals.ErrNotDecoded.
func (s *Site) notDecoded(why string, args ...any) error {
	return fmt.Errorf("%s: %#x: %w: %s", s.u.img.Path(), s.Addr, refusals.ErrNotDecoded, fmt.Sprintf(why, args...))
}
