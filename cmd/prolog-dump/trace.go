package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/terminal"
	"github.com/bpfprologue/bpfprologue/tracer"
)

func traceCommand(s *settings) *cobra.Command {
	var o tracer.Options
	var object string
	var force, span bool
	var who whose
	cmd := &cobra.Command{
		Use:   "trace 'FUNC ARG...'... | --object FILE [-- COMMAND...]",
		Short: "Attach everywhere and print each hit with its values",
		Long: `trace attaches a small program at every site of one or more definitions, and
prints a line for each hit: time, task, place, and the arguments by name, as their
types say. It ends with Ctrl-C, or with COMMAND when there is one. Sites that the
kernel refuses are listed first, and hits that were lost last. It needs root, or CAP_BPF
and CAP_PERFMON (for the kernel CAP_SYSLOG too), and Linux 5.15.

With COMMAND the hits are those of it and of all that it starts, directly or not; with
--all and without COMMAND those of all processes of the machine. In both cases the
tool's own hits are left out. --duration and --max-hits end the tracing, not COMMAND.

With --span a line is a whole run, from where a function begins to where it ends,
with its result and its duration; inlined bodies too.

--format perfetto writes a file for https://ui.perfetto.dev and chrome://tracing, in
which whole runs have their durations.

Each definition is one argument here: quote it. With --object the programs of an
object file run instead, at the definitions that are their section names; what they do
with their arguments is theirs.`,
		Example: `  sudo prolog-dump -k vmlinux trace 'vfs_read file->f_path.dentry->d_name.name:string count'
  sudo prolog-dump -k vmlinux trace --span 'vfs_read count'
  sudo prolog-dump -x ./server trace --span --format perfetto -o trace.json 'walk n->name:string i' -- ./server
  sudo prolog-dump -x ./server trace 'walk n->name:string i' -- ./server`,
		ValidArgsFunction: s.completeQuoted,
		RunE: func(cmd *cobra.Command, args []string) error {
			var command []string
			if n := cmd.ArgsLenAtDash(); n >= 0 {
				args, command = args[:n], args[n:]
			}
			switch {
			case object != "" && len(args) > 0:
				return fmt.Errorf("%q: with --object the definitions are those of %s", args[0], object)
			case object != "":
				return s.runObject(cmd, object, command, force, who.pid)
			case len(args) == 0:
				return errors.New("no definition; one looks like 'vfs_read file count'")
			}
			return s.trace(cmd, args, command, force, span, who, o)
		},
	}
	s.use(cmd, []string{"text", "json", "perfetto"}, join(planFlags, []string{"attachable", "output", "color"})...)
	cmd.Flags().StringVar(&object, "object", "", "object file with the programs to run")
	cmd.Flags().BoolVar(&span, "span", false, "print whole runs of functions, with results and durations")
	who.flags(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "attach even if the build IDs of image and running code differ")
	cmd.Flags().IntVar(&o.Buffer, "buffer", 1<<20, "bytes of the buffer between kernel and tool, a power of two and at least a page")
	return cmd
}

// trace runs definitions, which are all about one image.
func (s *settings) trace(cmd *cobra.Command, texts, command []string, force, span bool, who whose, o tracer.Options) (err error) {
	defs := make([]*probe.Definition, len(texts))
	for i, t := range texts {
		var err error
		if defs[i], err = probe.Parse(t); err != nil {
			return err
		}
		if a, b := defs[i].Options, defs[0].Options; a.Exec != b.Exec || a.Module != b.Module {
			return fmt.Errorf("%q and %q are about different images: trace one image at a time", texts[0], t)
		}
	}
	if s.exec, err = pathOf(who.pid, s.exec); err != nil {
		return err
	}
	about := defs[0].Options
	if about.Exec, err = pathOf(who.pid, about.Exec); err != nil {
		return err
	}
	x, err := s.subject(&about)
	if err != nil {
		return err
	}
	if err := who.options(&o, command); err != nil {
		return err
	}
	// Checked first: for another kernel all answers would be wrong.
	running, err := x.running(force)
	if err != nil {
		return err
	}
	at := running.Target()
	if s.reads != "auto" {
		at.Reads = x.options.Target.Reads
	}
	x.options.Target = at
	ctx := cmd.Context()
	o.Progress = showAttaching()
	ending := &ending{ctx: ctx}
	defer func() { err = errors.Join(err, ending.finish()) }()
	o.End = ending.end
	var plans []*plan.Plan
	var open func() (*tracer.Session, error)
	if span {
		var spans []*plan.Span
		for _, def := range defs {
			p, err := plan.NewSpan(ctx, x.img, def, x.options)
			if err != nil {
				return err
			}
			spans, plans = append(spans, p), append(plans, p.Begin, p.End)
		}
		open = func() (*tracer.Session, error) { return tracer.OpenSpans(ctx, running, spans, o) }
	} else {
		if plans, err = plansOf(ctx, x.img, defs, x.options); err != nil {
			return err
		}
		open = func() (*tracer.Session, error) { return tracer.Open(ctx, running, plans, o) }
	}
	session, err := open()
	if errors.Is(err, tracer.ErrNoTree) {
		terminal.Fprintf(stderr, "all processes are traced, not only %s: %v\n", command[0], err)
		o.PID, o.Descendants = 0, false
		session, err = open()
	}
	if err != nil {
		return err
	}
	child, err := s.run(ctx, cmd.OutOrStdout(), x, session, plans, command, who)
	if err = errors.Join(err, session.Close()); err != nil {
		return err
	}
	return child.wait(ctx)
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

var errEnough = errors.New("as many hits as were wanted")

// run prints hits until the command or the context ends, or another bound is reached. It returns the command,
// which may still run.
func (s *settings) run(ctx context.Context, w io.Writer, x *subject, session *tracer.Session, plans []*plan.Plan, words []string, who whose) (*command, error) {
	for i, a := range session.Attachments {
		if err := x.reportAttached(stderr, plans[i], a); err != nil {
			return nil, err
		}
	}
	tracing, stop, err := who.bounded(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	tracing, child, err := start(tracing, words)
	if err != nil {
		return nil, err
	}
	hits := 0
	show := s.printHit
	switch s.format {
	case "json":
		show = printHitJSON
	case "perfetto":
		p := perfetto{w: w}
		show = func(_ io.Writer, h *tracer.Hit) error { return p.hit(h) }
		defer p.end()
	}
	err = session.Run(tracing, func(h *tracer.Hit) error {
		hits++
		if err := show(w, h); err != nil || hits != who.maxHits {
			return err
		}
		return errEnough
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	lost, lostErr := session.Lost()
	unpaired, unpairedErr := session.Unpaired()
	terminal.Fprintf(stderr, "%s, %d lost%s\n", count(hits, "hit"), lost, unpairedText(&unpaired))
	return child, errors.Join(err, lostErr, unpairedErr)
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
