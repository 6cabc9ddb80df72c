package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/internal/endprobes"
	"github.com/bpfprologue/bpfprologue/internal/hits"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/internal/usage"
	"github.com/bpfprologue/bpfprologue/stacks"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// statOptions are what stat counts, and how it shows that.
type statOptions struct {
	tracer.SummaryOptions
	log2, linear []string
	interval     time.Duration
	total        bool
	top          int
	sort         string
}

func statCommand(s *settings) *cobra.Command {
	var o traceOptions
	var what statOptions
	cmd := &cobra.Command{
		Use:   "stat 'FUNC ARG...'... [-- COMMAND...]",
		Short: "Count hits in the kernel: sums and histograms of arguments, by site, task, argument...",
		Long: `stat counts the hits of definitions in the kernel: it is for functions that run too
often for trace. It tells hits apart by what --by lists: site, function, caller, stack,
comm, pid, tid, or arguments of the definition. --sum prints an argument's sum, minimum,
mean and maximum, --hist a histogram by powers of two, --linear one with equal steps. An
argument that was not fetched at a hit is "?", and is not part of sums.

With --span whole runs are counted, from where a function begins to where it ends:
$duration is one more argument, which --sum and --hist have where nothing is named.
Runs that did not end, or that an exception left, are rows of their own. What the probes
themselves add to each run is measured and printed.

With --by stack, --format folded prints what flame graphs are made of: a line for each
stack, from the outermost function to the innermost, and its hits. --format pprof -o FILE
writes a profile for go tool pprof, with functions, lines, sums, and other keys as labels.

On a terminal the table is drawn anew each second, with rates. Elsewhere it is printed at
the end. With --interval, what was counted in each interval is printed, with its rate, or
with --total all until then; all is printed at the end in any case. --sort orders the
rows. It ends with Ctrl-C, or with COMMAND. It needs what trace needs.`,
		Example: `  prolog-dump -x ./server stat 'walk n->name:string i' --by name --sum i
  prolog-dump stat 'kmalloc size' --by caller --sum size --top 20
  prolog-dump stat 'vfs_read count' --by comm --hist count --interval 5s
  prolog-dump stat 'vfs_read count' --by comm --sum count --sort mean --top 10
  prolog-dump -x ./server stat --span 'walk n->name:string' --by name
  prolog-dump -x ./server stat --span 'walk i' --if '$duration > 1ms && $retval != 0'
  prolog-dump -x ./server stat 'walk n->name:string' --by stack --format folded | flamegraph.pl`,
		RunE: func(cmd *cobra.Command, args []string) error {
			args, command, err := o.who.Words(args, cmd.ArgsLenAtDash())
			if err != nil {
				return err
			}
			if s.doubt == "" && len(what.Totals)+len(what.log2)+len(what.linear) > 0 {
				s.doubt = "missing" // a sum leaves doubtful numbers out
			}
			if o.span && len(what.Totals)+len(what.log2)+len(what.linear) == 0 {
				what.Totals, what.log2 = []string{"$duration"}, []string{"$duration"}
			}
			o.keys = what.By
			if err := what.histograms(); err != nil {
				return err
			}
			if err := hits.CheckSort(what.sort, &what.SummaryOptions); err != nil {
				return usage.Errorf("%w", err)
			}
			if (s.format == "folded" || s.format == "pprof") && !slices.Contains(what.By, "stack") {
				return fmt.Errorf("--format %s needs --by stack", s.format)
			}
			if s.format == "pprof" && (what.interval > 0 || s.file == nil) {
				return usage.Errorf("--format pprof is one profile, in a file: -o FILE, without --interval")
			}
			return s.stat(cmd, args, command, &what, &o)
		},
	}
	s.use(cmd, join(textOrJSON, []string{"folded", "pprof"}), join(planFlags, []string{"attachable", "output", "color", "quiet", "verbose"})...)
	s.severalImages(cmd)
	f := cmd.Flags()
	f.StringSliceVar(&what.By, "by", nil, "what to tell hits apart by: site, function, caller, stack, comm, pid, tid, or names of arguments")
	f.StringSliceVar(&what.Totals, "sum", nil, "arguments to add up, with minimum, mean and maximum")
	f.Var((*texts)(&what.log2), "hist", "argument for a histogram by powers of two; may be repeated")
	f.Var((*texts)(&what.linear), "linear", "argument for a histogram with equal steps, as ARG:LOW:HIGH:STEP, or $duration:0:1ms:50us; may be repeated")
	f.DurationVar(&what.interval, "interval", 0, "print what was counted in each interval, such as 1s, and its rate")
	f.BoolVar(&what.total, "total", false, "print all that was counted, not only in the last interval")
	f.IntVar(&what.top, "top", 0, "print only so many rows, the first ones")
	f.StringVar(&what.sort, "sort", "", "order by a column: hits, rate, ARG.sum, ARG.min, ARG.mean, ARG.max or one of --by; numbers from the largest, or, with - before it, from the smallest")
	f.IntVar(&what.MaxKeys, "max-keys", 0, "room for so many different keys (default: what 64 MiB hold, from 1024 to 16384)")
	f.BoolVar(&o.span, "span", false, "whole runs of functions: --sum, --hist and --linear know $duration, and take it without a name of an argument")
	stackFlag(cmd, &o.stack)
	limitFlags(cmd, &o.Options)
	targetFlags(cmd, &o.who)
	f.BoolVar(&o.force, "force", false, "attach even if the build IDs of image and running code differ")
	return cmd
}

// histograms parses the flags of histograms.
func (o *statOptions) histograms() error {
	for _, arg := range o.log2 {
		o.Histograms = append(o.Histograms, tracer.HistogramOf{Arg: arg})
	}
	for _, text := range o.linear {
		parts := strings.Split(text, ":")
		if len(parts) < 4 {
			return fmt.Errorf("--linear %s: it looks like size:0:4096:256, or $duration:0:1ms:50us", text)
		}
		n := len(parts) - 3
		h := tracer.HistogramOf{Arg: strings.Join(parts[:n], ":")}
		for i, to := range []*int64{&h.Low, &h.High, &h.Step} {
			var err error
			if *to, err = strconv.ParseInt(parts[n+i], 0, 64); err == nil {
				continue
			}
			d, isTime := time.ParseDuration(parts[n+i])
			if h.Arg != "$duration" || isTime != nil {
				return fmt.Errorf("--linear %s: %w", text, err)
			}
			*to = int64(d)
		}
		if h.Step == 0 {
			return fmt.Errorf("--linear %s: a step of 0", text)
		}
		o.Histograms = append(o.Histograms, h)
	}
	return nil
}

// stat counts the hits of definitions.
func (s *settings) stat(cmd *cobra.Command, texts, command []string, what *statOptions, o *traceOptions) (err error) {
	ctx := cmd.Context()
	// Programs that may sleep read what is not resident, but take no stacks.
	parts, err := s.ready(ctx, texts, command, !slices.Contains(what.By, "stack"), o)
	if err != nil {
		return err
	}
	ending := endprobes.New(ctx)
	defer func() { err = errors.Join(err, ending.Finish()) }()
	o.End = ending.End
	if err := parts.plan(ctx, o); err != nil {
		return s.AlsoThere(err)
	}
	names := parts.names()
	defer func() { err = errors.Join(err, names.Close()) }()
	frames := make(map[string][]stacks.Frame) // by their text
	what.CallerText, what.StackText = names.CallerText, func(st *tracer.Stack) string {
		list := names.Frames(st)
		text := stacks.Folded(list)
		frames[text] = list
		return text
	}
	c := &hits.Counting{Out: cmd.OutOrStdout(), Format: s.format, Interval: what.interval, Total: what.total, Frames: frames}
	c.View = hits.View{Options: &what.SummaryOptions, Top: what.top, Sort: what.sort, Images: parts.share()}
	if s.format == "pprof" {
		c.Out = s.file // which no terminal shows
	}
	c.Summaries, err = parts.summaries(ctx, what, o)
	if o.who.FallBack(&o.Options, command, err) {
		c.Summaries, err = parts.summaries(ctx, what, o)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll(c.Summaries)) }()
	s.reportCost(o.Cost)
	for i, p := range parts {
		if err := s.reportPart(p, c.Summaries[i].Attachments); err != nil {
			return err
		}
	}
	onlooker := o.who.LookOn(parts.files(), command)
	defer func() { err = errors.Join(err, onlooker.Close()) }()
	counting, stop, child, err := s.start(ctx, &o.who, command)
	if err != nil {
		return err
	}
	defer stop()
	if o.Cost != nil {
		c.View.Cost = o.Cost[1]
	}
	last, err := c.Show(counting)
	if err != nil {
		return err
	}
	not, err := c.Unreported()
	if len(last) == 0 {
		onlooker.Nothing(s.reports(), &not, child.Ended())
		not.Without = 0 // that is said
	}
	hits.PrintUncounted(s.reports(), &not, o.span, o.Sample)
	if why := hits.WhyUncounted(parts.plans(), last, &not); why != "" {
		terminal.Fprintf(s.reports(), "%s\n", why)
	}
	return errors.Join(err, child.Wait(ctx))
}

// summaries opens a summary for each image.
func (all parts) summaries(ctx context.Context, what *statOptions, o *traceOptions) (out []*tracer.Summary, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll(out))
			out = nil
		}
	}()
	for _, p := range all {
		var cost [2]time.Duration
		counted := what.SummaryOptions
		counted.Stack, counted.Spans = p.stack, p.spans
		plans := p.plans
		if o.span {
			plans = nil
		}
		s, err := tracer.OpenSummary(ctx, p.running, plans, counted, p.options(o, &cost))
		if err != nil {
			if len(all) > 1 {
				err = fmt.Errorf("%s: %w", p.x.img.Path(), err)
			}
			return out, err
		}
		out = append(out, s)
		o.addCost(cost)
	}
	what.Spans = all[0].spans // which says that rows are of runs
	return out, nil
}
