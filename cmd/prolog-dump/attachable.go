package main

import (
	"errors"
	"io"

	"github.com/bpfprologue/bpfprologue/attachable"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/listing"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/plan"
)

// predictor returns what predicts probes, with --attachable and --cost.
func (s *settings) predictor(x *subject) (listing.Predictor, error) {
	if !s.attachable && !s.cost {
		return nil, nil
	}
	if !x.kernel {
		if s.attachable {
			return nil, errors.New("--attachable is about kernels: an executable takes uprobes everywhere")
		}
		return func(s *plan.Site) listing.Prediction {
			return listing.Prediction{Method: attachable.UprobeMethod(x.img, s.Addr)}
		}, nil
	}
	table, err := x.attachable()
	if err != nil {
		return nil, err
	}
	return func(site *plan.Site) (at listing.Prediction) {
		if s.attachable {
			at.Cause = table.Of(site.Site)
		}
		if s.cost {
			at.Method = table.Method(site.Addr)
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

// reportAttached prints where a plan is attached, which has a name, or is called by its definition.
func (x *subject) reportAttached(w io.Writer, p *plan.Plan, name string, a *instances.Attachment) error {
	return listing.Attached(w, p, a, &listing.AttachedOptions{Name: name, Verbose: x.sites, List: x.list, Predict: func() (func(*dwarfloc.Site) attachable.Cause, error) {
		if !x.kernel {
			return func(*dwarfloc.Site) attachable.Cause { return attachable.CauseNone }, nil
		}
		table, err := x.attachable()
		if err != nil {
			return nil, err
		}
		return table.Of, nil
	}})
}

// reports is where is printed what a verb does.
func (s *settings) reports() io.Writer {
	if s.quiet {
		return io.Discard
	}
	return screen.Stderr
}
