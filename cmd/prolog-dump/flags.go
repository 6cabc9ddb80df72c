package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bpfprologue/bpfprologue/internal/origin"
	"github.com/bpfprologue/bpfprologue/internal/usage"
)

// flag is a flag that several verbs have. A verb shows and accepts those that it uses, and no others.
type flag struct {
	name   string
	add    func(f *pflag.FlagSet, s *settings)
	values []string // from which one is chosen; nil for others
}

// texts is a flag that may be repeated. That of package pflag writes its default with a buffer of 4 KB, for each flag of each verb when the
// tool starts: that was a sixth of what it allocated to start.
type texts []string

func (t *texts) Set(text string) error {
	*t = append(*t, text)
	return nil
}

func (t *texts) String() string { return strings.Join(*t, ", ") }
func (t *texts) Type() string   { return "stringArray" }

var (
	textOrJSON      = []string{"text", "json"}
	readsNames      = []string{"auto", "kernel", "user", "legacy", "cast", "sleep"}
	waysNames       = []string{"all", "entry"}
	missingNames    = []string{"flag", "skip", "fail"}
	doubtNames      = []string{"missing", "mark", "keep"}
	recoverNames    = []string{"all", "none", "caller", "moved", "table", "operand", "call", "member"}
	ifMissingNames  = []string{"drop", "pass"}
	conventionNames = []string{"auto", "registers", "record"}
)

var sharedFlags = []flag{
	{"vmlinux", func(f *pflag.FlagSet, s *settings) {
		f.StringVarP(&s.Vmlinux, "vmlinux", "k", "", "kernel image or module with debug information (default: the running kernel's, in the usual places)")
	}, nil},
	{"exec", func(f *pflag.FlagSet, s *settings) {
		f.StringVarP(&s.Exec, "exec", "x", "", "executable or shared library with debug information, instead of a kernel; a name, as bash or libc.so.6, is looked for where the shell and the loader do")
	}, nil},
	{"ways", func(f *pflag.FlagSet, s *settings) {
		f.StringVar(&s.ways, "ways", "all", "which ways into an inlined body get probes: all, or the entry that the debug information names")
	}, waysNames},
	{"missing", func(f *pflag.FlagSet, s *settings) {
		f.StringVar(&s.missing, "missing", "flag", "what to do with a site that lacks an argument: flag it in err, skip the site, or fail")
	}, missingNames},
	{"doubt", func(f *pflag.FlagSet, s *settings) {
		f.StringVar(&s.doubt, "doubt", "", "what to do with an argument that may not be what was passed: take it for a missing one; mark it with ~, and use it in no condition or sum; keep it, as the option doubt=keep of a definition does: marked, used, and programs are told (default: mark where values are printed, else missing)")
	}, doubtNames},
	{"reads", func(f *pflag.FlagSet, s *settings) {
		f.StringVar(&s.reads, "reads", "auto", "how memory is read: by a helper for kernel, user or legacy (before Linux 5.5) memory, by loads of kernel memory (cast, Linux 6.17), by a helper that reads from disk what is not resident (sleep, Linux 6.0), or auto: by the image, and in trace by what the kernel can do")
	}, readsNames},
	{"convention", func(f *pflag.FlagSet, s *settings) {
		f.StringVar(&s.convention, "convention", "auto", "how the program gets its arguments: registers (up to three numbers), record (a structure), or auto: by the arguments")
	}, conventionNames},
	{"string-bytes", func(f *pflag.FlagSet, s *settings) {
		f.IntVar(&s.stringBytes, "string-bytes", 64, "bytes of a string in a record, its NUL included")
	}, nil},
	{"if", func(f *pflag.FlagSet, s *settings) {
		f.StringVar(&s.condition, "if", "", "run the program only where this holds, as in 'size > 4096 && flags & 0x400'; as the option if= of a definition")
	}, nil},
	{"if-missing", func(f *pflag.FlagSet, s *settings) {
		f.StringVar(&s.ifMissing, "if-missing", "drop", "what to do with a hit for which the condition cannot be computed: drop it, or let it pass")
	}, ifMissingNames},
	{"filter", func(f *pflag.FlagSet, s *settings) {
		f.StringVar(&s.filter, "filter", "", "keep functions that match this too: patterns with !, &, | and parentheses, as in 'tcp_* & !(*_init | *_exit)'")
	}, nil},
	{"source", func(f *pflag.FlagSet, s *settings) {
		f.Var((*texts)(&s.sources), "source", "directory with sources, for lazy patterns and the texts of lines; PREFIX=DIR: in place of the compiler's PREFIX; may be repeated")
	}, nil},
	{"no-cache", func(f *pflag.FlagSet, s *settings) {
		f.BoolVar(&s.NoCache, "no-cache", false, "neither use nor keep the image's index in the user's cache directory")
	}, nil},
	{"btf", func(f *pflag.FlagSet, s *settings) {
		f.StringVar(&s.BTF, "btf", "", "answer from the running kernel's own BTF, as where there is no debug information: entries of functions, by the calling convention; --btf=FILE: from that of another kernel")
		f.Lookup("btf").NoOptDefVal = origin.RunningBTF
	}, nil},
	{"pack-dir", func(f *pflag.FlagSet, s *settings) {
		f.Var((*texts)(&s.PackDirs), "pack-dir", "directory with packs, named BUILD-ID.pack, to look into before the usual ones where there is no debug information; may be repeated")
	}, nil},
	{"pack-url", func(f *pflag.FlagSet, s *settings) {
		f.Var((*texts)(&s.PackURLs), "pack-url", "server of packs, as pack write --out-dir lays them out, to ask by build ID for what no directory has, before those of PACK_URLS; may be repeated")
	}, nil},
	{"debug-dir", func(f *pflag.FlagSet, s *settings) {
		f.Var((*texts)(&s.DebugDirs), "debug-dir", "directory with separate debug information, as /usr/lib/debug is laid out, to look into before that; may be repeated")
	}, nil},
	{"recover", func(f *pflag.FlagSet, s *settings) {
		f.StringVar(&s.Recover, "recover", "all", "how to find values that the debug information has lost: caller, moved, table, operand, call, member (what calls passed, tables of a kernel, instructions of the body), several with commas; all; or none")
	}, recoverNames},
	{"types", func(f *pflag.FlagSet, s *settings) {
		f.StringVar(&s.TypesFile, "types", "", "take types that the image does not have, for casts such as (struct request *)$arg1, from this image with debug information")
	}, nil},
	{"sites", func(f *pflag.FlagSet, s *settings) {
		f.BoolVar(&s.sites, "sites", false, "leave out the disassembly")
	}, nil},
	{"attachable", func(f *pflag.FlagSet, s *settings) {
		f.BoolVar(&s.attachable, "attachable", false, "say at which sites the kernel takes no probe, and why")
	}, nil},
	{"cost", func(f *pflag.FlagSet, s *settings) {
		f.BoolVar(&s.cost, "cost", false, "say how the kernel runs the probe at each site, and so what a hit costs")
	}, nil},
	{"move", func(f *pflag.FlagSet, s *settings) {
		f.BoolVar(&s.move, "move", false, "move probes of inlined bodies along straight code to where they cost less, if the arguments are the same there")
	}, nil},
	{"explain", func(f *pflag.FlagSet, s *settings) {
		f.BoolVar(&s.explain, "explain", false, "say by which rule each location was chosen, and from which DWARF expression")
	}, nil},
	{"quiet", func(f *pflag.FlagSet, s *settings) {
		f.BoolVarP(&s.quiet, "quiet", "q", false, "print neither where probes are nor totals; errors and warnings are printed")
	}, nil},
	{"verbose", func(f *pflag.FlagSet, s *settings) {
		f.BoolVarP(&s.verbose, "verbose", "v", false, "list the sites that have probes, with where the arguments are, and all that have none")
	}, nil},
	{"output", func(f *pflag.FlagSet, s *settings) {
		f.StringVarP(&s.output, "output", "o", "", "write to this file, which is replaced, and not to standard output")
	}, nil},
	{"color", func(f *pflag.FlagSet, s *settings) {
		f.StringVar(&s.color, "color", "auto", "colors: on a terminal unless NO_COLOR is set (auto), always, or never")
	}, colorNames},
	{"no-pager", func(f *pflag.FlagSet, s *settings) {
		f.BoolVar(&s.noPager, "no-pager", false, "on a terminal, print at once and not by the pager that PAGER names (less)")
	}, nil},
}

// What groups of verbs use.
var (
	imageFlags    = []string{"vmlinux", "exec", "btf", "pack-dir", "pack-url", "debug-dir", "types", "recover", "no-cache"}
	functionFlags = join([]string{"filter", "source"}, imageFlags)
	planFlags     = join([]string{"if", "if-missing", "ways", "missing", "doubt", "reads", "convention", "string-bytes", "move"}, functionFlags)
)

func join(names ...[]string) []string { return slices.Concat(names...) }

// use gives a verb flags, and the formats that it can print; with one format it has no flag for that. It returns the verb.
func (s *settings) use(cmd *cobra.Command, formats []string, names ...string) *cobra.Command {
	f := cmd.Flags()
	f.SortFlags = false
	for _, n := range names {
		i := slices.IndexFunc(sharedFlags, func(x flag) bool { return x.name == n })
		sharedFlags[i].add(f, s)
		if values := sharedFlags[i].values; values != nil {
			_ = cmd.RegisterFlagCompletionFunc(n, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	if s.formats == nil {
		s.formats = make(map[*cobra.Command][]string)
	}
	s.formats[cmd] = formats
	if len(formats) > 1 {
		f.StringVar(&s.format, "format", formats[0], "how to print: "+strings.Join(formats, ", "))
		_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	}
	return cmd
}

// checkFormat returns an error for a format that a verb does not have.
func (s *settings) checkFormat(cmd *cobra.Command) error {
	names := s.formats[cmd]
	if len(names) < 2 {
		return nil
	}
	_, err := usage.Choose("format", s.format, names, make([]struct{}, len(names)))
	return err
}

// flagError says which verbs have a flag that a verb does not have.
func flagError(cmd *cobra.Command, err error) error {
	name, ok := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !ok {
		return &usage.Error{Err: err}
	}
	var verbs []string
	for _, c := range append(cmd.Root().Commands(), cmd.Root()) {
		if !c.Hidden && c.Flags().Lookup(name) != nil {
			verbs = append(verbs, verbName(c))
		}
	}
	if len(verbs) == 0 {
		return usage.Errorf("unknown flag: --%s; to see the flags: %s --help", name, cmd.CommandPath())
	}
	return usage.Errorf("--%s is no flag of %s; these have it: %s", name, verbName(cmd), strings.Join(verbs, ", "))
}

// verbName names a verb. The default one has no name.
func verbName(cmd *cobra.Command) string {
	if cmd.HasParent() {
		return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	}
	return "definitions"
}
