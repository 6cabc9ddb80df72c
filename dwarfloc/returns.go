package dwarfloc

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bpfprologue/bpfprologue/image"
	"github.com/bpfprologue/bpfprologue/internal/dw"
)

// A uretprobe replaces the return address of the function's frame (prepare_uretprobe in
// kernel/events/uprobes.c). A program that looks at its stack finds that address, which is in no
// function: Go's runtime ends it when the stack grows, and an unwinder when an exception passes
// the frame.

// ErrUnwinding is wrapped by the error of Returns for a function whose return cannot be probed.
var ErrUnwinding = errors.New("a return probe would end the program if an exception passed the function")

// Returns returns the sites of the instructions at which a function returns or jumps to another
// that returns in its place, if a return probe at its entry could harm the program: the function
// is Go's, or in a program with exceptions. moved is false for other functions. At these sites
// $retval and, in Go, the function's named results are where the calling convention has them. The
// error wraps ErrMovingStack or ErrUnwinding if there are none, or not all of them are known.
func (s *Site) Returns() (at []*Site, moved bool, err error) {
	if s.Kind != SiteEntry {
		return nil, false, nil
	}
	return s.by.returns(s)
}

func (debugInfo) returns(s *Site) (at []*Site, moved bool, err error) {
	var find func() ([]*Site, error)
	switch {
	case s.u.code.IsGo():
		find = s.goReturns
	case s.u.unwinds():
		find = s.leaves
	default:
		return nil, false, nil
	}
	err = s.u.img.guard(func() error {
		at, err = find()
		return err
	})
	return at, true, err
}

// unwinds reports whether exceptions may pass the unit's functions: its language has them, and
// the program has tables for them.
func (u *unit) unwinds() bool {
	return (dw.IsCPlusPlus(u.Lang) || u.Lang == dw.LangRust) &&
		slices.ContainsFunc(u.img.File.Sections(), func(s image.Section) bool { return s.Name == ".gcc_except_table" })
}

// leaves returns the sites at which a function is left.
func (s *Site) leaves() (out []*Site, err error) {
	c, err := s.u.code.Code(s.rec)
	if err != nil {
		return nil, err
	}
	if c.Why != "" {
		return nil, fmt.Errorf("%v: %w: where it returns is not known: %s", s, ErrUnwinding, c.Why)
	}
	for _, l := range c.Leaves() {
		at, err := s.returnAt(l.Addr)
		if err != nil {
			return nil, err
		}
		at.jumps = l.Jumps
		out = append(out, at)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%v: %w: it has no return instruction", s, ErrUnwinding)
	}
	return out, nil
}

// returnAt returns the site of an instruction at which the function of an entry returns.
func (s *Site) returnAt(addr uint64) (*Site, error) {
	at, err := s.Clone()
	if err != nil {
		return nil, err
	}
	at.Kind, at.Addr, at.View, at.AfterPrologue = SiteInstruction, addr, 0, false
	at.body, at.returning = s.fun.start, true
	at.locateSymbol(s.Function)
	return at, nil
}
