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

// probing is what is predicted of the probes at a plan's sites.
type probing struct {
	sites       []probeAt
	places      string // how many there are
	cost, takes bool   // what was asked for
}

// probeAt is the prediction for one site.
type probeAt struct {
	cause  attachable.Cause
	method attachable.Method
}

// probing predicts probes for all sites of a plan, with --attachable and --cost.
func (s *settings) probing(x *subject, p *plan.Plan) (*probing, error) {
	if !s.attachable && !s.cost {
		return nil, nil
	}
	out := &probing{sites: make([]probeAt, len(p.Sites)), places: places(p), cost: s.cost, takes: s.attachable}
	if !x.kernel {
		if s.attachable {
			return nil, errors.New("--attachable is about kernels: an executable takes uprobes everywhere")
		}
		for i := range p.Sites {
			out.sites[i].method = attachable.UprobeMethod(p.Image, p.Sites[i].Addr)
		}
		return out, nil
	}
	table, err := attachable.New(p.Image)
	if err != nil {
		return nil, err
	}
	for i := range p.Sites {
		at, addr := &out.sites[i], p.Sites[i].Addr
		if s.attachable {
			at.cause = table.At(addr)
		}
		if s.cost {
			at.method = table.Method(addr)
		}
	}
	return out, nil
}

// print prints what is predicted for one site.
func (a *probeAt) print(w io.Writer) {
	if a.cause != attachable.CauseNone {
		fmt.Fprintf(w, "    no probe: %v: %s\n", a.cause, a.cause.Describe())
	}
	if a.method != attachable.MethodNone {
		fmt.Fprintf(w, "    probe: %v: %s\n", a.method, a.method.Describe())
	}
}

// printTotals prints lines of the summary.
func (p *probing) printTotals(w io.Writer) {
	causes, methods := make(map[attachable.Cause]int), make(map[attachable.Method]int)
	for _, a := range p.sites {
		if a.cause != attachable.CauseNone {
			causes[a.cause]++
		}
		if a.method != attachable.MethodNone {
			methods[a.method]++
		}
	}
	if p.takes {
		printProbes(w, "can be", p.places, len(p.sites), causes, true)
	}
	if p.cost {
		printProbes(w, "are", p.places, len(p.sites), methods, false)
	}
}

// printProbes prints at how many sites there are probes, and the counts of what is said of the
// others, or of these.
func printProbes[K attachable.Cause | attachable.Method](w io.Writer, verb, places string, sites int, counts map[K]int, others bool) {
	var parts []string
	n := 0
	for _, k := range order.LargestFirst(counts) {
		parts = append(parts, fmt.Sprintf("%d %v", counts[k], k))
		n += counts[k]
	}
	if others {
		n = sites - n
	}
	fmt.Fprintf(w, "  probes %s at %d of %s", verb, n, places)
	if len(parts) > 0 {
		fmt.Fprintf(w, "; %s", strings.Join(parts, ", "))
	}
	fmt.Fprintln(w)
}
