package probe

import (
	"fmt"
	"slices"
	"strings"
)

// A Definition is one parsed probe definition.
type Definition struct {
	Options Options

	// Group is empty when the text names none, and so is Event, which only
	// Parse allows to be left out.
	Group, Event string

	Point Point
	Args  []Arg

	// Text is what the definition was parsed from. Every Pos is an offset
	// into it, in bytes. Text and positions are for messages, see Errorf, and
	// do not matter to Equal.
	Text string
}

// Options say where and how to look for the probe point.
type Options struct {
	Exec    string // path of an executable or shared library, or empty
	Module  string // name or path of a kernel module, or empty
	Inlines bool   // probe inlined instances too; DefaultOptions has it
	Force   bool   // replace an event of the same name
}

// DefaultOptions returns the options of a definition that sets none.
func DefaultOptions() Options { return Options{Inlines: true} }

// A Point is the place to probe.
type Point struct {
	Function string // name or pattern of the functions, with its escapes
	Source   string // path or pattern of their source files, or empty
	Offset   uint64 // from the function's entry, in bytes
	Return   bool   // where the function returns; the offset is 0
	Pos      int    // where Function begins in the definition's text, in bytes
}

// An Arg is one argument to fetch.
type Arg struct {
	Name string // the given name, else that of the variable; unique
	Expr Expr
	Type TypeSpec
	Pos  int // where the argument begins in the definition's text, in bytes
}

// An Expr says what to fetch.
type Expr struct {
	Variable string // a parameter, a local or a global variable
	Pos      int    // where the expression begins in the definition's text, in bytes
}

// A TypeSpec is the type to show a value as. The zero TypeSpec is no type: the
// value has the one that the debug information gives.
type TypeSpec struct {
	Kind TypeKind
	Bits int // 8, 16, 32 or 64
	Pos  int // where the type begins in the definition's text, in bytes
}

// A TypeKind is the kind of a TypeSpec.
type TypeKind byte

const (
	NoType   TypeKind = iota
	Unsigned          // u8 to u64
	Signed            // s8 to s64
	Hex               // x8 to x64: unsigned, shown in hexadecimal
)

// String returns text that parses to an equal definition: options that differ
// from their defaults, the event, the point, the arguments.
func (d *Definition) String() string {
	var b strings.Builder
	b.WriteString(d.Options.String())
	if d.Group != "" {
		b.WriteString(d.Group + ":")
	}
	if d.Event != "" {
		b.WriteString(d.Event + "=")
	}
	b.WriteString(d.Point.String())
	for _, a := range d.Args {
		b.WriteString(" " + a.String())
	}
	return b.String()
}

// String returns the options that differ from their defaults, each with its
// terminator and a space, so that a definition can follow.
func (o Options) String() string {
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
	return b.String()
}

func (p Point) String() string {
	s := p.Function
	if p.Source != "" {
		s += "@" + p.Source
	}
	if p.Return {
		return s + "%return"
	}
	if p.Offset != 0 {
		return s + fmt.Sprintf("+%#x", p.Offset)
	}
	return s
}

func (a Arg) String() string {
	s := a.Expr.String()
	if a.Name != s {
		s = a.Name + "=" + s
	}
	if a.Type.Kind != NoType {
		s += ":" + a.Type.String()
	}
	return s
}

func (e Expr) String() string { return e.Variable }

// String returns the type's name, such as "u32", or "" for no type.
func (t TypeSpec) String() string {
	switch t.Kind {
	case Unsigned:
		return fmt.Sprintf("u%d", t.Bits)
	case Signed:
		return fmt.Sprintf("s%d", t.Bits)
	case Hex:
		return fmt.Sprintf("x%d", t.Bits)
	}
	return ""
}

// Equal reports whether d and o define the same probe, whatever their texts.
func (d *Definition) Equal(o *Definition) bool {
	if d == nil || o == nil {
		return d == o
	}
	return d.Options == o.Options && d.Group == o.Group && d.Event == o.Event &&
		d.Point.Equal(o.Point) && slices.EqualFunc(d.Args, o.Args, Arg.Equal)
}

// Equal reports whether p and o are the same, apart from their positions.
func (p Point) Equal(o Point) bool {
	p.Pos = o.Pos
	return p == o
}

// Equal reports whether a and o are the same, apart from their positions.
func (a Arg) Equal(o Arg) bool {
	return a.Name == o.Name && a.Expr.Equal(o.Expr) && a.Type.Equal(o.Type)
}

// Equal reports whether e and o are the same, apart from their positions.
func (e Expr) Equal(o Expr) bool { return e.Variable == o.Variable }

// Equal reports whether t and o are the same, apart from their positions.
func (t TypeSpec) Equal(o TypeSpec) bool { return t.Kind == o.Kind && t.Bits == o.Bits }
