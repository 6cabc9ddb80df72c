package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/bpfobject"
	"github.com/bpfprologue/bpfprologue/internal/endprobes"
	"github.com/bpfprologue/bpfprologue/internal/hits"
	"github.com/bpfprologue/bpfprologue/internal/launch"
	"github.com/bpfprologue/bpfprologue/internal/mapview"
	"github.com/bpfprologue/bpfprologue/internal/procfile"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/usage"
	"github.com/bpfprologue/bpfprologue/internal/whose"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/stacks"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// objectOptions are what is done with the programs of an object file.
type objectOptions struct {
	object   string
	set      []string      // values of maps and variables
	samples  string        // which hits are printed
	interval time.Duration // of printing maps
	traceOptions
}

// objectFlags are the flags of trace that are about an object file.
func objectFlags(cmd *cobra.Command, o *objectOptions) {
	f := cmd.Flags()
	f.StringVar(&o.object, "object", "", "object file with the programs to run")
	f.Var((*texts)(&o.set), "set", "with --object: set a variable, or a map's entry, before programs run: VARIABLE=VALUE, MAP[KEY]=VALUE, also with members; may be repeated")
	f.StringVar(&o.samples, "samples", "all", "with --object: print the hits for which a program returns something else than 0 (all), or none")
	f.DurationVar(&o.interval, "interval", 0, "with --object: print the maps at each interval, as 1s, not only at the end")
}

// runObject loads an object file, attaches its programs at their definitions, prints the hits for which
// they return something else than 0, and in the end their maps.
func (s *settings) runObject(cmd *cobra.Command, o *objectOptions, command []string) (err error) {
	report, err := usage.Choose("samples", o.samples, []string{"all", "none"}, []bool{true, false})
	if err != nil {
		return err
	}
	if err := checkObject(o.object); err != nil {
		return err
	}
	spec, err := ebpf.LoadCollectionSpec(o.object)
	if err != nil {
		return fmt.Errorf("%s: %w", o.object, err)
	}
	if o.span {
		return errors.New("--span is for definitions, not for the programs of an object file")
	}
	for _, text := range o.set {
		if err := mapview.Set(spec, text); err != nil {
			return fmt.Errorf("--set %w", err)
		}
	}
	ctx := cmd.Context()
	about := make(map[*dwarfloc.Image]*subject)
	if s.Exec, err = procfile.Path(o.who.PID(), s.Exec); err != nil {
		return err
	}
	find := s.finder(ctx, about, o.force, &o.who)
	around := find
	var sampler *tracer.Session
	if report {
		if o.stack == stackHere {
			o.stack = "both" // definitions can be of programs and of the kernel
		}
		if o.Stack, err = stacksOf(o.stack, false); err != nil {
			return err
		}
		o.PID = o.who.PID()
		if sampler, err = tracer.OpenSampler(o.Options); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, sampler.Close()) }()
		around = func(def *probe.Definition) (instances.Subject, error) {
			x, err := find(def)
			x.Around = sampler.Around
			return x, err
		}
	}
	expanded, err := instances.Expand(ctx, spec, around)
	if err != nil {
		return fmt.Errorf("%s: %w", o.object, err)
	}
	if len(expanded.Definitions) == 0 {
		return fmt.Errorf("%s: %w", o.object, bpfobject.ErrNoDefinition)
	}
	var plans []*plan.Plan
	for _, name := range slices.Sorted(maps.Keys(expanded.Definitions)) {
		plans = append(plans, expanded.Definitions[name].Plan)
	}
	if err := o.who.CheckSites(plans); err != nil {
		return fmt.Errorf("%s: %w", o.object, err)
	}
	c, err := instances.NewCollection(expanded, ebpf.CollectionOptions{})
	if err != nil {
		return fmt.Errorf("%s: %w", o.object, err)
	}
	defer c.Close()
	// If another program is attached, it is no error that one is not. It is said below.
	ending := endprobes.New(ctx)
	defer func() { err = errors.Join(err, ending.Finish()) }()
	attached, err := c.Attach(ctx, instances.AttachOptions{PID: o.who.PID(), End: ending.End, Progress: screen.Counting("attaching"), None: len(c.Definitions) > 1})
	if err != nil {
		return fmt.Errorf("%s: %w", o.object, err)
	}
	probes := 0
	for _, name := range slices.Sorted(maps.Keys(attached)) {
		p, a := c.Definitions[name].Plan, attached[name]
		defer a.Close()
		if report {
			sampler.Attachments = append(sampler.Attachments, a)
		}
		probes += len(a.Attached)
		if err := about[p.Image].reportAttached(s.reports(), p, "", a); err != nil {
			return err
		}
	}
	if probes == 0 {
		return fmt.Errorf("%s: %w: at all sites of all programs", o.object, instances.ErrRefused)
	}
	running, child, err := launch.Start(ctx, command)
	if err != nil {
		return err
	}
	names := stacks.New(stacks.Options{})
	defer func() { err = errors.Join(err, names.Close()) }()
	show, end := hits.Printer(cmd.OutOrStdout(), &hits.Form{Format: s.format, Look: s.Look})
	out := &hits.Object{Out: cmd.OutOrStdout(), Show: show, Names: names, JSON: s.format == "json", Spec: spec, Loaded: c.Maps}
	err = out.Run(running, sampler, o.interval)
	end(err == nil)
	if err != nil || child == nil {
		return err
	}
	return child.Wait(ctx)
}

// finder returns a function that opens the image of a definition, each once.
// Paths are those of the process that is traced, if it is one.
func (s *settings) finder(
	ctx context.Context, about map[*dwarfloc.Image]*subject, force bool, who *whose.Target,
) func(*probe.Definition) (instances.Subject, error) {
	type opened struct {
		*subject
		running *instances.Running
	}
	subjects := make(map[probe.Options]opened)
	return func(def *probe.Definition) (instances.Subject, error) {
		key := probe.Options{Exec: def.Options.Exec, Module: def.Options.Module}
		x, known := subjects[key]
		if !known {
			var err error
			own := def.Options
			if own.Exec, err = procfile.Path(who.PID(), own.Exec); err != nil {
				return instances.Subject{}, err
			}
			if x.subject, x.running, err = s.located(own, force, false, who.PIDs); err != nil {
				return instances.Subject{}, err
			}
			about[x.img] = x.subject
			subjects[key] = x
		}
		if err := who.CountFirst(ctx, []whose.Definitions{{Image: x.img, Filter: x.options.Filter, All: []*probe.Definition{def}}}); err != nil {
			return instances.Subject{}, err
		}
		return instances.Subject{Image: x.img, Options: x.options, Running: x.running, Dispatch: true}, nil
	}
}
