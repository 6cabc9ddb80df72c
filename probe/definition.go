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

// A Point is the place to probe: a function and perhaps a place in it, a line of a
// source file, or an address.
type Point struct {
	Function string // name or pattern of the functions, with its escapes; empty for FILE:LINE and addresses
	Source   string // path or pattern of source files, or empty
	Offset   uint64 // from the function's entry, in bytes
	Line     int    // with HasLine: of Source, or counted from the function's first line
	HasLine  bool
	Lazy     string // a lazy pattern of the lines to probe, or empty
	Address  uint64 // link-time address, with HasAddr
	HasAddr  bool
	Return   bool // where the function returns; the offset is 0
	Pos      int  // where the point begins in the definition's text, in bytes
	LinePos  int  // where the line or the lazy pattern begins, in bytes
}

// An Arg is one argument to fetch.
type Arg struct {
	Name string // the given name, else one made from the expression; unique
	Expr Expr
	Type TypeSpec
	User bool // @user: what pointers lead to is in user space
	Pos  int  // where the argument begins in the definition's text, in bytes
}

// An Expr says what to fetch: something at the site, and a path from there.
type Expr struct {
	Kind ExprKind
	// Name is that of a variable, of a register without its "%", or of a symbol without
	// its "@".
	Name string
	// Number is the offset behind a symbol in bytes (two's complement), an address, an
	// immediate value, or the N of $stackN.
	Number uint64
	Path   []Step
	Pos    int // where the expression begins in the definition's text, in bytes
}

// An ExprKind is the kind of an Expr.
type ExprKind byte

const (
	Variable  ExprKind = iota // a parameter, a local or a global variable
	Register                  // %ax, %x0
	Symbol                    // @SYMBOL[+-OFFSET]: memory there
	Address                   // @ADDRESS: memory there
	Immediate                 // \VALUE
	Retval                    // $retval
	Comm                      // $comm: the name of the task
	Stack                     // $stackN: the Nth word of the stack
	StackAddr                 // $stack: the stack pointer
	Params                    // $params: all parameters of the function
	Vars                      // $vars: all variables in scope
)

// A Step leads from an object to a part of it, or to what it points to.
type Step struct {
	Kind   StepKind
	Member string // of Dot and Arrow
	Index  int64  // of Index, when IndexBy is nil
	// IndexBy is the variable that Index takes its value from, or nil.
	IndexBy *Expr
	Pos     int // where the step's operator begins in the definition's text, in bytes
}

// A StepKind is the kind of a Step.
type StepKind byte

const (
	Dot   StepKind = iota // .MEMBER
	Arrow                 // ->MEMBER
	Index                 // [N], [VARIABLE]
)

// A TypeSpec is the type to fetch and show a value as. The zero TypeSpec is no type:
// the value has the one that the debug information gives.
type TypeSpec struct {
	Kind   TypeKind
	Bits   int // 8, 16, 32 or 64; of a Bitfield, its size
	Offset int // of a Bitfield: bits from the container's least significant
	Whole  int // of a Bitfield: bits of the container
	Count  int // elements of an array, or 0
	Pos    int // where the type begins in the definition's text, in bytes
}

// A TypeKind is the kind of a TypeSpec.
type TypeKind byte

const (
	NoType   TypeKind = iota
	Unsigned          // u8 to u64
	Signed            // s8 to s64
	Hex               // x8 to x64: unsigned, shown in hexadecimal
	Char              // one character
	Bool              // a truth value
	String            // a string in kernel memory, or where the site's code has it
	UString           // a string in user memory
	SymbolOf          // symbol: a code address, shown as symbol+offset; symstr likewise
	Bitfield          // bB@O/S: B bits from bit O of S
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
	switch {
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
	case p.HasLine:
		s += fmt.Sprintf(":%d", p.Line)
	case p.Lazy != "":
		s += ";" + p.Lazy
	case p.Offset != 0:
		s += fmt.Sprintf("+%#x", p.Offset)
	}
	return s
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
	p.Pos, p.LinePos = o.Pos, o.LinePos
	return p == o
}

// Equal reports whether a and o are the same, apart from their positions.
func (a Arg) Equal(o Arg) bool {
	return a.Name == o.Name && a.User == o.User && a.Expr.Equal(o.Expr) && a.Type.Equal(o.Type)
}

// Equal reports whether e and o are the same, apart from their positions.
func (e Expr) Equal(o Expr) bool {
	return e.Kind == o.Kind && e.Name == o.Name && e.Number == o.Number && slices.EqualFunc(e.Path, o.Path, Step.Equal)
}

// Equal reports whether s and o are the same, apart from their positions.
func (s Step) Equal(o Step) bool {
	if s.Kind != o.Kind || s.Member != o.Member || s.Index != o.Index || (s.IndexBy == nil) != (o.IndexBy == nil) {
		return false
	}
	return s.IndexBy == nil || s.IndexBy.Equal(*o.IndexBy)
}

// Equal reports whether t and o are the same, apart from their positions.
func (t TypeSpec) Equal(o TypeSpec) bool {
	t.Pos = o.Pos
	return t == o
}
