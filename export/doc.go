// Package export writes a plan in the languages of others, to use without this
// library:
//
//   - Tracefs: definitions for the kernel's kprobe_events and uprobe_events files,
//   - Bpftrace: a bpftrace program,
//   - C: programs with their prologues as BPF assembly in C,
//   - Go: the prologues as asm.Instructions of cilium/ebpf.
//
// A probe definition of the kernel and bpftrace cannot express all that a prologue
// can. What they cannot express is left out, and a comment in its place says why: no
// output fetches another value than the plan's instructions do.
package export

import (
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/cname"
	"github.com/bpfprologue/bpfprologue/internal/place"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
)

// Options say what an image's code is part of.
type Options struct {
	Kernel bool   // a kernel or a module of it; else a program or a library
	Path   string // of the program or library on the machine that is probed; "": as the image was opened
}

// exporter is what the formats share.
type exporter struct {
	p         *plan.Plan
	o         Options
	module    string // of the kernel, or ""
	base      string // symbol that a kernel's other code is relative to, or ""
	baseAddr  uint64
	ambiguous map[string]bool
}

// ambiguousSymbols returns the names that several functions or labels of an image have, at
// different addresses: such a name does not say where a probe is.
func ambiguousSymbols(img *dwarfloc.Image) map[string]bool {
	out := make(map[string]bool)
	at := make(map[string]uint64)
	for s := range img.Symbols() {
		if addr, ok := at[s.Name]; ok && addr != s.Addr {
			out[s.Name] = true
		}
		at[s.Name] = s.Addr
	}
	return out
}

func newExporter(p *plan.Plan, o Options) (*exporter, error) {
	x := &exporter{p: p, o: o, ambiguous: ambiguousSymbols(p.Image)}
	if o.Kernel && p.Image.IsRelocatable() {
		x.module = place.ModuleName(p.Image.Path())
	} else if o.Kernel {
		marks, err := p.Image.SymbolAddresses("_text", "_stext")
		if err != nil {
			return nil, err
		}
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

// symbol is a site as an unambiguous symbol plus offset; ok is false when there is
// none.
func (x *exporter) symbol(s *dwarfloc.Site) (name string, off uint64, ok bool) {
	if s.Symbol != "" && !x.ambiguous[s.Symbol] {
		return s.Symbol, s.Offset, true
	}
	return "", 0, false
}

// eventName is the name of the definition's events, without a number: its own, or the
// function's, as perf has it.
func (x *exporter) eventName(function string) string {
	d := x.p.Definition
	name := d.Event
	if name == "" {
		name = function
		if d.Point.HasLine {
			name += "_L" + strconv.Itoa(d.Point.Line)
		}
		if d.Point.Return {
			name += "__return"
		}
	}
	return cname.Word(name)
}

// names numbers what has one name: NAME, NAME_1, NAME_2, as perf does.
type names map[string]int

// maxName is how long a name may be: MAX_EVENT_NAME_LEN of the kernel, with its NUL
// byte and a number.
const maxName = 56

func (n names) next(name string) string {
	name = name[:min(len(name), maxName)]
	for {
		i := n[name]
		n[name]++
		if i == 0 {
			return name
		}
		numbered := name + "_" + strconv.Itoa(i)
		if n[numbered] == 0 {
			n[numbered] = 1
			return numbered
		}
	}
}

// left is why something is left out of a format.
type left string

func (l left) Error() string { return string(l) }

func leave(format string, args ...any) error { return left(fmt.Sprintf(format, args...)) }

// arg is the definition's argument that an argument of a site stands for.
func (x *exporter) arg(a *plan.Argument) *probe.Arg { return &x.p.Definition.Args[a.DefinitionArg] }

// split takes a constant off the end of a sum.
func split(e *loc.Expr) (base *loc.Expr, off int64) {
	if e.Op == loc.OpAdd && e.B.Op == loc.OpConst {
		return e.A, int64(e.B.K)
	}
	return e, 0
}

// field recognises a bit-field: size bits from bit off on of what is read.
func field(e *loc.Expr) (of *loc.Expr, off, size uint64, ok bool) {
	if e.Op != loc.OpAnd || e.B.Op != loc.OpConst {
		return nil, 0, 0, false
	}
	for size = 1; size < 64 && 1<<size-1 != e.B.K; size++ {
	}
	if size == 64 {
		return nil, 0, 0, false
	}
	of = e.A
	if of.Op == loc.OpShr && of.B.Op == loc.OpConst {
		of, off = of.A, of.B.K
	}
	return of, off, size, of.Op == loc.OpDeref && off+size <= 8*uint64(of.Size)
}

// value is the expression of an argument's value, of whatever kind its location is.
// Memory is as wide as the argument.
func value(a *plan.Argument) (*loc.Expr, error) {
	v := a.Variable
	if !v.Located() {
		return nil, leave("%v", v.Reason)
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
			return &loc.Expr{Op: loc.OpDeref, Size: uint8(a.Size), A: v.Loc.Expr}, nil
		}
		return nil, leave("%s has %d bytes in memory", v.Type, a.Size)
	}
	return nil, leave("it is put together (%v)", v.Loc.Kind)
}

// text is the expression of the address of a string: what a pointer holds, or where
// an array is.
func text(a *plan.Argument) (*loc.Expr, error) {
	v := a.Variable
	if !v.Located() {
		return nil, leave("%v", v.Reason)
	}
	t, err := v.Type.Resolve()
	if err != nil {
		return nil, err
	}
	e := v.Loc.Expr
	switch {
	case t.Kind == dwarfloc.TypeArray && v.Loc.Kind == loc.KindMemory:
		return e, nil
	case t.Kind != dwarfloc.TypePointer:
		return nil, leave("%s is no pointer and no array in memory", v.Type)
	case v.Loc.Kind == loc.KindMemory:
		return &loc.Expr{Op: loc.OpDeref, Size: 8, A: e}, nil
	case e != nil:
		return e, nil
	}
	return nil, leave("it is put together (%v)", v.Loc.Kind)
}

// reads reports whether an expression reads memory.
func reads(e *loc.Expr) bool {
	yes := false
	e.Walk(func(n *loc.Expr) { yes = yes || n.Op == loc.OpDeref })
	return yes
}
