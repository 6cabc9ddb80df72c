package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/answers"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/jsonline"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/sites"
)

// Commands to look around with before writing a probe, like perf probe's -L, -V and -F. None
// needs a kernel.

func varsCommand(s *settings) *cobra.Command {
	return s.use(&cobra.Command{
		Use:   "vars FUNC[:LINE]|FILE:LINE|ADDRESS",
		Short: "Show the variables that a probe can fetch, and at how many of its sites",
		Long: `vars lists the parameters and locals in scope at the sites of a probe point, with
their types and the number of sites where each has a location; and why it has none at
the others.`,
		Example: `  prolog-dump -k vmlinux vars get_page
  prolog-dump -k vmlinux vars vfs_read:6`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.withImage(cmd, args[0], func(x *subject, def *probe.Definition, w io.Writer) error {
				point := *def
				point.Args = nil
				o := x.options
				o.EntryOnly = true // it counts sites, not probes
				p, err := plan.New(cmd.Context(), x.img, &point, o)
				if err != nil {
					return err
				}
				at := make([]*dwarfloc.Site, len(p.Sites))
				for i := range p.Sites {
					at[i] = p.Sites[i].Site
				}
				if by := inside.AnsweredBy(x.img); by != "" && by != answers.BySymbols {
					s.warnOnce(by + " has no local variables: there may be others")
				}
				all, err := sites.Variables(cmd.Context(), at)
				if err != nil {
					return err
				}
				return printEach(w, s.format, all, varsObject, s.printVars)
			})
		},
	}, textOrJSON, join(functionFlags, answerFlags)...)
}

func funcsCommand(s *settings) *cobra.Command {
	return s.use(&cobra.Command{
		Use:               "funcs PATTERN",
		Short:             "List functions with the number of their sites, out of line and inlined",
		Example:           `  prolog-dump -k vmlinux funcs 'vfs_r*'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.withImage(cmd, args[0], func(x *subject, def *probe.Definition, w io.Writer) error {
				sel, err := functionsOf(x, def)
				if err != nil {
					return err
				}
				all, err := sites.Functions(cmd.Context(), x.img, sel)
				var missing *sites.NotFoundError
				if errors.As(err, &missing) {
					return probe.Errorf(def, def.Point.Pos, "%w", err)
				}
				if err != nil {
					return err
				}
				object := func(f *sites.Function) any { return functionObject(f) }
				return printTable(s, w, all, object, func(f *sites.Function) []any {
					return []any{s.Styled(screen.RolePlace, f.Qualified), strconv.Itoa(f.OutOfLine) + " out of line", strconv.Itoa(f.Inlined) + " inlined", declaredAt(f)}
				})
			})
		},
	}, textOrJSON, join([]string{"filter"}, imageFlags, answerFlags)...)
}

// functionJSON has the first fields of the objects of lines, vars and funcs.
type functionJSON struct {
	Function  string `json:"function,omitempty"`  // not of a file
	Qualified string `json:"qualified,omitempty"` // in C++ and Rust, with namespaces and classes
	File      string `json:"file,omitempty"`      // where it is declared
	Line      int    `json:"line,omitempty"`
	OutOfLine int    `json:"out_of_line"` // sites
	Inlined   int    `json:"inlined"`
}

func functionObject(f *sites.Function) functionJSON {
	return functionJSON{f.Name, jsonline.Qualified(f.Name, f.Qualified), f.File, f.Line, f.OutOfLine, f.Inlined}
}

func declaredAt(f *sites.Function) string {
	if f.File == "" {
		return "?"
	}
	return f.File + ":" + strconv.Itoa(f.Line)
}

// printEach prints what was found for each function: as a JSON object, or as text with an
// empty line between two functions.
func printEach[T any](w io.Writer, format string, all []T, object func(*T) any, text func(io.Writer, *T) error) error {
	for i := range all {
		if format == "json" {
			if err := jsonline.Write(w, object(&all[i])); err != nil {
				return err
			}
			continue
		}
		if i > 0 {
			terminal.Fprintf(w, "\n")
		}
		if err := text(w, &all[i]); err != nil {
			return err
		}
	}
	return nil
}

// printHeading begins the text of a function.
func (s *settings) printHeading(w io.Writer, f *sites.Function) {
	if f.Name == "" { // a file
		terminal.Fprintf(w, "%s  %s of lines (%d out of line, %d inlined)\n", s.Styled(screen.RolePlace, f.File), screen.Count(f.OutOfLine+f.Inlined, "site"), f.OutOfLine, f.Inlined)
		return
	}
	terminal.Fprintf(w, "%s  %s  %s (%d out of line, %d inlined)\n", s.Styled(screen.RolePlace, f.Qualified), declaredAt(f), screen.Count(f.OutOfLine+f.Inlined, "site"), f.OutOfLine, f.Inlined)
}

// lineJSON is one line of a function.
type lineJSON struct {
	Line  int    `json:"line"` // counted from the declaration
	Sites int    `json:"sites"`
	Text  string `json:"text,omitempty"`
}

func linesObject(f *sites.FunctionLines) any {
	o := struct {
		functionJSON
		Lines []lineJSON `json:"lines"`
	}{functionObject(&f.Function), []lineJSON{}}
	for _, l := range f.Lines {
		o.Lines = append(o.Lines, lineJSON{l.Number, l.Sites, l.Text})
	}
	return o
}

func (s *settings) printLines(w io.Writer, f *sites.FunctionLines) error {
	s.printHeading(w, &f.Function)
	if len(f.Lines) == 0 {
		terminal.Fprintf(w, "    no line has code\n")
	}
	for _, l := range f.Lines {
		text := terminal.Line(l.Text) // with its tabs
		if !f.HasText {
			text = terminal.Text(f.File + ":" + strconv.Itoa(f.Line+l.Number))
		}
		line := fmt.Sprintf("%17s  %s", "", text)
		if l.Sites > 0 {
			line = fmt.Sprintf("%6d  %9s  %s", l.Number, strconv.Itoa(l.Sites)+"x", text)
		}
		if _, err := io.WriteString(w, strings.TrimRight(line, " \t")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// variableJSON is one variable of a function.
type variableJSON struct {
	Name    string         `json:"name"`
	Role    string         `json:"role"` // "parameter" or "local"
	Type    string         `json:"type"`
	Located int            `json:"located"` // sites
	Sites   int            `json:"sites"`
	Reasons map[string]int `json:"reasons,omitempty"` // of the other sites
}

func varsObject(f *sites.FunctionVariables) any {
	o := struct {
		functionJSON
		Variables []variableJSON `json:"variables"`
	}{functionObject(&f.Function), []variableJSON{}}
	for _, v := range f.Variables {
		j := variableJSON{Name: v.Name, Role: v.Role.String(), Type: v.Type, Located: v.Located, Sites: f.Sites}
		for r, n := range v.Reasons {
			if j.Reasons == nil {
				j.Reasons = make(map[string]int)
			}
			j.Reasons[r.String()] = n
		}
		o.Variables = append(o.Variables, j)
	}
	return o
}

func (s *settings) printVars(w io.Writer, f *sites.FunctionVariables) error {
	s.printHeading(w, &f.Function)
	t := screen.Table{Width: s.Width, Indent: "    "}
	for _, v := range f.Variables {
		cells := []any{s.Styled(screen.RoleName, v.Name), v.Role.String(), s.Styled(screen.RoleType, v.Type), strconv.Itoa(v.Located) + "/" + strconv.Itoa(f.Sites)}
		if len(v.Reasons) > 0 {
			cells = append(cells, s.Styled(screen.RoleMissing, reasonsText(v.Reasons)))
		}
		t.Row(cells...)
	}
	if err := t.Print(w); err != nil {
		return err
	}
	if len(f.Variables) == 0 {
		terminal.Fprintf(w, "    no parameters or locals\n")
	}
	return nil
}

// reasonsText returns reasons with their counts, in the order of loc.ReasonCode.
func reasonsText(reasons map[loc.ReasonCode]int) string {
	var parts []string
	for _, r := range slices.Sorted(maps.Keys(reasons)) {
		parts = append(parts, fmt.Sprintf("%d %s", reasons[r], r))
	}
	return strings.Join(parts, ", ")
}
