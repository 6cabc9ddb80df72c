package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/glob"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/endprobes"
	"github.com/bpfprologue/bpfprologue/internal/hits"
	"github.com/bpfprologue/bpfprologue/internal/launch"
	"github.com/bpfprologue/bpfprologue/internal/procfile"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
	"github.com/bpfprologue/bpfprologue/recording"
	"github.com/bpfprologue/bpfprologue/sites"
	"github.com/bpfprologue/bpfprologue/tracer"
)

func traceCommand(s *settings) *cobra.Command {
	var o traceOptions
	var object objectOptions
	var input string
	cmd := &cobra.Command{
		Use:   "trace 'FUNC ARG...'... | --object FILE [-- COMMAND...]",
		Short: "Attach everywhere and print each hit with its values",
		Long: `trace attaches a small program at every site of one or more definitions, and
prints a line for each hit: time, task, place, and the arguments by name, as their
types say. It ends with Ctrl-C, or with COMMAND when there is one. Sites that the
kernel refuses are listed first, and hits that were lost last. It needs root, or CAP_BPF
and CAP_PERFMON (for the kernel CAP_SYSLOG too), and Linux 5.15.

Where neither -x nor -k names an image, it is COMMAND's program if that has such a function,
and else the running kernel.

With COMMAND the hits are those of it and of all that it starts, directly or not; with
--all and without COMMAND those of all processes of the machine. In both cases the
tool's own hits are left out. --duration and --max-hits end the tracing, not COMMAND.

With --span a line is a whole run, from where a function begins to where it ends,
with its result and its duration; inlined bodies too.

--format perfetto writes a file for https://ui.perfetto.dev and chrome://tracing, in
which whole runs have their durations.

Each definition is one argument here: quote it. With --object the programs of an
object file run instead, at the definitions that are their section names: hits for
which a program returns something else than 0 are printed, and in the end its maps and
variables, by their types. --set sets those before.`,
		Example: `  sudo prolog-dump -k vmlinux trace 'vfs_read file->f_path.dentry->d_name.name:string count'
  sudo prolog-dump -k vmlinux trace --span 'vfs_read count'
  sudo prolog-dump -x ./server trace --span --format perfetto -o trace.json 'walk n->name:string i' -- ./server
  sudo prolog-dump -x ./server trace 'walk n->name:string i' -- ./server`,
		ValidArgsFunction: s.completeQuoted,
		RunE: func(cmd *cobra.Command, args []string) error {
			args, command, err := o.who.words(cmd, args)
			if err != nil {
				return err
			}
			switch {
			case input != "" && (object.object != "" || len(args) > 0 || command != nil):
				return errors.New("-i prints a recording: there is nothing to attach or to run")
			case input != "":
				return s.replay(cmd.OutOrStdout(), input, &o)
			case object.object != "" && len(args) > 0:
				return fmt.Errorf("%q: with --object the definitions are those of %s", args[0], object.object)
			case object.object != "":
				object.traceOptions = o
				return s.runObject(cmd, &object, command)
			}
			for _, name := range []string{"set", "samples", "interval"} {
				if cmd.Flags().Changed(name) {
					return fmt.Errorf("--%s is for --object", name)
				}
			}
			form, err := s.form(&o)
			if err != nil {
				return err
			}
			show, end := hits.Printer(cmd.OutOrStdout(), form)
			err = s.trace(cmd, args, command, &o, &sink{show: show, line: form.Line})
			end(worked(err))
			return err
		},
	}
	s.use(cmd, []string{"text", "json", "perfetto"}, join(planFlags, []string{"attachable", "output", "color", "quiet", "verbose"})...)
	objectFlags(cmd, &object)
	cmd.Flags().StringVarP(&input, "input", "i", "", "print the hits of a file that record has written; no image is needed")
	traceFlags(cmd, &o)
	cmd.Flags().StringVar(&o.clock, "time", hits.Clocks[0], "the times of hits: since the machine started (mono), of the day (wall), or since the first hit (relative)")
	_ = cmd.RegisterFlagCompletionFunc("time", cobra.FixedCompletions(hits.Clocks, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().StringVar(&o.line, "line", "", "the form of a line, as '{{.Time}} {{.comm}} {{.n}}': names of arguments, and Time, comm, pid, tid, Site, Function, Event, Duration, Stack")
	moreFlags(cmd, "exec", "vmlinux", "pid", "command", "if", "span", "stack", "max-hits", "format", "output")
	return cmd
}

// traceOptions are options of trace and record.
type traceOptions struct {
	tracer.Options
	force, span bool
	stack       string
	clock, line string // of trace
	who         target
}

// traceFlags are the flags of trace and record.
func traceFlags(cmd *cobra.Command, o *traceOptions) {
	f := cmd.Flags()
	f.BoolVar(&o.span, "span", false, "whole runs of functions, with results and durations")
	stackFlag(cmd, &o.stack)
	o.who.flags(cmd)
	f.IntVar(&o.who.maxHits, "max-hits", 0, "end after so many hits")
	f.BoolVar(&o.force, "force", false, "attach even if the build IDs of image and running code differ")
	limitFlags(cmd, &o.Options)
	f.IntVar(&o.Buffer, "buffer", 1<<20, "bytes of the buffer between kernel and tool, a power of two and at least a page")
}

// sink is where hits go.
type sink struct {
	open  func() error // when probes are attached; or nil
	show  func(*recording.Hit) error
	line  *hits.Line                   // which may not have other names than hits; or nil
	close func(recording.Totals) error // after the last one; or nil
}

// trace runs definitions, which are all about one image.
func (s *settings) trace(cmd *cobra.Command, texts, words []string, o *traceOptions, sink *sink) (err error) {
	ctx := cmd.Context()
	x, running, defs, err := s.ready(ctx, texts, words, true, o)
	if err != nil {
		return err
	}
	ending := endprobes.New(ctx)
	defer func() { err = errors.Join(err, ending.Finish()) }()
	o.End = ending.End
	plans, spans, err := x.planned(ctx, defs, o)
	if err == nil {
		err = o.who.checkSites(plans)
	}
	if err != nil {
		return err
	}
	if sink.line != nil {
		if err := sink.line.Check(argumentsOf(plans)); err != nil {
			return usagef("--line: %w", err)
		}
	}
	open := func() (*tracer.Session, error) {
		if o.span {
			return tracer.OpenSpans(ctx, running, spans, o.Options)
		}
		return tracer.Open(ctx, running, plans, o.Options)
	}
	session, err := open()
	if o.who.fallBack(&o.Options, words, err) {
		session, err = open()
	}
	if err != nil {
		return err
	}
	s.reportCost(o.Cost)
	var child *launch.Command
	defer func() {
		if err = errors.Join(err, session.Close()); err == nil {
			err = child.Wait(ctx)
		}
	}()
	if sink.open != nil {
		if err := sink.open(); err != nil {
			return err
		}
	}
	var source recording.Source
	if o.Stack != 0 {
		source.Names = x.names(running)
		defer func() { err = errors.Join(err, source.Names.Close()) }()
	}
	child, totals, err := s.run(ctx, x, session, plans, spans, words, &o.who, func(h *tracer.Hit) error { return sink.show(source.Hit(h)) })
	if err == nil && sink.close != nil {
		err = sink.close(totals)
	}
	return err
}

// form returns how hits are printed.
func (s *settings) form(o *traceOptions) (*hits.Form, error) {
	f := &hits.Form{Format: s.format, Look: s.Look}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil { // what bpf_ktime_get_ns returns
		return nil, err
	}
	name, err := choose("time", o.clock, hits.Clocks, hits.Clocks)
	if err != nil {
		return nil, err
	}
	f.Clock = hits.NewClock(name, time.Now().Add(-time.Duration(now.Nano())))
	if o.line == "" {
		return f, nil
	}
	if s.format != "text" {
		return nil, usagef("--line is for --format text")
	}
	f.Line, err = hits.NewLine(o.line)
	return f, err
}

// argumentsOf returns the names of all arguments of plans.
func argumentsOf(plans []*plan.Plan) (names []string) {
	known := make(map[string]bool)
	for _, p := range plans {
		for i := range p.Sites {
			for k := range p.Sites[i].Args {
				if name := p.Sites[i].Args[k].Name; !known[name] {
					known[name] = true
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// ready parses definitions, which are all about one image, opens it, finds where it runs, and completes the options by that. Paths are
// those of the process that is traced, if it is one. Programs may sleep if sleep is set.
func (s *settings) ready(ctx context.Context, texts, words []string, sleep bool, o *traceOptions) (x *subject, running *instances.Running, defs []*probe.Definition, err error) {
	if len(texts) == 0 {
		return nil, nil, nil, errors.New("no definition; one looks like 'vfs_read file count'")
	}
	for _, t := range texts {
		def, err := s.parse(t)
		if err != nil {
			return nil, nil, nil, err
		}
		defs = append(defs, def)
		if a, b := def.Options, defs[0].Options; a.Exec != b.Exec || a.Module != b.Module {
			return nil, nil, nil, fmt.Errorf("%q and %q are about different images: trace one image at a time", texts[0], t)
		}
	}
	if s.exec == "" && s.vmlinux == "" && s.btf == "" && defs[0].Options.Exec == "" && defs[0].Options.Module == "" {
		s.exec = s.programOf(ctx, defs, words)
	}
	if s.exec, err = procfile.Path(o.who.pid, s.exec); err != nil {
		return nil, nil, nil, err
	}
	// Found first: for another kernel all answers would be wrong.
	if x, running, err = s.located(defs[0].Options, o.force, sleep, o.who.pid); err != nil {
		return nil, nil, nil, err
	}
	at := running.Target()
	if s.reads != "auto" {
		at.Reads = x.options.Target.Reads
	}
	if s.doubt == "" {
		x.options.Doubt = plan.DoubtMark // values are printed with the mark
	}
	x.options.Target, x.options.CountMissing, x.options.LargeRecords = at, true, true
	if err := o.who.options(&o.Options, words); err != nil {
		return nil, nil, nil, err
	}
	if o.Stack, err = stacksOf(o.stack, x.kernel); err != nil {
		return nil, nil, nil, err
	}
	o.Progress = screen.Counting("attaching")
	return x, running, defs, o.who.countFirst(ctx, x, defs)
}

// programOf returns the path of a command's program if a function of it is meant, and otherwise "": of the kernel then.
func (s *settings) programOf(ctx context.Context, defs []*probe.Definition, command []string) string {
	if len(command) == 0 {
		return ""
	}
	path, err := exec.LookPath(command[0]) // as launch.Start: a file of that name here does not run
	if err != nil {
		return ""
	}
	o := s.imageOptions(nil)
	img, err := dwarfloc.Open(path, &o)
	if err != nil {
		return ""
	}
	defer img.Close()
	for _, def := range defs {
		pattern, err := glob.Compile(def.Point.Function)
		if err != nil || def.Point.Function == "" {
			continue
		}
		if list, err := sites.List(ctx, img, sites.Selection{Functions: pattern, Source: def.Point.Source}); err == nil && list.Len() > 0 {
			return path
		}
	}
	return ""
}

// located opens the image of a definition, and finds where it runs. Paths are those of a process, unless pid is 0.
func (s *settings) located(o probe.Options, force, sleep bool, pid int) (x *subject, running *instances.Running, err error) {
	if o.Exec, err = procfile.Path(pid, o.Exec); err != nil {
		return nil, nil, err
	}
	if x, err = s.subject(&o); err != nil {
		return nil, nil, err
	}
	if pid != 0 && !x.kernel {
		if err := s.checkMapped(pid, x.path, force); err != nil {
			return nil, nil, err
		}
	}
	running, err = x.running(force, sleep)
	return x, running, err
}

// startTracing says where probes are, and starts the command, if there is one. The context that it returns ends with the command, or when
// another bound is reached.
func (s *settings) startTracing(
	ctx context.Context, x *subject, plans []*plan.Plan, spans []*plan.Span, attached []*instances.Attachment, who *target, words []string,
) (tracing context.Context, stop context.CancelFunc, child *launch.Command, err error) {
	for i, a := range attached {
		name := ""
		if len(spans) > 0 {
			if name = spans[i/2].Definition.String(); i%2 == 1 {
				name += ", where it ends"
			}
		}
		if err := x.reportAttached(s.reports(), plans[i], name, a); err != nil {
			return nil, nil, nil, err
		}
	}
	if tracing, stop, err = who.bounded(ctx); err != nil {
		return nil, nil, nil, err
	}
	if tracing, child, err = launch.Start(tracing, words); err != nil {
		stop()
	}
	return tracing, stop, child, err
}

func plansOf(ctx context.Context, img *dwarfloc.Image, defs []*probe.Definition, o plan.Options) ([]*plan.Plan, error) {
	plans := make([]*plan.Plan, len(defs))
	for i, def := range defs {
		var err error
		if plans[i], err = plan.New(ctx, img, def, o); err != nil {
			return nil, err
		}
	}
	return plans, nil
}

// planned returns the plans of definitions, and if whole runs are meant, the spans that they are of.
func (x *subject) planned(ctx context.Context, defs []*probe.Definition, o *traceOptions) (plans []*plan.Plan, spans []*plan.Span, err error) {
	if !o.span {
		plans, err = plansOf(ctx, x.img, defs, x.options)
		return plans, nil, err
	}
	o.Cost = new([2]time.Duration)
	for _, def := range defs {
		p, err := plan.NewSpan(ctx, x.img, def, x.options)
		if err != nil {
			return nil, nil, err
		}
		spans, plans = append(spans, p), append(plans, p.Begin, p.End)
	}
	return plans, spans, nil
}

// reportCost says what probes add to the duration of a run, if it is known.
func (s *settings) reportCost(c *[2]time.Duration) {
	if c == nil || c[1] == 0 {
		return
	}
	text := hits.TimeText(c[1])
	if least := hits.TimeText(c[0]); least != text {
		text = least + " to " + text
	}
	terminal.Fprintf(s.reports(), "the probes add about %s to each run\n", text)
}

var errEnough = errors.New("as many hits as were wanted")

// run hands hits to show until the command or the context ends, or another bound is reached. It returns
// the command, which may still run.
func (s *settings) run(ctx context.Context, x *subject, session *tracer.Session, plans []*plan.Plan, spans []*plan.Span, words []string, who *target, show func(*tracer.Hit) error) (child *launch.Command, totals recording.Totals, err error) {
	onlooker := x.lookOn(words, who)
	tracing, stop, child, err := s.startTracing(ctx, x, plans, spans, session.Attachments, who, words)
	if err != nil {
		return nil, totals, err
	}
	defer stop()
	defer func() { err = errors.Join(err, onlooker.close()) }()
	seen, unread := 0, 0
	err = session.Run(tracing, func(h *tracer.Hit) error {
		seen++
		for i := range h.Values {
			if v := &h.Values[i]; v.Lost && v.Fetched() {
				unread++
			}
		}
		if err := show(h); err != nil || seen != who.maxHits {
			return err
		}
		return errEnough
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	not, notErr := session.Unreported()
	totals.Lost, totals.Limited, totals.Missing, totals.Unpaired = not.Lost, not.Limited, not.Missing, not.Unpaired
	hits.PrintTotals(s.reports(), seen, &totals)
	if seen == 0 {
		onlooker.nothing(s, &not, child.Ended())
	}
	if unread > 0 {
		terminal.Fprintf(screen.Stderr, "%s could not be read at a hit (?): %s\n", screen.Count(unread, "value"), whyUnread(plans[0].Target))
	}
	return child, totals, errors.Join(err, notErr)
}

// whyUnread says why memory may not be read.
func whyUnread(t plan.Target) string {
	if t.Reads == prologue.ReadUser {
		return "there is no memory, or it is not resident, which --reads sleep reads from Linux 6.0 on"
	}
	return "there is no memory"
}
