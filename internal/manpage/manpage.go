// Package manpage writes man pages of commands, in the macros that man(7) documents. cobra's own generator goes by Markdown: what that needs was a
// tenth of the time in which the tool starts. There is no date, so that the same version writes the same pages.
package manpage

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/bpfprologue/bpfprologue/internal/terminal"
)

// Page is what a page says.
type Page struct {
	Name, Release, About, Use, Text string
	Own, Inherited                  *pflag.FlagSet
	Example                         string
	Others                          []string // see also, as "name(1)"
}

// Bytes returns a page.
func (p *Page) Bytes() []byte {
	var b strings.Builder
	terminal.Fprintf(&b, ".nh\n.TH \"%s\" \"1\" \"\" \"prolog\\-dump %s\" \"bpfprologue\"\n", roff(strings.ToUpper(p.Name)), roff(p.Release))
	terminal.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(p.Name), roff(p.About))
	terminal.Fprintf(&b, ".SH SYNOPSIS\n\\fB%s\\fP\n", roff(p.Use))
	b.WriteString(".SH DESCRIPTION\n")
	writeText(&b, p.Text)
	writeFlags(&b, "OPTIONS", p.Own)
	writeFlags(&b, "OPTIONS INHERITED FROM PARENT COMMANDS", p.Inherited)
	if p.Example != "" {
		b.WriteString(".SH EXAMPLE\n.EX\n")
		for line := range strings.Lines(p.Example) {
			terminal.Fprintf(&b, "%s\n", roffLine(strings.TrimSuffix(line, "\n")))
		}
		b.WriteString(".EE\n")
	}
	var others []string
	for _, o := range p.Others {
		others = append(others, `\fB`+roff(o)+`\fP`)
	}
	if len(others) > 0 {
		terminal.Fprintf(&b, ".SH SEE ALSO\n%s\n", strings.Join(others, ", "))
	}
	return []byte(b.String())
}

// writeText writes paragraphs. Lines that are indented stay as they are.
func writeText(b *strings.Builder, text string) {
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

func writeFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
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
