package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/endprobes"
	"github.com/bpfprologue/bpfprologue/internal/hits"
	"github.com/bpfprologue/bpfprologue/internal/launch"
	"github.com/bpfprologue/bpfprologue/internal/procfile"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/internal/usage"
	"github.com/bpfprologue/bpfprologue/internal/whose"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/recording"
	"github.com/bpfprologue/bpfprologue/tracer"
)

func traceCommand(s *settings) *cobra.Command {
	var o traceOptions
	var object objectOptions
	var input, exportTo string
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
which whole runs have their durations. --otlp sends hits and runs to what collects
telemetry.

Each definition is one argument: quote it. -x and -k may be repeated, also for programs
and a kernel together: each definition is about the image before it, and all hits are
one stream.

With --object the programs of an object file run instead, at the definitions that are
their section names: hits for which a program returns something else than 0 are printed,
and at the end its maps and variables, by their types. --set sets these before.`,
		Example: `  sudo prolog-dump -k vmlinux trace 'vfs_read file->f_path.dentry->d_name.name:string count'
  sudo prolog-dump -k vmlinux trace --span 'vfs_read count'
  sudo prolog-dump -x ./server trace --span --format perfetto -o trace.json 'walk n->name:string i' -- ./server
  sudo prolog-dump -x ./server trace 'walk n->name:string i' -- ./server
  sudo prolog-dump -x ./server trace --span --otlp http://localhost:4318 'walk i' -- ./server
  sudo prolog-dump trace -x ./server 'walk i' -k vmlinux 'tcp_sendmsg size' -- ./server`,
		ValidArgsFunction: s.completeQuoted,
		RunE: func(cmd *cobra.Command, args []string) error {
			args, command, err := o.who.Words(args, cmd.ArgsLenAtDash())
			if err != nil {
				return err
			}
			switch {
			case exportTo != "" && (input != "" || object.object != "" || s.format != "text" || o.line != ""):
				return usage.Errorf("--otlp is for hits as they come: it goes with none of -i, --object, --format and --line")
			case input != "" && (object.object != "" || len(args) > 0 || command != nil):
				return errors.New("-i prints a recording: there is nothing to attach or to run")
			case input != "":
				if other := otherFlag(cmd, "input", "format", "output", "color", "quiet", "verbose", "time", "line"); other != "" {
					return usage.Errorf("-i prints a recording as it is: --%s is for tracing", other)
				}
				return s.replay(cmd.OutOrStdout(), input, &o)
			case object.object != "" && len(args) > 0:
				return fmt.Errorf("%q: with --object the definitions are those of %s", args[0], object.object)
			case object.object != "" && !o.who.Simple():
				return usage.Errorf("--object takes one --pid, and no --comm, --uid, --cgroup, --container or --pod")
			case object.object != "":
				object.traceOptions = o
				return s.runObject(cmd, &object, command)
			}
			for _, name := range []string{"set", "samples", "interval"} {
				if cmd.Flags().Changed(name) {
					return fmt.Errorf("--%s is for --object", name)
				}
			}
			if exportTo != "" {
				return s.export(cmd, args, command, &o, exportTo)
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
	s.severalImages(cmd)
	objectFlags(cmd, &object)
	cmd.Flags().StringVarP(&input, "input", "i", "", "print the hits of a file that record has written; no image is needed")
	traceFlags(cmd, &o)
	cmd.Flags().StringVar(&exportTo, "otlp", "", "print nothing, but send hits as log records, or with --span runs as spans, by OpenTelemetry's protocol: to an HTTP endpoint, as http://localhost:4318, or to a file, as lines of JSON")
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
	clock, line string   // of trace
	shown       bool     // hits are shown with their values, not counted
	keys        []string // of stat
	who         whose.Target
}

// traceFlags are the flags of trace and record.
func traceFlags(cmd *cobra.Command, o *traceOptions) {
	f := cmd.Flags()
	f.BoolVar(&o.span, "span", false, "whole runs of functions, with results and durations")
	stackFlag(cmd, &o.stack)
	targetFlags(cmd, &o.who)
	f.IntVar(&o.who.MaxHits, "max-hits", 0, "end after so many hits")
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

// trace runs definitions.
func (s *settings) trace(cmd *cobra.Command, texts, words []string, o *traceOptions, sink *sink) (err error) {
	ctx := cmd.Context()
	o.shown = true
	parts, err := s.ready(ctx, texts, words, true, o)
	if err != nil {
		return err
	}
	ending := endprobes.New(ctx)
	defer func() { err = errors.Join(err, ending.Finish()) }()
	o.End = ending.End
	if err := parts.plan(ctx, o); err != nil {
		return s.AlsoThere(err)
	}
	if sink.line != nil {
		if err := sink.line.Check(argumentsOf(parts.plans())); err != nil {
			return usage.Errorf("--line: %w", err)
		}
	}
	sessions, err := parts.open(ctx, o)
	if o.who.FallBack(&o.Options, words, err) {
		sessions, err = parts.open(ctx, o)
	}
	if err != nil {
		return err
	}
	s.reportCost(o.Cost)
	var child *launch.Command
	defer func() {
		if err = errors.Join(err, closeAll(sessions)); err == nil {
			err = child.Wait(ctx)
		}
	}()
	if sink.open != nil {
		if err := sink.open(); err != nil {
			return err
		}
	}
	var source recording.Source
	if o.stack != "" || parts.symbols() {
		source.Names = parts.names()
		defer func() { err = errors.Join(err, source.Names.Close()) }()
	}
	child, totals, err := s.run(ctx, parts, sessions, words, &o.who, func(h *tracer.Hit) error { return sink.show(source.Hit(h)) })
	if err == nil && sink.close != nil {
		err = sink.close(totals)
	}
	return err
}

// otherFlag returns a flag that the user has set and that is none of some, or "".
func otherFlag(cmd *cobra.Command, known ...string) (other string) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(known, f.Name) {
			other = f.Name
		}
	})
	return other
}

// form returns how hits are printed.
func (s *settings) form(o *traceOptions) (*hits.Form, error) {
	f := &hits.Form{Format: s.format, Look: s.Look}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil { // what bpf_ktime_get_ns returns
		return nil, err
	}
	name, err := usage.Choose("time", o.clock, hits.Clocks, hits.Clocks)
	if err != nil {
		return nil, err
	}
	f.Clock = hits.NewClock(name, time.Now().Add(-time.Duration(now.Nano())))
	if o.line == "" {
		return f, nil
	}
	if s.format != "text" {
		return nil, usage.Errorf("--line is for --format text")
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

// located opens the image of a definition, and finds where it runs. Paths are those of a process, unless there are none.
func (s *settings) located(o probe.Options, force, sleep bool, pids []int) (x *subject, running *instances.Running, err error) {
	if x, err = s.subject(&o); err != nil {
		return nil, nil, err
	}
	if !x.kernel {
		notes, err := procfile.Check(pids, x.path, force)
		for _, n := range notes {
			s.WarnOnce(n)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	running, err = x.running(force, sleep)
	return x, running, err
}

// reportPart says where the probes of one image are.
func (s *settings) reportPart(p *part, attached []*instances.Attachment) error {
	for i, a := range attached {
		name := ""
		if len(p.spans) > 0 {
			if name = p.spans[i/2].Definition.String(); i%2 == 1 {
				name += ", where it ends"
			}
		}
		if err := p.x.reportAttached(s.reports(), p.plans[i], name, a); err != nil {
			return err
		}
	}
	return nil
}

// start starts the command, if there is one. The context that it returns ends with the command, or when another bound is reached.
func (s *settings) start(ctx context.Context, who *whose.Target, words []string) (tracing context.Context, stop context.CancelFunc, child *launch.Command, err error) {
	if tracing, stop, err = who.Bounded(ctx); err != nil {
		return nil, nil, nil, err
	}
	if tracing, child, err = launch.Start(tracing, words); err != nil {
		stop()
	}
	return tracing, stop, child, err
}

// reportCost says what probes add to the duration of a run, if it is known.
func (s *settings) reportCost(c *[2]time.Duration) {
	if c == nil || c[1] == 0 {
		return
	}
	text := "about " + hits.TimeText(c[1])
	if least := hits.TimeText(c[0]); least != hits.TimeText(c[1]) {
		text = "from " + least + " to " + text
	}
	terminal.Fprintf(s.reports(), "the probes add %s to each run\n", text)
}

var errEnough = errors.New("as many hits as were wanted")

// run hands hits to show until the command or the context ends, or another bound is reached. It returns
// the command, which may still run.
func (s *settings) run(ctx context.Context, parts parts, sessions []*tracer.Session, words []string, who *whose.Target, show func(*tracer.Hit) error) (child *launch.Command, totals recording.Totals, err error) {
	for i, p := range parts {
		if err := s.reportPart(p, sessions[i].Attachments); err != nil {
			return nil, totals, err
		}
	}
	onlooker := who.LookOn(parts.files(), words)
	defer func() { err = errors.Join(err, onlooker.Close()) }()
	tracing, stop, child, err := s.start(ctx, who, words)
	if err != nil {
		return nil, totals, err
	}
	defer stop()
	seen, unread, elsewhere := 0, 0, false
	without := make(map[string]uint64) // an end, by the outcome
	err = sessions[0].Run(tracing, func(h *tracer.Hit) error {
		if seen++; h.Outcome != "" {
			without[h.Outcome]++
		}
		for i := range h.Values {
			v := &h.Values[i]
			if v.Lost && v.Fetched() {
				unread++
			}
			elsewhere = elsewhere || hits.OfOther(v.Argument)
		}
		for i := range h.Results {
			elsewhere = elsewhere || hits.OfOther(h.Results[i].Argument)
		}
		if err := show(h); err != nil || seen != who.MaxHits {
			return err
		}
		return errEnough
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	not, notErr := sessions[0].Unreported()
	totals.Lost, totals.Limited, totals.Missing, totals.Unpaired = not.Lost, not.Limited, not.Missing, not.Unpaired
	if u := &totals.Unpaired; len(without) > 0 { // those have lines of their own
		u.Begins -= min(u.Begins, without["began again"])
		u.Open -= min(u.Open, without["not ended"])
	}
	hits.PrintTotals(s.reports(), seen, &totals)
	if seen == 0 {
		onlooker.Nothing(s.reports(), &not, child.Ended())
	}
	if unread > 0 {
		terminal.Fprintf(screen.Stderr, "%s could not be read at a hit (?): %s\n", screen.Count(unread, "value"), hits.WhyUnread(parts[0].plans[0].Target))
	}
	if elsewhere {
		terminal.Fprintf(s.reports(), "%s\n", hits.WhyElsewhere)
	}
	return child, totals, errors.Join(err, notErr)
}
