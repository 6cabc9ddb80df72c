package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/internal/complete"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/internal/usage"
	"github.com/bpfprologue/bpfprologue/probe"
)

// Cobra knows verbs, flags and their values. Its scripts for shells lose what is in quotation marks, as
// definitions are: these hand the whole line on.
var (
	//go:embed completion/prolog-dump.bash
	bashScript string
	//go:embed completion/_prolog-dump
	zshScript string
	//go:embed completion/prolog-dump.fish
	fishScript string
)

var shells = []string{"bash", "zsh", "fish"}

func completionCommand(s *settings) *cobra.Command {
	return s.use(&cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print a script by which a shell completes verbs, flags, functions, arguments and members",
		Long: `completion prints a script for a shell: it completes verbs and flags, and inside of
definitions, quoted or not, names of functions, their arguments, members and types.
It reads the image that -k, -x or the definition names.`,
		Example: `  prolog-dump completion bash -o /usr/share/bash-completion/completions/prolog-dump
  prolog-dump completion zsh -o /usr/share/zsh/vendor-completions/_prolog-dump
  prolog-dump completion fish -o ~/.config/fish/completions/prolog-dump.fish`,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			script, err := usage.Choose("shell", args[0], shells, []string{bashScript, zshScript, fishScript})
			if err != nil {
				return err
			}
			_, err = io.WriteString(cmd.OutOrStdout(), script)
			return err
		},
	}, nil, "output")
}

// completeCommand is what the scripts call. The first line of its answer is "files" if the shell should
// complete names of files, and else "words".
func completeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "complete-line SHELL LINE", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			line := complete.ParseLine(args[1])
			if len(line.Words) < 2 {
				return nil
			}
			found, files, err := candidates(cmd, line.Words[1:])
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			terminal.Fprintf(w, "%s\n", map[bool]string{true: "files", false: "words"}[files])
			for _, f := range found {
				if args[0] == "bash" {
					text, ok := line.Bash(f)
					if !ok {
						continue
					}
					f = text
				}
				terminal.Fprintf(w, "%s\n", f)
			}
			return nil
		},
	}
}

// candidates returns what the last of some words can be completed to, and whether that is a file.
func candidates(cmd *cobra.Command, words []string) (found []string, files bool, err error) {
	var out bytes.Buffer
	root := rootCommand(new(settings))
	root.SetArgs(append([]string{cobra.ShellCompNoDescRequestCmd}, words...))
	root.SetOut(&out)
	root.SetErr(io.Discard)
	if err := root.ExecuteContext(cmd.Context()); err != nil {
		return nil, false, err
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	last := len(lines) - 1
	directive, err := strconv.Atoi(strings.TrimPrefix(lines[last], ":"))
	if err != nil {
		return nil, false, fmt.Errorf("completion: %w", err)
	}
	found = lines[:last]
	if flag, _, ok := strings.Cut(words[len(words)-1], "="); ok && strings.HasPrefix(flag, "--") {
		for i := range found {
			found[i] = flag + "=" + found[i] // cobra completes the value alone
		}
	}
	begun := words[len(words)-1]
	found = slices.DeleteFunc(found, func(f string) bool { return !strings.HasPrefix(f, begun) }) // cobra leaves that to its scripts
	return found, cobra.ShellCompDirective(directive)&cobra.ShellCompDirectiveNoFileComp == 0 && len(found) == 0, nil
}

// completeDefinition completes a definition that all arguments of a verb make together.
func (s *settings) completeDefinition(cmd *cobra.Command, args []string, last string) ([]string, cobra.ShellCompDirective) {
	before := ""
	if len(args) > 0 {
		before = strings.Join(args, " ") + " "
	}
	all, directive := s.completeQuoted(cmd, nil, before+last)
	var out []string
	for _, d := range all {
		out = append(out, strings.TrimPrefix(d, before))
	}
	return out, directive
}

// completeOne completes a verb's only argument, which is a definition.
func (s *settings) completeOne(cmd *cobra.Command, args []string, last string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return s.completeQuoted(cmd, nil, last)
}

// completeQuoted completes a definition that is one argument.
func (s *settings) completeQuoted(cmd *cobra.Command, _ []string, text string) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	var o probe.Options
	if def, err := probe.Parse(text); err == nil {
		o = def.Options
	}
	s.Silent = true
	from, err := s.Origin(&o)
	// The tool's first word is a verb as likely as a definition: without an image that somebody chose or installed
	// no functions are proposed for it.
	if err != nil || from.BTF && s.BTF == "" && !cmd.HasParent() {
		return nil, directive
	}
	img, err := s.OpenFrom(&from, nil)
	if err != nil {
		return nil, directive
	}
	all, err := complete.Definition(cmd.Context(), img, text)
	if err != nil {
		return nil, directive
	}
	var out []string
	for _, d := range all {
		// A shell would take a newline for the end of a name.
		if terminal.Text(d) == d {
			out = append(out, d)
		}
	}
	return out, directive
}
