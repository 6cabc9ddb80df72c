package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/launch"
	"github.com/bpfprologue/bpfprologue/internal/procfile"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/internal/usage"
	"github.com/bpfprologue/bpfprologue/internal/whose"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/stacks"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// part is the definitions about one image, and where that runs.
type part struct {
	x       *subject
	running *instances.Running
	defs    []*probe.Definition
	plans   []*plan.Plan
	spans   []*plan.Span // of whole runs, of which plans are
	stack   tracer.Stacks
}

type parts []*part

// named is an image that a flag names.
type named struct {
	exec, vmlinux string
	before        int // so many definitions are before it
}

func (n named) String() string {
	if n.exec != "" {
		return "-x " + n.exec
	}
	return "-k " + n.vmlinux
}

// imageFlag is -x or -k of verbs that take several images.
type imageFlag struct {
	s    *settings
	args *pflag.FlagSet
	to   *string
}

func (f imageFlag) String() string { return *f.to }
func (f imageFlag) Type() string   { return "string" }

func (f imageFlag) Set(text string) error {
	*f.to = text
	n := named{before: f.args.NArg()}
	if f.to == &f.s.Exec {
		n.exec = text
	} else {
		n.vmlinux = text
	}
	f.s.named = append(f.s.named, n)
	return nil
}

// severalImages makes -x and -k of a verb name the images of the definitions after them.
func (s *settings) severalImages(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Lookup("exec").Value = imageFlag{s, f, &s.Exec}
	f.Lookup("vmlinux").Value = imageFlag{s, f, &s.Vmlinux}
}

// group returns for each definition which flag names its image: that before it, or the only one.
func (s *settings) group(texts []string) ([]named, error) {
	out := make([]named, len(texts))
	used := make([]bool, len(s.named))
	for i, text := range texts {
		at := -1
		for k := range s.named {
			if s.named[k].before <= i || len(s.named) == 1 {
				at = k
			}
		}
		switch {
		case at >= 0:
			out[i], used[at] = s.named[at], true
		case len(s.named) > 0:
			return nil, usage.Errorf("%q: with several images definitions belong to the one before them, and there is none", text)
		}
	}
	if k := slices.Index(used, false); k >= 0 && len(texts) > 0 {
		return nil, usage.Errorf("%v: there is no definition after it: with several images definitions belong to the one before them", s.named[k])
	}
	return out, nil
}

// ready parses definitions, opens their images, finds where they run, and completes the options by that. Paths are
// those of the process that is traced, if it is one. Programs may sleep if sleep is set.
func (s *settings) ready(ctx context.Context, texts, words []string, sleep bool, o *traceOptions) (out parts, err error) {
	if len(texts) == 0 {
		return nil, errors.New("no definition; one looks like 'vfs_read file count'")
	}
	images, err := s.group(texts)
	if err == nil {
		err = launch.Find(words)
	}
	if err == nil {
		err = o.who.FindGroups()
	}
	if err != nil {
		return nil, err
	}
	type key struct{ exec, vmlinux, ownExec, module string }
	known := make(map[key]int)
	var keys []key
	var defs [][]*probe.Definition
	for i, t := range texts {
		def, err := s.parse(t)
		if err == nil {
			err = o.who.Restrict(def)
		}
		if err != nil {
			return nil, err
		}
		k := key{images[i].exec, images[i].vmlinux, def.Options.Exec, def.Options.Module}
		at, is := known[k]
		if !is {
			at = len(keys)
			known[k], keys, defs = at, append(keys, k), append(defs, nil)
		}
		defs[at] = append(defs[at], def)
	}
	pids, err := o.who.Processes()
	if err != nil {
		return nil, err
	}
	for i, k := range keys {
		s.Exec, s.Vmlinux = k.exec, k.vmlinux
		files, err := s.files(ctx, pids, defs[i], words)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			s.Exec = f
			p, err := s.part(defs[i], sleep, o)
			if err != nil {
				return nil, s.AlsoThere(err)
			}
			out = append(out, p)
		}
	}
	if err := o.who.Options(&o.Options, words); err != nil {
		return nil, err
	}
	o.Progress = screen.Counting("attaching")
	var all []whose.Definitions
	for _, p := range out {
		all = append(all, whose.Definitions{Image: p.x.img, Filter: p.x.options.Filter, All: p.defs})
	}
	return out, o.who.CountFirst(ctx, all)
}

// files returns the paths of the programs or libraries that are meant: with "" it is no such file. Several processes, of several containers,
// can have files of a name that are not the same.
func (s *settings) files(ctx context.Context, pids []int, defs []*probe.Definition, words []string) ([]string, error) {
	name := cmp.Or(defs[0].Options.Exec, s.Exec)
	if name == "" && s.Vmlinux == "" && s.BTF == "" && defs[0].Options.Module == "" {
		if programs := s.ProgramsOf(ctx, defs, words, pids); len(programs) > 0 {
			return programs, nil
		}
	}
	if name == "" {
		return []string{""}, nil
	}
	return procfile.Paths(pids, name)
}

// part opens the image of definitions and finds where it runs.
func (s *settings) part(defs []*probe.Definition, sleep bool, o *traceOptions) (p *part, err error) {
	p = &part{defs: defs}
	own := defs[0].Options
	if s.Exec != "" {
		own.Exec = "" // which that is
	}
	// Found first: for another kernel all answers would be wrong.
	if p.x, p.running, err = s.located(own, o.force, sleep, o.who.PIDs); err != nil {
		return nil, err
	}
	x, at := p.x, p.running.Target()
	if s.reads != "auto" {
		at.Reads = x.options.Target.Reads
	}
	if s.doubt == "" {
		x.options.Doubt = plan.DoubtMark // values are printed with the mark
	}
	x.options.Target, x.options.CountMissing, x.options.LargeRecords, x.options.Parts, x.options.Keys = at, true, true, o.shown, o.keys
	p.stack, err = stacksOf(o.stack, x.kernel)
	return p, err
}

// plan makes the plans of all definitions.
func (all parts) plan(ctx context.Context, o *traceOptions) (err error) {
	if o.span {
		o.Cost = new([2]time.Duration)
	}
	for _, p := range all {
		for _, def := range p.defs {
			if !o.span {
				one, err := plan.New(ctx, p.x.img, def, p.x.options)
				if err != nil {
					return err
				}
				p.plans = append(p.plans, one)
				continue
			}
			span, err := plan.NewSpan(ctx, p.x.img, def, p.x.options)
			if err != nil {
				return err
			}
			p.spans, p.plans = append(p.spans, span), append(p.plans, span.Begin, span.End)
		}
	}
	return o.who.CheckSites(all.plans())
}

// plans returns all plans.
func (all parts) plans() (out []*plan.Plan) {
	for _, p := range all {
		out = append(out, p.plans...)
	}
	return out
}

// share reports whether images have a definition in common: the files of a name that several containers have.
func (all parts) share() bool {
	seen := make(map[*probe.Definition]bool)
	for _, p := range all {
		for _, def := range p.defs {
			if seen[def] {
				return true
			}
			seen[def] = true
		}
	}
	return false
}

// options returns the options for one image: each session gets its own, since opening one changes them.
func (p *part) options(o *traceOptions, cost *[2]time.Duration) tracer.Options {
	own := o.Options
	if own.Cost != nil {
		own.Cost = cost
	}
	return own
}

// addCost makes the cost of all images the least and the most of each.
func (o *traceOptions) addCost(c [2]time.Duration) {
	if o.Cost == nil || c[1] == 0 {
		return
	}
	if o.Cost[0] == 0 || c[0] < o.Cost[0] {
		o.Cost[0] = c[0]
	}
	o.Cost[1] = max(o.Cost[1], c[1])
}

// open opens a session for each image, which are one stream: that of the first.
func (all parts) open(ctx context.Context, o *traceOptions) (sessions []*tracer.Session, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll(sessions))
			sessions = nil
		}
	}()
	for _, p := range all {
		var cost [2]time.Duration
		own := p.options(o, &cost)
		own.Stack = p.stack
		if len(sessions) > 0 {
			own.With = sessions[0]
		}
		var s *tracer.Session
		if o.span {
			s, err = tracer.OpenSpans(ctx, p.running, p.spans, own)
		} else {
			s, err = tracer.Open(ctx, p.running, p.plans, own)
		}
		if err != nil {
			if len(all) > 1 {
				err = fmt.Errorf("%s: %w", p.x.img.Path(), err)
			}
			return sessions, err
		}
		sessions = append(sessions, s)
		o.addCost(cost)
	}
	return sessions, nil
}

// closeAll closes sessions, the first one last.
func closeAll[T interface{ Close() error }](list []T) error {
	var errs []error
	for _, x := range slices.Backward(list) {
		errs = append(errs, x.Close())
	}
	return errors.Join(errs...)
}

// symbols reports whether an argument is an address whose function is to be said.
func (all parts) symbols() bool {
	return slices.ContainsFunc(all.plans(), func(p *plan.Plan) bool {
		return slices.ContainsFunc(p.Definition.Args, func(a probe.Arg) bool { return a.Type.Kind == syntax.TypeSymbol })
	})
}

// names returns what finds the functions of stacks.
func (all parts) names() *stacks.Names {
	var o stacks.Options
	for _, p := range all {
		o.Images = append(o.Images, p.x.img)
		if p.x.kernel && !inside.File(p.x.img).IsRelocatable() {
			o.Kernel, o.Slide = p.x.img, p.running.Target().Slide
		}
	}
	return stacks.New(o)
}

// files returns the paths of what runs; "" is a kernel's, or a module's.
func (all parts) files() []string {
	out := make([]string, len(all))
	for i, p := range all {
		if !p.x.kernel {
			out[i] = p.x.path
		}
	}
	return out
}
