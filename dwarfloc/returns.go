package dwarfloc

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/needed"
	"github.com/bpfprologue/bpfprologue/internal/refusals"
)

// A uretprobe replaces the return address of the function's frame (prepare_uretprobe in
// kernel/events/uprobes.c). A program that looks at its stack finds that address, which is in no
// function: Go's runtime ends it when the stack grows, and an unwinder when an exception passes
// the frame.

// returns is inside.Returns.
func (s *Site) returns(force bool) (at []*Site, moved bool, err error) {
	if s.Kind != SiteEntry {
		return nil, false, nil
	}
	// What a kernel begins a program with has no return address: how many arguments the program has is in its place.
	if f := s.Image.file; !f.IsRelocatable() && s.entry() == f.Entry() {
		return nil, true, fmt.Errorf("%v: %w", s, refusals.ErrNotCalled)
	}
	return s.by.returns(s, force)
}

// entry returns the link-time address of the first instruction of the function of a site.
func (s *Site) entry() uint64 {
	if a, ok := s.by.(*answeredSite); ok {
		return a.Start
	}
	return s.spot.Start()
}

func (debugInfo) returns(s *Site, force bool) (at []*Site, moved bool, err error) {
	img := s.u.img
	err = img.guard(func() error {
		kernel, err := img.r.Code.IsKernel()
		if err != nil || kernel {
			return err
		}
		moved = true
		if s.u.Body.IsGo() {
			at, err = s.goReturns()
			return err
		}
		if force {
			moved = false
			return nil
		}
		if at, err = s.leaves(); s.u.unwinds() {
			return err
		}
		if err != nil && !errors.Is(err, refusals.ErrUnwinding) {
			return err
		}
		known := err == nil && !slices.ContainsFunc(at, func(s *Site) bool { return s.jumps })
		if known || img.unwound() {
			return err
		}
		at, moved = nil, false
		return nil
	})
	return at, moved, err
}

// unwound reports whether an exception, or the end of a thread, may pass the program's functions in C, or they run on several stacks: it
// is a library, which calls back what it does not know, or a program with more libraries than C's own, or one that loads libraries, ends
// threads or changes stacks.
func (img *Image) unwound() bool {
	img.exceptions.Do(func() { img.mayUnwind = !needed.OnlyC(img.file) })
	return img.mayUnwind
}

// unwinds reports whether exceptions may pass the unit's functions: its language has them, and
// the program has tables for them.
func (u *unit) unwinds() bool {
	return (dw.IsCPlusPlus(u.Lang) || u.Lang == dw.LangRust) &&
		slices.ContainsFunc(u.img.file.Sections(), func(s image.Section) bool { return s.Name == ".gcc_except_table" })
}

// leaves returns the sites at which a function is left.
func (s *Site) leaves() (out []*Site, err error) {
	c, err := s.u.Body.Code(s.spot.Rec)
	if err != nil {
		return nil, err
	}
	if c.Why != "" {
		return nil, fmt.Errorf("%v: %w: where it returns is not known: %s", s, refusals.ErrUnwinding, c.Why)
	}
	leaves, why := c.Leaves()
	if why != "" {
		return nil, fmt.Errorf("%v: %w: %s", s, refusals.ErrUnwinding, why)
	}
	for _, l := range leaves {
		at, err := s.returnAt(l.Addr)
		if err != nil {
			return nil, err
		}
		at.jumps = l.Jumps
		out = append(out, at)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%v: %w: it has no return instruction", s, refusals.ErrUnwinding)
	}
	return out, nil
}

// jumpsAway is inside.Jumps.
func (s *Site) jumpsAway() bool { return s.jumps }

// returnAt returns the site of an instruction at which the function of an entry returns.
func (s *Site) returnAt(addr uint64) (*Site, error) {
	at, err := s.keptCopy()
	if err != nil {
		return nil, err
	}
	at.Kind, at.Addr, at.View, at.AfterPrologue = SiteInstruction, addr, 0, false
	at.body, at.returning = s.spot.Start(), true
	at.locateSymbol(s.Function)
	return at, nil
}
