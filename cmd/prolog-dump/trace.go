package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/terminal"
	"github.com/bpfprologue/bpfprologue/tracer"
)

func traceCommand(s *settings) *cobra.Command {
	var o tracer.Options
	var object objectOptions
	var force, span bool
	cmd := &cobra.Command{
		Use:   "trace 'FUNC ARG...'... | --object FILE [-- COMMAND...]",
		Short: "Attach everywhere and print each hit with its values",
		Long: `trace attaches a small program at every site of one or more definitions, and
prints a line for each hit: time, task, place, and the arguments by name, as their
types say. It ends with Ctrl-C, or with COMMAND when there is one. Sites that the
kernel refuses are listed first, and hits that were lost last. It needs root, or CAP_BPF
and CAP_PERFMON (for the kernel CAP_SYSLOG too), and Linux 5.15.

With --span a line is a whole run, from where a function begins to where it ends,
with its result and its duration; inlined bodies too.

Each definition is one argument here: quote it. With --object the programs of an
object file run instead, at the definitions that are their section names: hits for
which a program returns something else than 0 are printed, and in the end its maps and
variables, by their types. --set sets those before.`,
		Example: `  sudo prolog-dump -k vmlinux trace 'vfs_read file->f_path.dentry->d_name.name:string count'
  sudo prolog-dump -k vmlinux trace --span 'vfs_read count'
  sudo prolog-dump -x ./server trace 'walk n->name:string i' -- ./server`,
		ValidArgsFunction: s.completeQuoted,
		RunE: func(cmd *cobra.Command, args []string) error {
			var command []string
			if n := cmd.ArgsLenAtDash(); n >= 0 {
				args, command = args[:n], args[n:]
			}
			switch {
			case object.object != "" && len(args) > 0:
				return fmt.Errorf("%q: with --object the definitions are those of %s", args[0], object.object)
			case object.object != "":
				object.Options, object.force = o, force
				return s.runObject(cmd, &object, command)
			}
			for _, name := range []string{"set", "samples", "interval"} {
				if cmd.Flags().Changed(name) {
					return fmt.Errorf("--%s is for --object", name)
				}
			}
			return s.trace(cmd, args, command, force, span, o)
		},
	}
	s.use(cmd, textOrJSON, join(planFlags, []string{"attachable", "output", "color"})...)
	objectFlags(cmd, &object)
	cmd.Flags().BoolVar(&span, "span", false, "print whole runs of functions, with results and durations")
	cmd.Flags().IntVar(&o.PID, "pid", 0, "trace one process")
	cmd.Flags().BoolVar(&force, "force", false, "attach even if the build IDs of image and running code differ")
	limitFlags(cmd, &o)
	cmd.Flags().IntVar(&o.Buffer, "buffer", 1<<20, "bytes of the buffer between kernel and tool, a power of two and at least a page")
	return cmd
}

// trace runs definitions, which are all about one image.
func (s *settings) trace(cmd *cobra.Command, texts, command []string, force, span bool, o tracer.Options) (err error) {
	x, running, defs, err := s.ready(texts, force)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	o.Progress = showAttaching()
	ending := &ending{ctx: ctx}
	defer func() { err = errors.Join(err, ending.finish()) }()
	o.End = ending.end
	var plans []*plan.Plan
	var session *tracer.Session
	if span {
		var spans []*plan.Span
		for _, def := range defs {
			p, err := plan.NewSpan(ctx, x.img, def, x.options)
			if err != nil {
				return err
			}
			spans, plans = append(spans, p), append(plans, p.Begin, p.End)
		}
		session, err = tracer.OpenSpans(ctx, running, spans, o)
	} else {
		if plans, err = plansOf(ctx, x.img, defs, x.options); err != nil {
			return err
		}
		session, err = tracer.Open(ctx, running, plans, o)
	}
	if err != nil {
		return err
	}
	err = s.run(ctx, cmd.OutOrStdout(), x, session, plans, command)
	return errors.Join(err, session.Close())
}

// ready parses definitions, which are all about one image, opens it, and finds where it runs.
func (s *settings) ready(texts []string, force bool) (x *subject, running *instances.Running, defs []*probe.Definition, err error) {
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
	if x, err = s.subject(&defs[0].Options); err != nil {
		return nil, nil, nil, err
	}
	// Checked first: for another kernel all answers would be wrong.
	if running, err = x.running(force); err != nil {
		return nil, nil, nil, err
	}
	at := running.Target()
	if s.reads != "auto" {
		at.Reads = x.options.Target.Reads
	}
	x.options.Target, x.options.CountMissing = at, true
	return x, running, defs, nil
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

// run prints hits until the command or the context ends.
func (s *settings) run(ctx context.Context, w io.Writer, x *subject, session *tracer.Session, plans []*plan.Plan, command []string) error {
	for i, a := range session.Attachments {
		if err := x.reportAttached(stderr, plans[i], a); err != nil {
			return err
		}
	}
	tracing, child, err := start(ctx, command)
	if err != nil {
		return err
	}
	hits := 0
	show := s.printHit
	if s.format == "json" {
		show = printHitJSON
	}
	err = session.Run(tracing, func(h *tracer.Hit) error {
		hits++
		return show(w, h)
	})
	lost, lostErr := session.Lost()
	limited, limitedErr := session.Limited()
	unpaired, unpairedErr := session.Unpaired()
	missing, missingErr := session.Missing()
	terminal.Fprintf(stderr, "%s, %d lost%s%s%s\n", count(hits, "hit"), lost, limitedText(limited), missingText(missing), unpairedText(&unpaired))
	child(ctx)
	return errors.Join(err, lostErr, limitedErr, unpairedErr, missingErr)
}

// missingText says how many hits were not seen since their condition could not be computed.
func missingText(n uint64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d without what the condition needs", n)
}

// unpairedText names what was not one run.
func unpairedText(u *tracer.Unpaired) string {
	text := ""
	for _, c := range []struct {
		n    uint64
		what string
	}{
		{u.Ends, "ended whose beginning was not seen"}, {u.Begins, "began again whose end was not seen"},
		{u.Open, "have not ended"}, {u.Full, "had no room"},
	} {
		if c.n > 0 {
			text += fmt.Sprintf("; %d %s", c.n, c.what)
		}
	}
	return text
}

// start starts a command, if there is one. The context that it returns ends with the
// command, or with ctx; report prints the command's exit error, if any.
func start(ctx context.Context, command []string) (running context.Context, report func(context.Context), err error) {
	if len(command) == 0 {
		return ctx, func(context.Context) {}, nil
	}
	running, stop := context.WithCancelCause(ctx)
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	lend(c)
	if err := c.Start(); err != nil {
		stop(err)
		return nil, nil, err
	}
	go func() { stop(c.Wait()) }()
	return running, func(ctx context.Context) {
		if err := context.Cause(running); ctx.Err() == nil && !errors.Is(err, context.Canceled) {
			terminal.Fprintf(stderr, "%s: %v\n", command[0], err)
		}
	}, nil
}

func (s *settings) printHit(w io.Writer, h *tracer.Hit) error {
	var b strings.Builder
	terminal.Fprintf(&b, "%12.6f  %-15s %7d  %s", h.Time.Seconds(), h.Comm, h.TID, s.styled(rolePlace, h.Plan.Sites[h.Site].String()))
	for i := range h.Values {
		terminal.Fprintf(&b, "  %s=%s", s.styled(roleName, h.Values[i].Name), h.Values[i].String())
	}
	if h.Span != nil {
		for i := range h.Results {
			terminal.Fprintf(&b, "  %s=%s", s.styled(roleName, h.Results[i].Name), h.Results[i].String())
		}
		terminal.Fprintf(&b, "  %s", s.styledf(roleFound, "%v", h.Duration))
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}

func printHitJSON(w io.Writer, h *tracer.Hit) error {
	type value struct {
		Name  string `json:"name"`
		Type  string `json:"type"`
		Value any    `json:"value,omitempty"` // as plan.Value.Any returns it
		Lost  bool   `json:"lost,omitempty"`
	}
	values := func(list []plan.Value) []value {
		out := make([]value, len(list))
		for i := range list {
			v := &list[i]
			out[i] = value{Name: v.Name, Type: typeText(v.Argument), Value: v.Any(), Lost: v.Lost}
		}
		return out
	}
	site := &h.Plan.Sites[h.Site]
	out := struct {
		Time  float64 `json:"time"` // seconds
		Comm  string  `json:"comm"`
		PID   int     `json:"pid"`
		TID   int     `json:"tid"`
		Event string  `json:"event,omitempty"`
		Func  string  `json:"function"`
		Name  string  `json:"qualified,omitempty"`
		Place string  `json:"place"`
		Addr  uint64  `json:"address"`
		Again bool    `json:"refires,omitempty"` // the site's: perhaps no run began, or ended
		Args  []value `json:"args"`

		Results  []value  `json:"results,omitempty"`
		Duration *float64 `json:"duration,omitempty"` // seconds
		End      string   `json:"end,omitempty"`      // where the run ended
	}{h.Time.Seconds(), h.Comm, h.PID, h.TID, h.Plan.Definition.Event, site.Function, qualifiedJSON(site.Function, functionName(site.Site)), site.SymbolOffset(), site.Addr, site.Again, values(h.Values), nil, nil, ""}
	if h.Span != nil {
		out.Results = values(h.Results)
		seconds := h.Duration.Seconds()
		out.Duration, out.End = &seconds, h.Span.End.Sites[h.End].SymbolOffset()
	}
	return printObject(w, out)
}
