// Package export writes plans in other tools' languages, for use without this library:
//
//   - Tracefs: definitions for the kernel's kprobe_events and uprobe_events files,
//   - Bpftrace: a bpftrace program,
//   - C: programs with their prologues as BPF assembly in C,
//   - Go: the prologues as asm.Instructions of cilium/ebpf,
//   - HTML: a page that shows a plan in a browser.
//
// Probe definitions of the kernel and bpftrace programs cannot express everything that a
// prologue can. What they cannot express is left out, and a comment in its place says why: no
// output fetches a value that differs from the plan's. So are a definition's conditions: what they would
// drop is fetched too.
//
// Whoever made an image chose the names in it, and whoever placed it the path. Where a language has no
// way to write a name as that name and nothing else, the site or the argument is left out too, or the
// image with all its sites. In comments they are written as package terminal does.
//
// An argument that may not be what was passed is left out too, unless the plan fetches it (plan.Options.Doubt). Then a comment says
// so where the language has no mark, and C, Go and HTML have those of the plan.
//
// The functions return errors of the writer and errors about damaged debug information.
package export

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"strconv"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/cname"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/place"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
	"github.com/bpfprologue/bpfprologue/types"
)

// Options say what kind of image a plan is for.
type Options struct {
	Kernel bool // the image is a kernel or a kernel module; else a program or a library
	// Path is the path of the program or library on the machine that is probed. "" means the
	// path that the image was opened with.
	Path string
	// Multi is for Object: its programs are in the section "uprobe.multi", which loaders attach at all places at once (libbpf 1.3, Linux 6.6).
	Multi bool
}

// exporter has what all formats need.
type exporter struct {
	p         *plan.Plan
	o         Options
	module    string // of the kernel, or ""
	base      string // symbol that addresses of a kernel are relative to, or ""
	baseAddr  uint64
	stext     uint64 // link-time address of _stext, or 0
	ambiguous map[string]bool
}

// ambiguousSymbols returns the names of several symbols of an image with different addresses.
// They cannot be used to name the place of a probe.
func ambiguousSymbols(img *dwarfloc.Image) map[string]bool {
	out := make(map[string]bool)
	at := make(map[string]uint64)
	for s := range inside.File(img).Symbols() {
		if addr, ok := at[s.Name]; ok && addr != s.Addr {
			out[s.Name] = true
		}
		at[s.Name] = s.Addr
	}
	return out
}

func newExporter(p *plan.Plan, o Options) (*exporter, error) {
	x := &exporter{p: p, o: o, ambiguous: ambiguousSymbols(p.Image)}
	if err := p.Image.Changed(); err != nil { // and not all symbols were seen
		return nil, err
	}
	if o.Kernel && inside.File(p.Image).IsRelocatable() {
		x.module = place.ModuleName(p.Image)
	} else if o.Kernel {
		marks, err := inside.File(p.Image).SymbolAddresses("_text", "_stext")
		if err != nil {
			return nil, err
		}
		x.stext = marks["_stext"]
		for _, name := range []string{"_text", "_stext"} {
			if addr, ok := marks[name]; ok {
				x.base, x.baseAddr = name, addr
				break
			}
		}
	}
	if x.o.Path == "" {
		x.o.Path = p.Image.Path()
		if abs, err := filepath.Abs(x.o.Path); err == nil {
			x.o.Path = abs
		}
	}
	return x, nil
}

// end ends a text. Names of types are asked for without an error.
func (x *exporter) end(b *bufio.Writer) error {
	return cmp.Or(b.Flush(), x.p.Image.Changed())
}

// symbol returns a site as an unambiguous symbol plus offset, or why it has none.
func (x *exporter) symbol(s *dwarfloc.Site) (name string, off uint64, err error) {
	switch {
	case s.Symbol == "" || x.ambiguous[s.Symbol]:
		return "", 0, leave("its symbol %q is not the only one of that name", s.Symbol)
	case !isSymbol(s.Symbol):
		return "", 0, leave("its symbol %q is no name of a function", s.Symbol)
	}
	return s.Symbol, s.Offset, nil
}

// isSymbol reports whether a name is one that compilers give functions. Others mean something else in
// the place of a probe: with a blank it is two words, with a digit in front an address, "*" is all
// functions.
func isSymbol(name string) bool {
	for i, c := range []byte(name) {
		switch {
		case c == '_', c == '.', c == '$', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		case c >= '0' && c <= '9' && i > 0:
		default:
			return false
		}
	}
	return name != ""
}

// eventName returns the name of the definition's events without a number: the definition's,
// or, like perf, one made from the function's.
func (x *exporter) eventName(function string) string {
	d := x.p.Definition
	name := d.Event
	if name == "" {
		name = function
		if d.Point.HasLine {
			name += "_L" + strconv.Itoa(d.Point.Line)
		}
		switch {
		case d.Point.Return:
			name += "__return"
		case d.Point.Exit:
			name += "__exit"
		}
	}
	return cname.Word(name)
}

// names makes names distinct as perf does: NAME, NAME_1, NAME_2.
type names map[string]int

// maxName bounds the name of an event: with a NUL it must fit into MAX_EVENT_NAME_LEN of the kernel, 64
// bytes.
const maxName = 63

// next returns a name of at most some bytes that was not returned before.
func (n names) next(name string, most int) string {
	name = name[:min(len(name), most)]
	for {
		i := n[name]
		n[name]++
		if i == 0 {
			return name
		}
		number := "_" + strconv.Itoa(i)
		numbered := name[:min(len(name), most-len(number))] + number
		if n[numbered] == 0 {
			n[numbered] = 1
			return numbered
		}
	}
}

// leftOut says why a site has no instance.
func leftOut(s *plan.Site) string {
	if s.Refused != nil {
		return "left out: " + s.Refused.Error()
	}
	if s.Never != nil {
		return "left out: the condition never holds there"
	}
	return "left out: an argument is missing"
}

// left is the reason why something is left out.
type left string

func (l left) Error() string { return string(l) }

func leave(format string, args ...any) error { return left(fmt.Sprintf(format, args...)) }

// arg returns the definition's argument that a site's argument comes from.
func (x *exporter) arg(a *plan.Argument) *probe.Arg { return &x.p.Definition.Args[a.DefinitionArg] }

// split splits the constant at the end of a sum from the rest.
func split(e *loc.Expr) (base *loc.Expr, off int64) {
	if e.Op == ops.Add && e.B.Op == ops.Const {
		return e.A, int64(e.B.K)
	}
	return e, 0
}

// field reports whether an expression is a bit-field: size bits of a read from bit off on.
func field(e *loc.Expr) (of *loc.Expr, off, size uint64, ok bool) {
	if e.Op != ops.And || e.B.Op != ops.Const {
		return nil, 0, 0, false
	}
	for size = 1; size < 64 && 1<<size-1 != e.B.K; size++ {
	}
	if size == 64 {
		return nil, 0, 0, false
	}
	of = e.A
	if of.Op == ops.Shr && of.B.Op == ops.Const {
		of, off = of.A, of.B.K
	}
	return of, off, size, of.Op == ops.Deref && off+size <= 8*uint64(of.Size)
}

// value returns the expression of an argument's value for any kind of location. A read of
// memory is as wide as the argument.
func value(a *plan.Argument) (*loc.Expr, error) {
	e, err := whole(a)
	if err == nil && a.LowBit {
		e = &loc.Expr{Op: ops.And, A: e, B: &loc.Expr{Op: ops.Const, K: 1}}
	}
	return e, err
}

func whole(a *plan.Argument) (*loc.Expr, error) {
	v := a.Variable
	switch {
	case !v.Located():
		return nil, leave("%v", v.Reason)
	case missingForDoubt(a):
		return nil, leave("%v: %s", a.Doubt(), a.Doubt().Describe())
	case a.Kind != prologue.KindScalar && a.Kind != prologue.KindObject:
		return nil, leave("%s has elements elsewhere", v.Type)
	}
	switch v.Loc.Kind {
	case loc.KindRegister, loc.KindValue, loc.KindConstant:
		if a.Size < 1 || a.Size > 8 {
			return nil, leave("%s has %d bytes", v.Type, a.Size)
		}
		return v.Loc.Expr, nil
	case loc.KindMemory:
		switch a.Size {
		case 1, 2, 4, 8:
			return &loc.Expr{Op: ops.Deref, Size: uint8(a.Size), A: v.Loc.Expr}, nil
		}
		return nil, leave("%s has %d bytes in memory", v.Type, a.Size)
	}
	return nil, leave("it is put together (%v)", v.Loc.Kind)
}

// missingForDoubt reports whether the plan takes an argument for a missing one because it is doubtful.
func missingForDoubt(a *plan.Argument) bool { return a.Doubtful && a.Reason.Code == a.Doubt() }

// warn writes a comment where an argument is doubtful and fetched: the output itself has no room for a mark.
func warn(w io.Writer, sign string, s *plan.Site, a *plan.Argument) {
	if a.Doubtful && a.Fetched() {
		fmt.Fprintf(w, "%s %s: %s: may not be what was passed: %v: %s\n", sign, cname.OneLine(s.String()), cname.OneLine(a.Name), a.Doubt(), a.Doubt().Describe())
	}
}

// text returns the expression of the address of a string: the value of a pointer, or the
// address of an array.
func text(a *plan.Argument) (*loc.Expr, error) {
	v := a.Variable
	switch {
	case !v.Located():
		return nil, leave("%v", v.Reason)
	case missingForDoubt(a):
		return nil, leave("%v: %s", a.Doubt(), a.Doubt().Describe())
	}
	t, err := v.Type.Resolve()
	if err != nil {
		return nil, err
	}
	e := v.Loc.Expr
	switch {
	case t.Kind == types.Array && v.Loc.Kind == loc.KindMemory:
		return e, nil
	case t.Kind != types.Pointer:
		return nil, leave("%s is no pointer and no array in memory", v.Type)
	case v.Loc.Kind == loc.KindMemory:
		return &loc.Expr{Op: ops.Deref, Size: 8, A: e}, nil
	case e != nil:
		return e, nil
	}
	return nil, leave("it is put together (%v)", v.Loc.Kind)
}

// reads reports whether an expression reads memory.
func reads(e *loc.Expr) bool {
	yes := false
	e.Walk(func(n *loc.Expr) { yes = yes || n.Op == ops.Deref })
	return yes
}
