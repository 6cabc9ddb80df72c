package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/attachable"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/export"
	"github.com/bpfprologue/bpfprologue/glob"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/kernelfiles"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
	"github.com/bpfprologue/bpfprologue/terminal"
)

// settings are the flags that commands share.
type settings struct {
	vmlinux string
	exec    string
	format  string
	missing string
	ways    string
	reads   string
	filter  string
	sources []string
	noCache bool
	sites   bool

	convention  string
	stringBytes int
	explain     bool

	attachable bool
	cost       bool
	move       bool

	images []*dwarfloc.Image // that were opened
}

func rootCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "prolog-dump [flags] 'FUNC ARG...'",
		Short: "Show where a function's arguments are at every place it runs, and the BPF that fetches them",
		Long: `prolog-dump reads a probe definition, finds every place in an image where a
matching function runs, inlined or not, resolves each argument there from the
image's DWARF, and prints the BPF instructions that fetch it.

A definition is FUNC[@SRC][+OFF|%return] and arguments [NAME=]VARIABLE[:TYPE], as
perf probe has them. FUNC may be a pattern (*, ?, [a-z], [!a-z]). In place of a
function it may be a source line (FUNC:LINE, FILE:LINE), lines by their text
(FUNC;PATTERN, FILE;PATTERN) or an address (0x...). Options may stand before it, as
in a BPF section name: 'exec=/bin/true;func=main argc'.`,
		Example: `  prolog-dump -k vmlinux 'get_page page'
  prolog-dump -k vmlinux 'vfs_read:6 file pos'
  prolog-dump -k vmlinux --format tracefs 'vfs_read file->f_path.dentry->d_name.len'
  prolog-dump -k vmlinux --sites 'tcp_*msg sk size'
  prolog-dump -k vmlinux 'module=ext4;ext4_file_read_iter iocb to'
  prolog-dump -x ./server --format json 'handle_request req len:u32' | jq '.args[].location'
  prolog-dump demo`,
		Args:              cobra.ArbitraryArgs,
		SilenceUsage:      true,
		SilenceErrors:     true,
		ValidArgsFunction: s.completeFunctions,
		PersistentPostRunE: func(*cobra.Command, []string) error {
			return s.unchanged()
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			if err := s.checkFormat(planFormats...); err != nil {
				return err
			}
			return s.withImage(cmd, args, func(x *subject, def *probe.Definition, w io.Writer) error {
				return s.print(cmd.Context(), w, x, def)
			})
		},
	}
	f := cmd.PersistentFlags()
	f.StringVarP(&s.vmlinux, "vmlinux", "k", "", "kernel image or module with debug information (default: the running kernel's, in the usual places)")
	f.StringVarP(&s.exec, "exec", "x", "", "executable or shared library with debug information, instead of a kernel")
	f.StringVar(&s.format, "format", "text", "text; json: one object per site and line; of a plan also tracefs, bpftrace, go and c")
	f.StringVar(&s.ways, "ways", "all", "which ways into an inlined body get probes: all, or the entry that the debug information names")
	f.StringVar(&s.missing, "missing", "flag", "what to do with a site that lacks an argument: flag it in err, skip the site, or fail")
	f.StringVar(&s.reads, "reads", "auto", "how memory is read: by a helper for kernel, user or legacy (before Linux 5.5) memory, by loads of kernel memory (cast, Linux 6.17), or auto: by the image, and in trace by what the kernel can do")
	f.StringVar(&s.convention, "convention", "auto", "how the program gets its arguments: registers (up to three numbers), record (a structure), or auto: by the arguments")
	f.IntVar(&s.stringBytes, "string-bytes", 64, "bytes of a string in a record, its NUL included")
	f.StringVar(&s.filter, "filter", "", "keep functions that match this too: patterns with !, &, | and parentheses, as in 'tcp_* & !(*_init | *_exit)'")
	f.StringArrayVar(&s.sources, "source", nil, "directory with sources, for lazy patterns and the texts of lines; PREFIX=DIR: in place of the compiler's PREFIX; may be repeated")
	f.BoolVar(&s.noCache, "no-cache", false, "neither use nor keep the image's index in the user's cache directory")
	f.BoolVar(&s.sites, "sites", false, "leave out the disassembly")
	f.BoolVar(&s.attachable, "attachable", false, "say at which sites the kernel takes no probe, and why")
	f.BoolVar(&s.cost, "cost", false, "say how the kernel runs the probe at each site, and so what a hit costs")
	f.BoolVar(&s.move, "move", false, "move probes of inlined bodies along straight code to where they cost less, if the arguments are the same there")
	f.BoolVar(&s.explain, "explain", false, "say by which rule each location was chosen, and from which DWARF expression")
	cmd.AddCommand(headerCommand(&s), verifyCommand(&s), coverageCommand(&s), proveCommand(&s),
		linesCommand(&s), varsCommand(&s), funcsCommand(&s), traceCommand(&s), statCommand(&s), recordCommand(&s), cacheCommand(), demoCommand(&s), endingCommand())
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(planFormats, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("ways", cobra.FixedCompletions([]string{"all", "entry"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("missing", cobra.FixedCompletions([]string{"flag", "skip", "fail"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("convention", cobra.FixedCompletions([]string{"auto", "registers", "record"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("reads", cobra.FixedCompletions([]string{"auto", "kernel", "user", "legacy", "cast"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// choose returns the value that a flag names; the error lists the names.
func choose[T any](flag, value string, names []string, values []T) (T, error) {
	for i, n := range names {
		if n == value {
			return values[i], nil
		}
	}
	var zero T
	return zero, fmt.Errorf("--%s %q: unknown; it is one of %s", flag, value, strings.Join(names, ", "))
}

// checkFormat returns an error for a format that a command does not have.
func (s *settings) checkFormat(names ...string) error {
	_, err := choose("format", s.format, names, make([]struct{}, len(names)))
	return err
}

// withPlan makes the plan of the definition in args, and calls f with its subject, the plan
// and a buffered standard output.
func (s *settings) withPlan(cmd *cobra.Command, args []string, f func(*subject, *plan.Plan, io.Writer) error) error {
	return s.withImage(cmd, args, func(x *subject, def *probe.Definition, w io.Writer) error {
		p, err := plan.New(cmd.Context(), x.img, def, x.options)
		if err != nil {
			return err
		}
		return f(x, p, w)
	})
}

// withImage opens the image of the definition in args, and calls f with both and a buffered
// standard output.
func (s *settings) withImage(cmd *cobra.Command, args []string, f func(*subject, *probe.Definition, io.Writer) error) error {
	// Shells split an unquoted definition into words; together they are one.
	def, err := probe.Parse(strings.Join(args, " "))
	if err != nil {
		return err
	}
	x, err := s.subject(&def.Options)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(cmd.OutOrStdout(), 1<<16)
	return errors.Join(f(x, def, w), w.Flush())
}

// subject is the image that definitions are about.
type subject struct {
	img     *dwarfloc.Image
	kernel  bool            // it is a kernel's, or a module's
	options plan.Options    // of plans
	types   *dwarfloc.Image // may define the types that a module only declares; or nil
	table   *attachable.Table
	list    int // how many refused sites are listed for each cause
}

// subject opens the image that flags and a definition's options name.
func (s *settings) subject(o *probe.Options) (x *subject, err error) {
	path, kernel, err := s.imagePath(o)
	if err != nil {
		return nil, err
	}
	x = &subject{kernel: kernel, list: 3}
	if s.attachable {
		x.list = math.MaxInt
	}
	if x.options, err = s.options(kernel); err != nil {
		return nil, err
	}
	if o.Module != "" && s.vmlinux != "" {
		if x.types, err = s.open(s.vmlinux, nil); err != nil {
			return nil, err
		}
	}
	if x.img, err = s.open(path, x.types); err != nil {
		return nil, err
	}
	if s.move {
		x.options.Cost, err = x.costs()
	}
	return x, err
}

// running finds where the image runs.
func (x *subject) running(force bool) (*instances.Running, error) {
	o := instances.FindOptions{Force: force}
	if !x.kernel {
		o.Path = x.img.Path()
	}
	return instances.Find(x.img, o)
}

// options returns the options of plans that flags set.
func (s *settings) options(kernel bool) (o plan.Options, err error) {
	if o.Missing, err = choose("missing", s.missing, []string{"flag", "skip", "fail"}, []plan.Missing{plan.MissingFlag, plan.MissingSkip, plan.MissingFail}); err != nil {
		return o, err
	}
	if o.Ways, err = choose("ways", s.ways, []string{"all", "entry"}, []plan.Ways{plan.WaysAll, plan.WaysEntry}); err != nil {
		return o, err
	}
	auto := prologue.ReadUser
	if kernel {
		auto = prologue.ReadKernel
	}
	if o.Target.Reads, err = choose("reads", s.reads, []string{"auto", "kernel", "user", "legacy", "cast"}, []prologue.Reads{auto, prologue.ReadKernel, prologue.ReadUser, prologue.ReadLegacy, prologue.ReadCast}); err != nil {
		return o, err
	}
	if o.Convention, err = choose("convention", s.convention, []string{"auto", "registers", "record"}, []prologue.Convention{prologue.ConventionAuto, prologue.ConventionRegisters, prologue.ConventionRecord}); err != nil {
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

// imagePath returns the path of the image that flags and a definition's options name, and
// whether it is a kernel's.
func (s *settings) imagePath(o *probe.Options) (path string, kernel bool, err error) {
	switch {
	case o.Module != "":
		path, err = s.modulePath(o.Module)
		return path, true, err
	case s.vmlinux != "" && s.exec != "":
		return "", false, errors.New("-k and -x name two images; give one")
	case o.Exec != "":
		return o.Exec, false, nil
	case s.exec != "":
		return s.exec, false, nil
	case s.vmlinux != "":
		return s.vmlinux, true, nil
	}
	release, err := runningRelease()
	if err != nil {
		return "", false, err
	}
	path, err = kernelfiles.FindRunningKernel(release)
	return path, true, withAdvice(err, "install the kernel's debug package, or name an image with -k FILE")
}

// modulePath finds the file of a module: of the kernel that -k names, or of the running one.
func (s *settings) modulePath(name string) (string, error) {
	var release string
	var err error
	if s.vmlinux != "" {
		release, err = kernelfiles.KernelRelease(s.vmlinux)
	} else {
		release, err = runningRelease()
	}
	if err != nil {
		return "", err
	}
	path, err := kernelfiles.FindModule(name, kernelfiles.ModuleDirs(release, s.vmlinux))
	return path, withAdvice(err, "install the kernel's debug package, or name the module's file with module=PATH or -k PATH")
}

// withAdvice adds advice to the error for a file that is in none of the usual places.
func withAdvice(err error, advice string) error {
	var none *kernelfiles.NotFoundError
	if errors.As(err, &none) {
		return &advisedError{err, advice}
	}
	return err
}

// runningRelease returns what uname -r prints.
func runningRelease() (string, error) {
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return "", fmt.Errorf("uname: %w", err)
	}
	return unix.ByteSliceToString(uts.Release[:]), nil
}

// completeFunctions completes names of the image's functions in a shell. The scan takes a
// fraction of a second.
func (s *settings) completeFunctions(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	path, _, err := s.imagePath(&probe.Options{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	img, err := s.open(path, nil)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, err := img.FunctionNames(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, n := range names {
		// A shell would take a newline for the end of a name.
		if strings.HasPrefix(n, prefix) && terminal.Text(n) == n {
			out = append(out, n)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// planFormats are the formats of a plan.
var planFormats = []string{"text", "json", "tracefs", "bpftrace", "go", "c"}

// print writes the plan of a definition in the chosen format.
func (s *settings) print(ctx context.Context, w io.Writer, x *subject, def *probe.Definition) error {
	if s.format == "text" || s.format == "json" {
		return s.printSites(ctx, w, x, def)
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
