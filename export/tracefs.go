package export

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/cname"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/types"
)

// Tracefs writes one definition for each site, for /sys/kernel/tracing/kprobe_events or
// uprobe_events (Documentation/trace/kprobetrace.rst): "p:probe/vfs_read vfs_read+0
// file=%di:x64". A condition is a filter of each event: a comment has the
// command that sets it. A comment stands for each site, argument or site's condition that they cannot express. If
// several functions have the same symbol, sites of a kernel are relative to _text, as perf's
// are.
func Tracefs(w io.Writer, p *plan.Plan, o Options) error {
	x, err := newExporter(p, o)
	if err != nil {
		return err
	}
	group := p.Definition.Group
	if group == "" {
		group = "probe"
	}
	events := make(names)
	b := bufio.NewWriter(w)
	x.unread(b, "#")
	for i := range p.Sites {
		s := &p.Sites[i]
		if s.Instance < 0 {
			fmt.Fprintf(b, "# %s: %s\n", cname.OneLine(s.String()), cname.OneLine(leftOut(s)))
			continue
		}
		kind := "p"
		if s.Return {
			kind = "r"
		}
		place, err := x.tracePlace(s)
		if why := left(""); errors.As(err, &why) {
			fmt.Fprintf(b, "# %s: %s\n", cname.OneLine(s.String()), cname.OneLine(why.Error()))
			continue
		} else if err != nil {
			return err
		}
		event := events.next(x.eventName(s.Function), maxName)
		line := fmt.Sprintf("%s:%s/%s %s", kind, cname.Word(group), event, place)
		used := taken()
		var fields []traced
		for j := range s.Args {
			a := &s.Args[j]
			text, err := x.traceArg(s, a)
			if why := left(""); errors.As(err, &why) {
				fmt.Fprintf(b, "# %s: %s: %s\n", cname.OneLine(s.String()), cname.OneLine(a.Name), cname.OneLine(why.Error()))
				continue
			} else if err != nil {
				return err
			}
			warn(b, "#", s, a)
			name := used.next(cname.Word(a.Name), maxArgName)
			line += " " + name + "=" + text
			fields = append(fields, traced{a, name, text[strings.LastIndexByte(text, ':')+1:]})
		}
		filter, err := x.filter(s, fields)
		if why := left(""); errors.As(err, &why) {
			fmt.Fprintf(b, "# %s: %s\n", cname.OneLine(s.String()), cname.OneLine(why.Error()))
			continue
		} else if err != nil {
			return err
		}
		fmt.Fprintln(b, line)
		if filter != "" {
			fmt.Fprintf(b, "# echo '%s' >/sys/kernel/tracing/events/%s/%s/filter\n", filter, cname.Word(group), event)
		}
	}
	return x.end(b)
}

// maxArgName bounds an argument's name: MAX_ARG_NAME_LEN is 32 bytes, with the NUL.
const maxArgName = 31

// taken returns the names of fields that the kernel's events have already (reserved_field_names in
// kernel/trace/trace_probe.c). Arguments must have others, each its own.
func taken() names {
	n := make(names)
	for _, field := range []string{"common_type", "common_flags", "common_preempt_count", "common_pid", "common_tgid", "__probe_ip", "__probe_ret_ip", "__probe_func"} {
		n[field] = 1
	}
	return n
}

// tracePath returns a path as a word of a definition. The kernel splits these at what its isspace takes
// for blank, which in its table is 0xa0 too, a byte of many letters, and ends a line at "#"
// (argv_split in lib/argv_split.c, trace_parse_run_command in kernel/trace/trace.c). It knows no quotes.
func tracePath(path string) (string, error) {
	if terminal.Text(path) != path || strings.ContainsAny(path, " #") || strings.IndexByte(path, 0xa0) >= 0 {
		return "", leave("the path %q cannot be written in a definition", path)
	}
	return path, nil
}

// tracePlace returns a site as SYMBOL+OFF, MODULE:SYMBOL+OFF or PATH:OFFSET.
func (x *exporter) tracePlace(s *plan.Site) (string, error) {
	if !x.o.Kernel {
		off, err := s.FileOffset()
		if err != nil {
			return "", leave("no place in the file holds its address")
		}
		path, err := tracePath(x.o.Path)
		place := fmt.Sprintf("%s:%#x", path, off)
		if s.Semaphore != 0 {
			counter, err := counterOffset(s)
			if err != nil {
				return "", leave("no place in the file holds its counter")
			}
			place += fmt.Sprintf("(%#x)", counter)
		}
		return place, err
	}
	prefix := ""
	if x.module != "" {
		prefix = x.module + ":"
		if cname.Word(x.module) != x.module {
			return "", leave("%q is no name of a module", x.module)
		}
	}
	name, off, err := x.symbol(s.Site)
	if err == nil {
		return prefix + name + "+" + strconv.FormatUint(off, 10), nil
	}
	if x.base == "" {
		return "", err
	}
	return x.base + "+" + strconv.FormatUint(s.Addr-x.baseAddr, 10), nil
}

// counterOffset returns the offset in the file of the counter that the kernel has to increment for a site: dwarfloc.Site.Semaphore.
func counterOffset(s *plan.Site) (uint64, error) {
	return inside.File(s.Image).FileOffset(s.Semaphore)
}

// traceArg returns an argument in the syntax of trace events, with its type.
func (x *exporter) traceArg(s *plan.Site, a *plan.Argument) (string, error) {
	d := x.arg(a)
	if d.Expr.Kind == syntax.KindComm {
		return "$comm", nil
	}
	if d.Type.Kind == syntax.TypeString || d.Type.Kind == syntax.TypeUString {
		return x.traceString(s, a, d)
	}
	if d.Type.Count != 0 {
		return "", leave("an array")
	}
	e, err := value(a)
	if err != nil {
		return "", err
	}
	if d.User && reads(e) {
		return "", leave("it reads memory of user space on the way")
	}
	return x.traceValue(s, a, d, e)
}

func (x *exporter) traceValue(s *plan.Site, a *plan.Argument, d *probe.Arg, e *loc.Expr) (string, error) {
	size, letter := a.Size, x.letter(a, d)
	// An extended narrower operand is written as that operand with its own type.
	switch {
	case (e.Op == ops.ZExt || e.Op == ops.SExt) && int(e.Size) <= size:
		if size = int(e.Size); e.Op == ops.SExt {
			letter = "s"
		} else if letter == "s" && size < a.Size {
			letter = "u"
		}
		e = e.A
	case e.Op == ops.Deref && int(e.Size) < size:
		if size = int(e.Size); letter == "s" {
			letter = "u"
		}
	}
	if of, off, bits, ok := field(e); ok && bits == 8*uint64(of.Size) && int(of.Size) <= size {
		e, size = of, int(of.Size) // all of it: no field
		if letter == "s" && size < a.Size {
			letter = "u"
		}
	} else if ok && off+bits <= uint64(8*of.Size) && bits <= uint64(8*a.Size) {
		at, err := x.traceMemory(s, of.A)
		return fmt.Sprintf("%s:b%d@%d/%d", at, bits, off, 8*of.Size), err
	}
	switch size {
	case 1, 2, 4, 8:
	default:
		return "", leave("%d bytes", size)
	}
	typ := ":" + letter + strconv.Itoa(8*size)
	switch {
	case d.Type.Kind == syntax.TypeBitfield:
		typ = ":" + d.Type.String()
	case d.Type.Kind == syntax.TypeSymbol && size == 8 && x.o.Kernel: // uprobe_events refuses the type
		typ = ":symbol"
	}
	switch e.Op {
	case ops.Reg:
		r, err := x.register(e.K)
		return r + typ, err
	case ops.Const:
		return `\` + strconv.FormatInt(int64(e.K), 10) + typ, nil
	case ops.Deref:
		at, err := x.traceMemory(s, e.A)
		return at + typ, err
	}
	return "", leave("arithmetic (%s)", e.Text(x.p.Image.Arch()))
}

// letter returns the first letter of the name of an argument's type.
func (x *exporter) letter(a *plan.Argument, d *probe.Arg) string {
	switch d.Type.Kind {
	case syntax.TypeHex, syntax.TypeSymbol:
		return "x"
	case syntax.TypeSigned:
		return "s"
	case syntax.TypeUnsigned:
		return "u"
	}
	if a.Variable.Role == dwarfloc.RoleGiven {
		return "x"
	}
	if t, err := a.Variable.Type.Resolve(); err == nil {
		switch t.Kind {
		case types.Pointer, types.Float, types.Complex:
			return "x" // for a floating point number its bits
		}
	}
	if a.Signed {
		return "s"
	}
	return "u"
}

func (x *exporter) traceString(s *plan.Site, a *plan.Argument, d *probe.Arg) (string, error) {
	e, err := text(a)
	if err != nil {
		return "", err
	}
	if d.User && reads(e) {
		return "", leave("it reads memory of user space on the way")
	}
	at, err := x.traceMemory(s, e)
	if d.Type.Kind == syntax.TypeUString || d.User && x.o.Kernel {
		return at + ":ustring", err
	}
	return at + ":string", err
}

// traceMemory returns memory at an address: "+8(%di)", "+0(+8(%di))", "@_text+4096".
func (x *exporter) traceMemory(s *plan.Site, addr *loc.Expr) (string, error) {
	base, off := split(addr)
	at := ""
	switch {
	case base.Op == ops.Reg:
		r, err := x.register(base.K)
		if err != nil {
			return "", err
		}
		at = r
	case base.Op == ops.Deref && base.Size == 8:
		inner, err := x.traceMemory(s, base.A)
		if err != nil {
			return "", err
		}
		at = inner
	case base.Op == ops.Addr:
		return x.traceAddress(s, base.K+uint64(off))
	default:
		return "", leave("arithmetic in an address (%s)", addr.Text(x.p.Image.Arch()))
	}
	return fmt.Sprintf("%+d(%s)", off, at), nil
}

// traceAddress returns memory at an address of the image, wherever that is loaded: in a kernel
// relative to _text, in a program relative to the probe: the kernel adds to N of "@+N" the
// difference between the probe's address and its offset in the file.
func (x *exporter) traceAddress(s *plan.Site, addr uint64) (string, error) {
	if x.o.Kernel {
		if x.base == "" || addr < x.baseAddr {
			return "", leave("an address that no symbol is there for")
		}
		return fmt.Sprintf("@%s+%d", x.base, addr-x.baseAddr), nil
	}
	off, err := s.FileOffset()
	if err != nil || off+addr < s.Addr {
		return "", leave("an address that cannot be told from the probe's")
	}
	return fmt.Sprintf("@+%#x", off+addr-s.Addr), nil
}

// register returns a register by its name in the kernel.
func (x *exporter) register(n uint64) (string, error) {
	a := x.p.Image.Arch()
	if r := a.Register(n); r != nil && r.KernelName != "" {
		return "%" + r.KernelName, nil
	}
	return "", leave("the register %s", a.RegisterName(n))
}
