package truth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/sites"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// markLabel is the label of the calls that enclose others.
const markLabel = "truth_mark"

// hit is one firing of a probe. Its values are by the names of the definition's arguments.
type hit struct {
	site   *plan.Site
	values map[string]plan.Value
}

// traced is what tracing a program gave: hits by call and label, in their order.
type traced struct {
	hits    map[uint64]map[string][]hit
	outside map[string]int               // by label: hits between calls
	refused map[string]map[string]string // why an argument of a label is in no plan
	noCode  map[string]bool              // labels without a site
	sites   int                          // that are probed
	notes   []string                     // definitions and sites that were refused
}

// tracedRun traces a program with definitions, and reads what it says of its calls.
func tracedRun(ctx context.Context, path string, defs []Definition) (*traced, record, error) {
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		return nil, nil, err
	}
	defer img.Close()
	running, err := instances.Find(img, instances.FindOptions{})
	if err != nil {
		return nil, nil, err
	}
	t := &traced{
		hits: make(map[uint64]map[string][]hit), outside: make(map[string]int),
		refused: make(map[string]map[string]string), noCode: make(map[string]bool),
	}
	var plans []*plan.Plan
	labels := make(map[*plan.Plan]string)
	for _, d := range defs {
		p, err := t.plan(ctx, img, running.Target(), &d)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", d.Text, err)
		}
		if p != nil {
			plans = append(plans, p)
			labels[p] = d.Label
			t.sites += p.NumProbes()
		}
	}
	session, plans, err := t.open(ctx, running, plans)
	if err != nil {
		return nil, nil, err
	}
	defer session.Close()
	for i, a := range session.Attachments {
		for _, r := range a.Refused {
			t.notes = append(t.notes, fmt.Sprintf("%v: %v", plans[i].Sites[r.Site], r.Err))
		}
	}
	rec, err := t.run(ctx, session, path, labels)
	if err != nil {
		return nil, nil, err
	}
	if not, err := session.Unreported(); not.Lost != 0 || err != nil {
		return nil, nil, fmt.Errorf("%d hits did not fit into the buffer (%v)", not.Lost, err)
	}
	return t, rec, nil
}

// plan makes the plan of a definition, without the arguments that the image does not allow.
// It is nil if the function has no code.
func (t *traced) plan(ctx context.Context, img *dwarfloc.Image, target plan.Target, d *Definition) (*plan.Plan, error) {
	def, err := probe.Parse(d.Text)
	if err != nil {
		return nil, err
	}
	options := plan.Options{Target: target}
	p, err := plan.New(ctx, img, def, options)
	if err == nil {
		return p, nil
	}
	var notFound *sites.NotFoundError
	if errors.As(err, &notFound) {
		t.noCode[d.Label] = true
		return nil, nil
	}
	// Some argument is an error. Which?
	t.refused[d.Label] = make(map[string]string)
	kept := *def
	kept.Args = nil
	for _, a := range def.Args {
		one := *def
		one.Args = []probe.Arg{a}
		if _, err := plan.New(ctx, img, &one, options); err != nil {
			t.refused[d.Label][a.Name] = refusal(err)
			t.notes = append(t.notes, err.Error())
			continue
		}
		kept.Args = append(kept.Args, a)
	}
	if len(kept.Args) == len(def.Args) {
		return nil, err
	}
	return plan.New(ctx, img, &kept, options)
}

// open attaches plans. The kernel may refuse all sites of some of them, which it returns
// without.
func (t *traced) open(ctx context.Context, running *instances.Running, plans []*plan.Plan) (*tracer.Session, []*plan.Plan, error) {
	for {
		session, err := tracer.Open(ctx, running, plans, tracer.Options{Buffer: 1 << 24})
		if !errors.Is(err, instances.ErrRefused) {
			return session, plans, err
		}
		i := slices.IndexFunc(plans, func(p *plan.Plan) bool {
			return strings.HasPrefix(err.Error(), p.Definition.String()+": ")
		})
		if i < 0 {
			return nil, nil, err
		}
		t.notes = append(t.notes, err.Error())
		plans = slices.Delete(plans, i, i+1)
	}
}

// run runs the program, and sorts its hits.
func (t *traced) run(ctx context.Context, session *tracer.Session, path string, labels map[*plan.Plan]string) (record, error) {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, path)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() {
		done <- cmd.Wait()
		stop()
	}()
	var call uint64
	err := session.Run(ctx, func(h *tracer.Hit) error {
		label := labels[h.Plan]
		if label == markLabel {
			call = word(h.Values[0].Data)
			return nil
		}
		if call == 0 {
			t.outside[label]++
			return nil
		}
		kept := hit{site: &h.Plan.Sites[h.Site], values: make(map[string]plan.Value)}
		for _, v := range h.Values {
			v.Data = slices.Clone(v.Data)
			kept.values[v.Name] = v
		}
		if t.hits[call] == nil {
			t.hits[call] = make(map[string][]hit)
		}
		t.hits[call][label] = append(t.hits[call][label], kept)
		return nil
	})
	if err := errors.Join(err, <-done); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, errs.String())
	}
	return readRecord(&out)
}
