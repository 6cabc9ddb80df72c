package dwarfloc

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/body"
)

// ErrMidInstruction is wrapped by the errors of CheckInstructions for an address inside an
// instruction.
var ErrMidInstruction = errors.New("the address is inside an instruction")

// ErrNotDecoded is wrapped by the errors of CheckInstructions for an address of which it
// is not known whether an instruction begins there.
var ErrNotDecoded = errors.New("it is not known whether an instruction begins there")

// ErrHarmful is wrapped by the errors of CheckInstructions for an instruction at which kernels accept a uprobe that changes what the
// program computes, ends it, or stops it for seconds.
var ErrHarmful = errors.New("a probe at this instruction would harm the program")

// CheckInstructions returns, for each site, nil if an instruction begins at its address, or
// an error that wraps ErrMidInstruction or ErrNotDecoded. The instructions of the function
// are decoded from its beginning; those of some architectures are not. On amd64 and i386 it is an error that wraps ErrHarmful
// if the kernel runs the instruction as another one, or repeats the probe.
//
// The kernel does not check these for user space: a uprobe inside an instruction changes what
// the program computes (uprobe_register in kernel/events/uprobes.c takes any offset). It
// need not be checked whether a jump leads into the middle of what a uprobe replaces: that
// is one byte on amd64 (UPROBE_SWBP_INSN_SIZE in arch/x86/include/asm/uprobes.h) and one
// instruction on arm64 (AARCH64_INSN_SIZE in arch/arm64/include/asm/uprobes.h).
//
// The second error is about a file that cannot be read, or damaged debug information.
func (img *Image) CheckInstructions(sites []*Site) ([]error, error) {
	out := make([]error, len(sites))
	if len(sites) == 0 {
		return out, nil
	}
	return out, img.by.check(sites, out)
}

func (img dwarfImage) check(sites []*Site, out []error) error {
	if !img.code.Decodes() {
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
		var f body.Boundaries
		if last := u.checked.Swap(nil); last != nil {
			f = *last
		}
		defer func() { u.checked.Store(&f) }()
		for _, i := range order {
			s := sites[i]
			if !f.Has(s.Addr) {
				if f, err = s.u.code.Boundaries(s.rec, s.Addr, s.Symbol); err != nil {
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
func (s *Site) checkBoundary(f *body.Boundaries) (problem, err error) {
	img := s.u.img
	code, why, err := f.Harm(img.code, s.Addr)
	if err != nil {
		return nil, err
	}
	if why != "" {
		return fmt.Errorf("%s: %#x: %w: % x: %s", img.Path(), s.Addr, ErrHarmful, code, why), nil
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
	case body.BoundaryInside:
		place := func(addr uint64) string {
			if begin := s.Addr - s.Offset; s.Symbol != "" && addr >= begin {
				at := Site{Symbol: s.Symbol, Offset: addr - begin}
				return fmt.Sprintf("%s (%#x)", at.SymbolOffset(), addr)
			}
			return fmt.Sprintf("%#x", addr)
		}
		return fmt.Errorf("%s: %w: %#x is in the one at %s; the next is at %s", img.Path(), ErrMidInstruction, s.Addr, place(before), place(after)), nil
	case body.BoundaryUnknown:
		return s.strange(before, f.Hi)
	}
	return nil, nil
}

// strange returns the error for what does not decode at an address before hi.
func (s *Site) strange(addr, hi uint64) (problem, err error) {
	code, err := s.u.img.File.Bytes(addr, min(hi-addr, 8))
	if err != nil {
		return nil, err
	}
	return s.notDecoded("the instruction at %#x does not decode (% x)", addr, code), nil
}

// notDecoded returns an error that wraps ErrNotDecoded.
func (s *Site) notDecoded(why string, args ...any) error {
	return fmt.Errorf("%s: %#x: %w: %s", s.u.img.Path(), s.Addr, ErrNotDecoded, fmt.Sprintf(why, args...))
}
