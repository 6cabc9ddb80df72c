package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/bpfprologue/bpfprologue/attachable"
	"github.com/bpfprologue/bpfprologue/internal/order"
	"github.com/bpfprologue/bpfprologue/plan"
)

// probing is the prediction of whether the kernel takes probes at a plan's sites.
type probing struct {
	sites []probeAt
}

// probeAt is the prediction for one site.
type probeAt struct {
	cause   attachable.Cause
	again   bool // it fires on every turn of a loop
	checked bool // again is known
}

// probing predicts probes for all sites of a plan, with --attachable.
func (s *settings) probing(x *subject, p *plan.Plan) (*probing, error) {
	if !s.attachable {
		return nil, nil
	}
	if !x.kernel {
		return nil, errors.New("--attachable is about kernels: an executable takes uprobes everywhere")
	}
	table, err := attachable.New(p.Image)
	if err != nil {
		return nil, err
	}
	out := &probing{sites: make([]probeAt, len(p.Sites))}
	for i := range p.Sites {
		a := &out.sites[i]
		a.cause = table.At(p.Sites[i].Addr)
		if a.again, a.checked, err = table.Repeats(p.Sites[i].Site); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// print prints what is predicted for one site.
func (a *probeAt) print(w io.Writer) {
	if a.cause != attachable.CauseNone {
		fmt.Fprintf(w, "    no probe: %v: %s\n", a.cause, a.cause.Describe())
	}
	switch {
	case a.again:
		fmt.Fprintln(w, "    fires on every turn of a loop: the body's code leads back here")
	case !a.checked:
		fmt.Fprintln(w, "    whether it fires on every turn of a loop was not checked")
	}
}

// printTotals prints a line of the summary.
func (p *probing) printTotals(w io.Writer) {
	causes := make(map[attachable.Cause]int)
	refused, again := 0, 0
	for _, a := range p.sites {
		if a.cause != attachable.CauseNone {
			causes[a.cause]++
			refused++
		}
		if a.again {
			again++
		}
	}
	var parts []string
	for _, c := range order.LargestFirst(causes) {
		parts = append(parts, fmt.Sprintf("%d %v", causes[c], c))
	}
	if again > 0 {
		parts = append(parts, fmt.Sprintf("%d fire again in a loop", again))
	}
	fmt.Fprintf(w, "  probes can be at %d of %s", len(p.sites)-refused, count(len(p.sites), "site"))
	if len(parts) > 0 {
		fmt.Fprintf(w, "; %s", strings.Join(parts, ", "))
	}
	fmt.Fprintln(w)
}
