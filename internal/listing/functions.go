package listing

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/jsonline"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/sites"
)

// View is how functions, their lines and their variables are printed.
type View struct {
	screen.Look
	JSON bool
}

// Table prints an answer as a JSON object for each of its parts, or as a table with a row for each.
func Table[T any](w io.Writer, v *View, all []T, object func(*T) any, row func(*T) []any) error {
	t := screen.Table{Width: v.Width}
	for i := range all {
		if v.JSON {
			if err := jsonline.Write(w, object(&all[i])); err != nil {
				return err
			}
			continue
		}
		t.Row(row(&all[i])...)
	}
	return t.Print(w)
}

// Functions prints functions with the numbers of their sites.
func Functions(w io.Writer, v *View, all []sites.Function) error {
	object := func(f *sites.Function) any { return functionObject(f) }
	return Table(w, v, all, object, func(f *sites.Function) []any {
		return []any{v.Styled(screen.RolePlace, f.Qualified), strconv.Itoa(f.OutOfLine) + " out of line", strconv.Itoa(f.Inlined) + " inlined", declaredAt(f)}
	})
}

// Lines prints the source lines of functions.
func Lines(w io.Writer, v *View, all []sites.FunctionLines) error {
	return printEach(w, v, all, linesObject, v.printLines)
}

// Variables prints the variables of functions.
func Variables(w io.Writer, v *View, all []sites.FunctionVariables) error {
	return printEach(w, v, all, varsObject, v.printVars)
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
func printEach[T any](w io.Writer, v *View, all []T, object func(*T) any, text func(io.Writer, *T) error) error {
	for i := range all {
		if v.JSON {
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
func (v *View) printHeading(w io.Writer, f *sites.Function) {
	if f.Name == "" { // a file
		terminal.Fprintf(w, "%s  %s of lines (%d out of line, %d inlined)\n", v.Styled(screen.RolePlace, f.File), screen.Count(f.OutOfLine+f.Inlined, "site"), f.OutOfLine, f.Inlined)
		return
	}
	terminal.Fprintf(w, "%s  %s  %s (%d out of line, %d inlined)\n", v.Styled(screen.RolePlace, f.Qualified), declaredAt(f), screen.Count(f.OutOfLine+f.Inlined, "site"), f.OutOfLine, f.Inlined)
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

func (v *View) printLines(w io.Writer, f *sites.FunctionLines) error {
	v.printHeading(w, &f.Function)
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

func (v *View) printVars(w io.Writer, f *sites.FunctionVariables) error {
	v.printHeading(w, &f.Function)
	t := screen.Table{Width: v.Width, Indent: "    "}
	for _, x := range f.Variables {
		cells := []any{v.Styled(screen.RoleName, x.Name), x.Role.String(), v.Styled(screen.RoleType, x.Type), strconv.Itoa(x.Located) + "/" + strconv.Itoa(f.Sites)}
		if len(x.Reasons) > 0 {
			cells = append(cells, v.Styled(screen.RoleMissing, reasonsText(x.Reasons)))
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
