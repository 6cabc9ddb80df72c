package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/attachable"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/export"
	"github.com/bpfprologue/bpfprologue/glob"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/endprobes"
	"github.com/bpfprologue/bpfprologue/internal/heap"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/listing"
	"github.com/bpfprologue/bpfprologue/internal/origin"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/usage"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// settings are the flags that commands share.
type settings struct {
	origin.Finder
	named []named // the images of flags in their order, for verbs that take several

	// Of plans.
	condition, ifMissing string
	ways, missing, doubt string
	reads, convention    string
	filter               string
	sources              []string
	stringBytes          int
	move                 bool

	// Of what is printed.
	format                           string
	formats                          map[*cobra.Command][]string // see use
	quiet                            bool                        // of what it does; errors and warnings are printed
	verbose                          bool                        // which sites have probes, and where the arguments are
	sites, explain, attachable, cost bool

	answer
}

func rootCommand(s *settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "prolog-dump [flags] 'FUNC ARG...'...",
		Short: "Show where a function's arguments are at every place it runs, and the BPF that fetches them",
		Long: `prolog-dump reads a probe definition, finds every place in an image where a
matching function runs, inlined or not, resolves each argument there from the
image's DWARF, and prints the BPF instructions that fetch it.

A definition is FUNC[@SRC][+OFF|%return] and arguments [NAME=]VARIABLE[:TYPE], as
perf probe has them. FUNC may be a pattern (*, ?, [a-z], [!a-z]). In place of a
function it may be a source line (FUNC:LINE, FILE:LINE), lines by their text
(FUNC;PATTERN, FILE;PATTERN), an address (0x...) or a statically defined probe
(%sdt_PROVIDER:NAME). Options may stand before it, as in a BPF section name:
'exec=/bin/true;func=main argc'.

Whatever is not a command is taken for a definition, and shown. A function with the name
of a command must be escaped: '\trace x'. Each definition is one argument: quote it.

Exit status:
    0    all went well
    1    an error, or the answer of a check is no: verify, check, coverage --diff
    2    a usage error: an unknown command, flag or argument
    130  ended by Ctrl-C, 143 by SIGTERM (trace, stat and record end with 0 then)

trace -- COMMAND ends with the exit status of COMMAND, with 128+N if signal N ended
it, 127 if it is not found, and 126 if it cannot be run.`,
		Example: `  prolog-dump -k vmlinux --sites 'get_page page'
  prolog-dump -k vmlinux 'vfs_read:6 file pos'
  prolog-dump -k vmlinux --format tracefs 'vfs_read file->f_path.dentry->d_name.len'
  prolog-dump -k vmlinux --sites 'tcp_*msg sk size'
  prolog-dump -k vmlinux 'module=ext4;ext4_file_read_iter iocb to'
  prolog-dump -x ./server --format json 'walk n->name:string i' | jq '.args[].location'
  prolog-dump demo`,
		Version:           version(),
		Args:              cobra.ArbitraryArgs,
		SilenceUsage:      true,
		SilenceErrors:     true,
		ValidArgsFunction: s.completeDefinition,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return s.begin(cmd) },
		PersistentPostRunE: func(*cobra.Command, []string) error {
			return s.Unchanged()
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return withVerb(cmd, args, s.show(cmd, args))
		},
	}
	s.use(cmd, planFormats, showFlags...)
	cmd.SetFlagErrorFunc(flagError)
	cmd.AddCommand(showCommand(s), headerCommand(s), objectCommand(s), reportCommand(s), verifyCommand(s), coverageCommand(s), checkCommand(s), btfInlineCommand(s),
		linesCommand(s), varsCommand(s), funcsCommand(s), traceCommand(s), statCommand(s), recordCommand(s), packCommand(s), cacheCommand(s), demoCommand(s), bugCommand(s),
		completionCommand(s), manCommand(s), completeCommand(),
		&cobra.Command{Use: endprobes.Verb + " N", Hidden: true, Args: cobra.ExactArgs(1), RunE: func(_ *cobra.Command, args []string) error { return endprobes.Serve(args[0]) }})
	cmd.CompletionOptions.DisableDefaultCmd = true
	usages(cmd)
	return cmd
}

// showFlags are the flags of show, and of a definition without a verb.
var showFlags = join([]string{"sites", "explain", "attachable", "cost"}, planFlags, answerFlags)

func showCommand(s *settings) *cobra.Command {
	return s.use(&cobra.Command{
		Use:   "show 'FUNC ARG...'...",
		Short: "Show sites, locations and prologues of definitions, as without a command",
		Example: `  prolog-dump show -k vmlinux --sites 'get_page page'
  prolog-dump show -x ./server --format json 'walk n->name:string i'`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: s.completeQuoted,
		RunE:              func(cmd *cobra.Command, args []string) error { return s.show(cmd, args) },
	}, planFormats, showFlags...)
}

// show prints the plans of definitions.
func (s *settings) show(cmd *cobra.Command, args []string) error {
	for _, text := range args {
		err := s.withImage(cmd, text, func(x *subject, def *probe.Definition, w io.Writer) error {
			return s.print(cmd.Context(), w, x, def)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// withPlan makes the plan of a definition, and calls f with its subject, the plan
// and a buffered standard output.
func (s *settings) withPlan(cmd *cobra.Command, text string, f func(*subject, *plan.Plan, io.Writer) error) error {
	return s.withImage(cmd, text, func(x *subject, def *probe.Definition, w io.Writer) error {
		o := x.options
		o.Progress = screen.Counting("resolving sites")
		p, err := plan.New(cmd.Context(), x.img, def, o)
		if err != nil {
			return err
		}
		return f(x, p, w)
	})
}

// withImage opens the image of a definition, and calls f with both and a buffered
// standard output.
func (s *settings) withImage(cmd *cobra.Command, text string, f func(*subject, *probe.Definition, io.Writer) error) error {
	def, err := s.parse(text)
	if err != nil {
		return err
	}
	x, err := s.subject(&def.Options)
	if err != nil {
		return err
	}
	return buffered(cmd, func(w io.Writer) error { return f(x, def, w) })
}

// parse parses a definition, with the condition of --if.
func (s *settings) parse(text string) (*probe.Definition, error) {
	if s.condition != "" {
		text = "if=" + s.condition + "; " + text
	}
	switch s.ifMissing {
	case "", "drop":
	case "pass":
		text = "ifmissing=pass; " + text
	default:
		_, err := usage.Choose("if-missing", s.ifMissing, ifMissingNames, []bool{false, true})
		return nil, err
	}
	def, err := probe.Parse(text)
	s.AsksFunctions = s.AsksFunctions || err == nil && def.Point.Provider == ""
	return def, err
}

// subject is the image that definitions are about.
type subject struct {
	img     *dwarfloc.Image
	kernel  bool            // it is a kernel's, or a module's
	path    string          // of the file that runs, if it is a program's
	options plan.Options    // of plans
	types   *dwarfloc.Image // may define the types that a module only declares; or nil
	table   *attachable.Table
	list    int  // how many refused sites are listed for each cause
	sites   bool // those with probes are listed
}

// subject opens the image that flags and a definition's options name.
func (s *settings) subject(o *probe.Options) (x *subject, err error) {
	from, err := s.Origin(o)
	if err != nil {
		return nil, err
	}
	x = &subject{kernel: from.Kernel, path: from.Path, list: 3}
	if s.attachable || s.verbose {
		x.list = math.MaxInt
	}
	x.sites = s.verbose
	if x.options, err = s.options(from.Kernel); err != nil {
		return nil, err
	}
	types := s.TypesFile
	if o.Module != "" && s.Vmlinux != "" {
		if types = s.Vmlinux; s.TypesFile != "" {
			return nil, errors.New("--types is for other images: a module's types are those of the kernel that -k names")
		}
	}
	if types != "" {
		if x.types, err = s.Open(types, nil); err != nil {
			return nil, err
		}
	}
	if x.img, err = s.OpenFrom(&from, x.types); err != nil {
		return nil, err
	}
	if inside.AnsweredBy(x.img) == "a pack" {
		heap.OfPack()
	}
	if s.move {
		x.options.Cost, err = x.costs()
	}
	return x, err
}

// running finds where the image runs. Programs may sleep if sleep is set.
func (x *subject) running(force, sleep bool) (*instances.Running, error) {
	o := instances.FindOptions{Force: force, Sleep: sleep}
	if !x.kernel {
		o.Path = x.path
	}
	return instances.Find(x.img, o)
}

// options returns the options of plans that flags set.
func (s *settings) options(kernel bool) (o plan.Options, err error) {
	if o.Missing, err = usage.Choose("missing", s.missing, missingNames, []plan.Missing{plan.MissingFlag, plan.MissingSkip, plan.MissingFail}); err != nil {
		return o, err
	}
	if o.Doubt, err = usage.Choose("doubt", cmp.Or(s.doubt, "missing"), doubtNames, []plan.Doubt{plan.DoubtMissing, plan.DoubtMark, plan.DoubtKeep}); err != nil {
		return o, err
	}
	if o.EntryOnly, err = usage.Choose("ways", s.ways, waysNames, []bool{false, true}); err != nil {
		return o, err
	}
	auto := prologue.ReadUser
	if kernel {
		auto = prologue.ReadKernel
	}
	if o.Target.Reads, err = usage.Choose("reads", s.reads, readsNames, []prologue.Reads{auto, prologue.ReadKernel, prologue.ReadUser, prologue.ReadLegacy, prologue.ReadCast, prologue.ReadSleep}); err != nil {
		return o, err
	}
	if o.Convention, err = usage.Choose("convention", s.convention, conventionNames, []prologue.Convention{prologue.ConventionAuto, prologue.ConventionRegisters, prologue.ConventionRecord}); err != nil {
		return o, err
	}
	if s.stringBytes < 1 || s.stringBytes > prologue.MaxObject {
		return o, fmt.Errorf("--string-bytes %d: a string has from 1 to %d bytes", s.stringBytes, prologue.MaxObject)
	}
	o.StringBytes = s.stringBytes
	if s.filter != "" {
		if o.Filter, err = glob.ParseFilter(s.filter); err != nil {
			return o, fmt.Errorf("--filter: %w", err)
		}
	}
	if o.Sources, err = parseSources(s.sources); err != nil {
		return o, fmt.Errorf("--source: %w", err)
	}
	return o, nil
}

// planFormats are the formats of a plan.
var planFormats = []string{"text", "json", "tracefs", "bpftrace", "go", "c"}

// print writes the plan of a definition in the chosen format.
func (s *settings) print(ctx context.Context, w io.Writer, x *subject, def *probe.Definition) error {
	if s.format == "text" || s.format == "json" {
		predict, err := s.predictor(x)
		if err != nil {
			return err
		}
		o := listing.Options{Look: s.Look, Brief: s.sites, Explain: s.explain, Predict: predict, CountCauses: s.attachable, CountMethods: s.cost, Large: func() { heap.At(heap.Large) }}
		if s.format == "json" {
			return listing.JSON(ctx, w, x.img, def, x.options, &o)
		}
		return listing.Text(ctx, w, x.img, def, x.options, &o)
	}
	p, err := plan.New(ctx, x.img, def, x.options)
	if err != nil {
		return err
	}
	o := export.Options{Kernel: x.kernel}
	switch s.format {
	case "tracefs":
		return export.Tracefs(w, p, o)
	case "bpftrace":
		return export.Bpftrace(w, p, o)
	case "go":
		return export.Go(w, p)
	}
	return export.C(w, p, o)
}
