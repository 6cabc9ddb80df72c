package main

import (
	"errors"
	"io"

	"github.com/bpfprologue/bpfprologue/attachable"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/plan"
)

// probeAt is what is predicted of the probe at a site.
type probeAt struct {
	cause  attachable.Cause
	method attachable.Method
}

// predictor predicts probes. A nil one predicts nothing.
type predictor func(s *plan.Site) probeAt

// predictor returns what predicts probes, with --attachable and --cost.
func (s *settings) predictor(x *subject) (predictor, error) {
	if !s.attachable && !s.cost {
		return nil, nil
	}
	if !x.kernel {
		if s.attachable {
			return nil, errors.New("--attachable is about kernels: an executable takes uprobes everywhere")
		}
		return func(s *plan.Site) probeAt { return probeAt{method: attachable.UprobeMethod(x.img, s.Addr)} }, nil
	}
	table, err := x.attachable()
	if err != nil {
		return nil, err
	}
	return func(site *plan.Site) (at probeAt) {
		if s.attachable {
			at.cause = table.Of(site.Site)
		}
		if s.cost {
			at.method = table.Method(site.Addr)
		}
		return at
	}, nil
}

// attachable returns the table of a kernel, which is made once.
func (x *subject) attachable() (*attachable.Table, error) {
	if x.table == nil {
		var err error
		if x.table, err = attachable.New(x.img); err != nil {
			return nil, err
		}
		if !x.table.Decodes() {
			terminal.Fprintf(screen.Stderr, "prolog-dump: %s: instructions of %s are not decoded: whether the kernel accepts a probe at them was not checked\n", x.img.Path(), x.img.Arch().Name)
		}
		for _, symbol := range x.table.Unread() {
			terminal.Fprintf(screen.Stderr, "prolog-dump: %s: the form of the kernel's table at %s is not known: whether the kernel refuses probes for what it lists was not checked\n", x.img.Path(), symbol)
		}
	}
	return x.table, nil
}

// costs returns what plan.Options.Cost asks for, with --move.
func (x *subject) costs() (func(addr uint64) int, error) {
	if !x.kernel {
		return func(addr uint64) int { return attachable.UprobeMethod(x.img, addr).Cost() }, nil
	}
	table, err := x.attachable()
	if err != nil {
		return nil, err
	}
	return func(addr uint64) int { return table.Method(addr).Cost() }, nil
}

func (p predictor) at(s *plan.Site) probeAt {
	if p == nil {
		return probeAt{}
	}
	return p(s)
}

// printProbe prints what is predicted for one site.
func (s *settings) printProbe(w io.Writer, a *probeAt) {
	if a.cause != attachable.CauseNone {
		terminal.Fprintf(w, "    %s\n", s.Styledf(screen.RoleFault, "no probe: %v: %s", a.cause, a.cause.Describe()))
	}
	if a.method != attachable.MethodNone {
		terminal.Fprintf(w, "    probe: %v: %s\n", a.method, a.method.Describe())
	}
}
