package probe

import (
	"fmt"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/syntax"
)

// A Definition is one parsed probe definition.
type Definition struct {
	Options Options

	// Group and Event are empty if the text does not name them. ParseSection requires an
	// event.
	Group, Event string

	Point Point
	Args  []Arg

	// Text is the text that the definition was parsed from. Every Pos is an offset into it,
	// in bytes. Text and positions are for messages, see Errorf.
	Text string
}

// Options say where and how to look for the probe point.
type Options struct {
	Exec    string       // path of an executable or shared library, or empty
	Module  string       // name or path of a kernel module, or empty
	Inlines bool         // probe inlined instances too; the default
	If      *syntax.Expr // the program runs only if this is true; nil if it always does
	Pass    bool         // it also runs if values of If are missing
	Force   bool         // probe an address that is not known to be an instruction's, a return by a return probe; replace an event of the same name

	KeepDoubt bool // an argument that may not be what was passed is fetched, and the program learns it
}

// defaultOptions returns the options of a definition that sets none.
func defaultOptions() Options { return Options{Inlines: true} }

// A Point is the place to probe: a function and perhaps a place in it, a line of a
// source file, or an address.
type Point struct {
	Function string // name or pattern of the functions, with its escapes; empty for FILE:LINE and addresses
	Provider string // of a statically defined probe, name or pattern; Function is then the probe's
	Source   string // path or pattern of source files, or empty
	Offset   uint64 // from the function's entry, in bytes
	Line     int    // with HasLine: of Source, or counted from the function's first line
	HasLine  bool
	Lazy     string // a lazy pattern of the lines to probe, or empty
	Address  uint64 // link-time address, with HasAddr
	HasAddr  bool
	Return   bool // where the function returns; Offset is 0
	Exit     bool // likewise, and where inlined instances of it end
	Pos      int  // where the point begins in the definition's text, in bytes
	LinePos  int  // where the line or the lazy pattern begins, in bytes
}

// An Arg is one argument to fetch.
type Arg struct {
	Name string          // the given name, else one made from the expression; unique
	Expr syntax.Expr     // what to fetch; its String is text that parses to an equal expression
	Type syntax.TypeSpec // as what; its String is the type's name, or "" for that in the debug information
	User bool            // @user: memory that pointers lead to is in user space
	Pos  int             // where the argument begins in the definition's text, in bytes
}

// String returns text that parses to an equal definition: options that differ from their
// defaults, the event, the point and the arguments.
func (d *Definition) String() string {
	var b strings.Builder
	b.WriteString(d.Options.text())
	if d.Group != "" {
		b.WriteString(d.Group + ":")
	}
	if d.Event != "" {
		b.WriteString(d.Event + "=")
	}
	b.WriteString(d.Point.text())
	for _, a := range d.Args {
		b.WriteString(" " + a.text())
	}
	return b.String()
}

// text returns the options that differ from their defaults, each with its
// terminator and a space, so that a definition can follow.
func (o Options) text() string {
	var b strings.Builder
	if o.Exec != "" {
		b.WriteString("exec=" + o.Exec + "; ")
	}
	if o.Module != "" {
		b.WriteString("module=" + o.Module + "; ")
	}
	if !o.Inlines {
		b.WriteString("inlines=no; ")
	}
	if o.Force {
		b.WriteString("force=yes; ")
	}
	if o.If != nil {
		b.WriteString("if=" + o.If.String() + "; ")
	}
	if o.Pass {
		b.WriteString("ifmissing=pass; ")
	}
	if o.KeepDoubt {
		b.WriteString("doubt=keep; ")
	}
	return b.String()
}

func (p Point) text() string {
	s := p.Function
	switch {
	case p.Provider != "":
		return "%sdt_" + p.Provider + ":" + s
	case p.HasAddr:
		return fmt.Sprintf("%#x", p.Address)
	case p.Function == "":
		s = p.Source
	case p.Source != "":
		s += "@" + p.Source
	}
	switch {
	case p.Return:
		s += "%return"
	case p.Exit:
		s += "%exit"
	case p.HasLine:
		s += fmt.Sprintf(":%d", p.Line)
	case p.Lazy != "":
		s += ";" + p.Lazy
	case p.Offset != 0:
		s += fmt.Sprintf("+%#x", p.Offset)
	}
	return s
}
