package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bpfprologue/bpfprologue/internal/terminal"
)

// manCommand writes man pages, from what --help prints.
func manCommand(s *settings) *cobra.Command {
	return s.use(&cobra.Command{
		Use:     "man DIR",
		Short:   "Write the man page of each verb into a directory",
		Example: `  prolog-dump man /usr/local/share/man/man1`,
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return writePages(cmd.Root(), args[0]) },
	}, nil)
}

func writePages(cmd *cobra.Command, dir string) error {
	if cmd.Hidden || !cmd.IsAvailableCommand() && cmd.HasParent() {
		return nil
	}
	if err := os.WriteFile(filepath.Join(dir, pageName(cmd)+".1"), manPage(cmd), 0o644); err != nil {
		return err
	}
	for _, c := range cmd.Commands() {
		if err := writePages(c, dir); err != nil {
			return err
		}
	}
	return nil
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage returns a verb's page, in the macros that man(7) documents. cobra's own generator goes by Markdown: what that needs was a
// tenth of the time in which the tool starts. There is no date, so that the same version writes the same pages.
func manPage(cmd *cobra.Command) []byte {
	cmd.InitDefaultHelpFlag()
	name := pageName(cmd)
	release, _, _ := strings.Cut(cmd.Root().Version, ",") // pages are the same on all architectures
	var b strings.Builder
	terminal.Fprintf(&b, ".nh\n.TH \"%s\" \"1\" \"\" \"prolog\\-dump %s\" \"bpfprologue\"\n", roff(strings.ToUpper(name)), roff(release))
	terminal.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(cmd.Short))
	terminal.Fprintf(&b, ".SH SYNOPSIS\n\\fB%s\\fP\n", roff(cmd.UseLine()))
	about := cmd.Long
	if about == "" {
		about = cmd.Short
	}
	b.WriteString(".SH DESCRIPTION\n")
	manText(&b, about)
	manFlags(&b, "OPTIONS", cmd.NonInheritedFlags())
	manFlags(&b, "OPTIONS INHERITED FROM PARENT COMMANDS", cmd.InheritedFlags())
	if cmd.Example != "" {
		b.WriteString(".SH EXAMPLE\n.EX\n")
		for line := range strings.Lines(cmd.Example) {
			terminal.Fprintf(&b, "%s\n", roffLine(strings.TrimSuffix(line, "\n")))
		}
		b.WriteString(".EE\n")
	}
	var others []string
	if cmd.HasParent() {
		others = append(others, pageName(cmd.Parent()))
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && !c.IsAdditionalHelpTopicCommand() {
			others = append(others, pageName(c))
		}
	}
	for i, o := range others {
		others[i] = `\fB` + roff(o) + `(1)\fP`
	}
	if !cmd.HasParent() {
		others = append(others, `\fBprolog\-dump\-definitions(7)\fP`) // scripts/man-definitions
	}
	if len(others) > 0 {
		terminal.Fprintf(&b, ".SH SEE ALSO\n%s\n", strings.Join(others, ", "))
	}
	return []byte(b.String())
}

// manText writes paragraphs. Lines that are indented stay as they are.
func manText(b *strings.Builder, text string) {
	verbatim, between := false, false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if indented := strings.HasPrefix(line, "    "); indented != verbatim {
			b.WriteString(map[bool]string{true: ".PP\n.EX\n", false: ".EE\n"}[indented])
			verbatim, between = indented, !indented
		}
		if line == "" {
			between = true
			continue
		}
		if between {
			b.WriteString(".PP\n")
			between = false
		}
		b.WriteString(roffLine(line) + "\n")
	}
	if verbatim {
		b.WriteString(".EE\n")
	}
}

func manFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	terminal.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Deprecated != "" || f.Hidden {
			return
		}
		b.WriteString(".TP\n")
		if f.Shorthand != "" {
			terminal.Fprintf(b, `\fB\-%s\fP, `, f.Shorthand)
		}
		value := f.DefValue
		if f.Value.Type() == "string" {
			value = `"` + value + `"`
		}
		if value = "=" + value; f.NoOptDefVal != "" {
			value = "[" + value + "]"
		}
		terminal.Fprintf(b, "\\fB\\-\\-%s\\fP%s\n%s\n", roff(f.Name), roff(value), roffLine(f.Usage))
	})
}

// roff returns a text as a page has it inside a line, and roffLine one as a line, which is not to be taken for a macro.
func roff(text string) string { return strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text) }

func roffLine(text string) string {
	if text = roff(text); strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		return `\&` + text
	}
	return text
}
