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
	sites  []probeAt
	places string // how many there are
}

// probeAt is the prediction for one site.
type probeAt struct {
	cause attachable.Cause
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
	out := &probing{sites: make([]probeAt, len(p.Sites)), places: places(p)}
	for i := range p.Sites {
		out.sites[i].cause = table.At(p.Sites[i].Addr)
	}
	return out, nil
}

// print prints what is predicted for one site.
func (a *probeAt) print(w io.Writer) {
	if a.cause != attachable.CauseNone {
		fmt.Fprintf(w, "    no probe: %v: %s\n", a.cause, a.cause.Describe())
	}
}

// printTotals prints a line of the summary.
func (p *probing) printTotals(w io.Writer) {
	causes := make(map[attachable.Cause]int)
	refused := 0
	for _, a := range p.sites {
		if a.cause != attachable.CauseNone {
			causes[a.cause]++
			refused++
		}
	}
	var parts []string
	for _, c := range order.LargestFirst(causes) {
		parts = append(parts, fmt.Sprintf("%d %v", causes[c], c))
	}
	fmt.Fprintf(w, "  probes can be at %d of %s", len(p.sites)-refused, p.places)
	if len(parts) > 0 {
		fmt.Fprintf(w, "; %s", strings.Join(parts, ", "))
	}
	fmt.Fprintln(w)
}
