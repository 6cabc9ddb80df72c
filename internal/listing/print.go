// Package listing prints plans: sites with where their arguments are, as text and as lines of JSON, the instances, a summary, and where a
// plan is attached; and functions, their lines and their variables.
package listing

import (
	"bytes"
	"context"
	"io"
	"sync"

	"github.com/bpfprologue/bpfprologue/attachable"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
)

// Options say what is printed of sites, and how.
type Options struct {
	screen.Look
	Brief        bool // without the disassembly of instances
	Explain      bool // by which rule each location was chosen
	Predict      Predictor
	CountCauses  bool   // in the summary: why there are no probes
	CountMethods bool   // and how the kernel runs them
	Large        func() // called once, if the answer is a large one; it may be nil
}

// largeAnswer is the number of sites of a large answer.
const largeAnswer = 10_000

// JSON writes one object per site and nothing else. A plan can have hundreds of
// thousands of sites, so they are printed as they come.
func JSON(ctx context.Context, w io.Writer, img *dwarfloc.Image, def *probe.Definition, po plan.Options, o *Options) error {
	out := flushed{w: w}
	lines := 0
	return plan.Each(ctx, img, def, po, plan.Visitor[jsonLine]{
		Site: func(p *plan.Plan, site *plan.Site) (jsonLine, error) {
			at := o.Predict.At(site)
			return siteLine(p, site, at.Cause.String(), at.Method.String()), nil
		},
		Size: func(l jsonLine) int { return len(l.text) },
		Next: func(l jsonLine, instance int) error {
			if err := l.writeTo(w, instance); err != nil {
				return err
			}
			if lines++; lines == largeAnswer && o.Large != nil {
				o.Large()
			}
			return out.first()
		},
	})
}

// textSite is a site as text, but for the number of its instance, and its prediction.
type textSite struct {
	text  []byte
	probe Prediction
}

// Text writes a plan for a person to read: the sites, the instances, and a
// summary.
func Text(ctx context.Context, w io.Writer, img *dwarfloc.Image, def *probe.Definition, po plan.Options, o *Options) error {
	sum := newSummary(def)
	causes, methods := make(map[attachable.Cause]int), make(map[attachable.Method]int)
	var instances []instanceText
	out := flushed{w: w}
	var rooms sync.Pool // of buffers: several goroutines print sites
	v := plan.Visitor[textSite]{
		Site: func(p *plan.Plan, site *plan.Site) (textSite, error) {
			sum.add(site)
			b, ok := rooms.Get().(*bytes.Buffer)
			if !ok {
				b = new(bytes.Buffer)
			}
			defer rooms.Put(b)
			b.Reset()
			err := o.printSite(b, p, site)
			return textSite{bytes.Clone(b.Bytes()), o.Predict.At(site)}, err
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
			o.printProbe(w, &t.probe)
			if t.probe.Cause != attachable.CauseNone {
				causes[t.probe.Cause]++
			}
			if t.probe.Method != attachable.MethodNone {
				methods[t.probe.Method]++
			}
			return out.first()
		},
	}
	if !o.Brief {
		v.Instance = func(p *plan.Plan, in *plan.Instance) error {
			instances = append(instances, newInstanceText(p, in))
			return nil
		}
	}
	if err := plan.Each(ctx, img, def, po, v); err != nil {
		return err
	}
	for i := range instances {
		if !o.Brief {
			terminal.Fprintf(w, "\n%s %s", o.Styledf(screen.RolePlace, "instance %d:", i), screen.Count(instances[i].sites, "site"))
			if _, err := io.WriteString(w, instances[i].text); err != nil {
				return err
			}
		}
	}
	sum.print(o.Look, w, len(instances))
	if o.CountCauses {
		printProbes(w, sum, "can be", causes, true)
	}
	if o.CountMethods {
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
