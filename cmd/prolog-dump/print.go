package main

import (
	"bytes"
	"context"
	"io"

	"github.com/bpfprologue/bpfprologue/attachable"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
)

// printSites writes the plan of a definition as text or JSON. A plan can have hundreds of
// thousands of sites, so they are printed as they come.
func (s *settings) printSites(ctx context.Context, w io.Writer, x *subject, def *probe.Definition) error {
	predict, err := s.predictor(x)
	if err != nil {
		return err
	}
	if s.format == "json" {
		return s.printJSON(ctx, w, x, def, predict)
	}
	return s.printText(ctx, w, x, def, predict)
}

// printJSON writes one object per site and nothing else.
func (s *settings) printJSON(ctx context.Context, w io.Writer, x *subject, def *probe.Definition, predict predictor) error {
	out := flushed{w: w}
	lines := 0
	return plan.Each(ctx, x.img, def, x.options, plan.Visitor[jsonLine]{
		Site: func(p *plan.Plan, site *plan.Site) (jsonLine, error) {
			at := predict.at(site)
			return siteLine(p, site, at.cause.String(), at.method.String()), nil
		},
		Size: func(l jsonLine) int { return len(l.text) },
		Next: func(l jsonLine, instance int) error {
			if err := l.writeTo(w, instance); err != nil {
				return err
			}
			if lines++; lines == largeAnswer {
				collectAt(gcLarge)
			}
			return out.first()
		},
	})
}

// textSite is a site as text, but for the number of its instance, and its prediction.
type textSite struct {
	text  []byte
	probe probeAt
}

// printText writes a plan for a person to read: the sites, the instances, and a
// summary.
func (s *settings) printText(ctx context.Context, w io.Writer, x *subject, def *probe.Definition, predict predictor) error {
	sum := newSummary(def)
	causes, methods := make(map[attachable.Cause]int), make(map[attachable.Method]int)
	var instances []instanceText
	out := flushed{w: w}
	v := plan.Visitor[textSite]{
		Site: func(p *plan.Plan, site *plan.Site) (textSite, error) {
			sum.add(site)
			var b bytes.Buffer
			err := s.printSite(&b, p, site)
			return textSite{bytes.Clone(b.Bytes()), predict.at(site)}, err
		},
		Size: func(t textSite) int { return len(t.text) },
		Next: func(t textSite, instance int) error {
			if _, err := w.Write(t.text); err != nil {
				return err
			}
			if instance >= 0 {
				terminal.Fprintf(w, "    instance %d\n", instance)
				for len(instances) <= instance {
					instances = append(instances, instanceText{}) // with --sites only their number counts
				}
				instances[instance].sites++
			}
			s.printProbe(w, &t.probe)
			if t.probe.cause != attachable.CauseNone {
				causes[t.probe.cause]++
			}
			if t.probe.method != attachable.MethodNone {
				methods[t.probe.method]++
			}
			return out.first()
		},
	}
	if !s.sites {
		v.Instance = func(p *plan.Plan, in *plan.Instance) error {
			instances = append(instances, newInstanceText(p, in))
			return nil
		}
	}
	if err := plan.Each(ctx, x.img, def, x.options, v); err != nil {
		return err
	}
	for i := range instances {
		if !s.sites {
			terminal.Fprintf(w, "\n%s %s", s.Styledf(screen.RolePlace, "instance %d:", i), screen.Count(instances[i].sites, "site"))
			if _, err := io.WriteString(w, instances[i].text); err != nil {
				return err
			}
		}
	}
	sum.print(s, w, len(instances))
	if s.attachable {
		printProbes(w, sum, "can be", causes, true)
	}
	if s.cost {
		printProbes(w, sum, "are", methods, false)
	}
	return nil
}

// flushed flushes a buffered writer after the first site, for which somebody may wait.
type flushed struct {
	w    io.Writer
	done bool
}

func (f *flushed) first() error {
	b, ok := f.w.(interface{ Flush() error })
	if f.done || !ok {
		return nil
	}
	f.done = true
	return b.Flush()
}
