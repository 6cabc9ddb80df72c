package export

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/cname"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/plan"
)

// Bpftrace writes a program for bpftrace that prints the arguments at each site. Sites that
// share an instance share an action. A comment stands for each site or argument that bpftrace
// cannot express. The condition is a predicate; sites where it cannot be expressed are left out.
func Bpftrace(w io.Writer, p *plan.Plan, o Options) error {
	x, err := newExporter(p, o)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	x.unread(b, "//")
	if slices.ContainsFunc(p.Sites, func(s plan.Site) bool { return s.Instance >= 0 && s.Offset != 0 }) {
		fmt.Fprint(b, "// Inside functions bpftrace attaches only if it is built for that: \"bpftrace --info\" has \"bfd: yes\" then. Debian's is not.\n")
	}
	for i := range p.Sites {
		if s := &p.Sites[i]; s.Instance < 0 {
			fmt.Fprintf(b, "// %s: %s\n", cname.OneLine(s.String()), cname.OneLine(leftOut(s)))
		}
	}
	for i := range p.Instances {
		if err := x.bpftraceInstance(b, &p.Instances[i]); err != nil {
			return err
		}
	}
	return x.end(b)
}

func (x *exporter) bpftraceInstance(w io.Writer, in *plan.Instance) error {
	var places []string
	for _, i := range in.Sites {
		s := &x.p.Sites[i]
		place, err := x.bpftracePlace(s)
		if why := left(""); errors.As(err, &why) {
			fmt.Fprintf(w, "// %s: %s\n", cname.OneLine(s.String()), cname.OneLine(why.Error()))
			continue
		} else if err != nil {
			return err
		}
		places = append(places, place)
	}
	if len(places) == 0 {
		return nil
	}
	s := &x.p.Sites[in.Sites[0]]
	predicate, err := x.predicate(s)
	if why := left(""); errors.As(err, &why) {
		fmt.Fprintf(w, "// %s: %s\n", cname.OneLine(s.String()), cname.OneLine(why.Error()))
		return nil
	} else if err != nil {
		return err
	}
	if predicate != "" {
		predicate = "/" + predicate + "/\n"
	}
	format, values := "", ""
	for j := range s.Args {
		a := &s.Args[j]
		verb, e, err := x.bpftraceArg(a)
		if why := left(""); errors.As(err, &why) {
			fmt.Fprintf(w, "// %s: %s: %s\n", cname.OneLine(s.String()), cname.OneLine(a.Name), cname.OneLine(why.Error()))
			continue
		} else if err != nil {
			return err
		}
		warn(w, "//", s, a)
		format += " " + cname.Word(a.Name) + "=" + verb
		values += ", " + e
	}
	fmt.Fprintf(w, "%s\n%s{\n\tprintf(\"%%s%s\\n\", probe%s);\n}\n", strings.Join(places, ",\n"), predicate, format, values)
	return nil
}

// bpftracePlace returns the probe of a site.
func (x *exporter) bpftracePlace(s *plan.Site) (string, error) {
	if s.Semaphore != 0 {
		return "", leave("a uprobe of bpftrace does not increment the counter that the program looks at: usdt:%s:%s does", x.o.Path, s.Function)
	}
	kind := map[bool]string{false: "kprobe:", true: "kretprobe:"}[s.Return]
	name, off, err := x.symbol(s.Site)
	if err == nil {
		name, err = quoted(name, "")
	}
	if !x.o.Kernel {
		path, no := quoted(x.o.Path, "/.-")
		if no != nil {
			return "", no
		}
		kind = map[bool]string{false: "uprobe:", true: "uretprobe:"}[s.Return] + path + ":"
		if err != nil {
			return fmt.Sprintf("%s%#x", kind, s.Addr), nil
		}
	}
	switch {
	case err != nil:
		return "", err
	case off == 0:
		return kind + name, nil
	}
	return kind + name + "+" + strconv.FormatUint(off, 10), nil
}

// positional is an argument of bpftrace's command line, which it replaces in the place of a probe too.
var positional = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$[0-9#]`) })

// quoted returns a symbol or a path: in quotes, unless all characters that are not of words are among
// bare. In quotes too bpftrace takes some for a pattern, and it knows no way to write a quote.
func quoted(name, bare string) (string, error) {
	other := func(r rune) bool { return cname.Word("a"+string(r)) != "a"+string(r) && !strings.ContainsRune(bare, r) }
	switch {
	case !strings.ContainsFunc(name, other):
		return name, nil
	case terminal.Text(name) != name || strings.ContainsAny(name, `"\*?[]`) || positional().MatchString(name):
		return "", leave("%q cannot be written in a program for bpftrace", name)
	}
	return `"` + name + `"`, nil
}

// bpftraceArg returns an argument as an expression, and its conversion for printf.
func (x *exporter) bpftraceArg(a *plan.Argument) (verb, expr string, err error) {
	d := x.arg(a)
	if d.Expr.Kind == syntax.KindComm {
		return "%s", "comm", nil
	}
	if d.Type.Kind == syntax.TypeString || d.Type.Kind == syntax.TypeUString {
		e, err := text(a)
		if err != nil {
			return "", "", err
		}
		if x.o.Kernel && d.Type.Kind == syntax.TypeUString && reads(e) {
			return "", "", leave("it reads memory of user space on the way")
		}
		t, err := x.bpftraceExpr(e)
		if x.o.Kernel && (d.Type.Kind == syntax.TypeUString || d.User) {
			t = "uptr(" + t + ")"
		}
		return "%s", "str(" + t + ")", err
	}
	if d.Type.Count != 0 || d.Type.Kind == syntax.TypeBitfield {
		return "", "", leave("the type %s", d.Type)
	}
	e, err := value(a)
	if err != nil {
		return "", "", err
	}
	if x.o.Kernel && d.User && reads(e) {
		return "", "", leave("it reads memory of user space")
	}
	t, err := x.bpftraceExpr(e)
	if err != nil {
		return "", "", err
	}
	letter := x.letter(a, d)
	t = cut(t, e, a.Size, letter == "s")
	switch letter {
	case "x":
		return "0x%llx", t, nil
	case "s":
		return "%lld", t, nil
	}
	return "%llu", t, nil
}

// cut truncates a value to its type. It uses arithmetic, which means the same in all versions
// of bpftrace.
func cut(t string, e *loc.Expr, size int, signed bool) string {
	if size >= 8 || e.Op == ops.Const {
		return t
	}
	if !signed {
		if (e.Op == ops.Deref || e.Op == ops.ZExt) && int(e.Size) <= size {
			return t
		}
		return fmt.Sprintf("(%s & %#x)", t, uint64(1)<<(8*size)-1)
	}
	return extended(t, size)
}

// extended returns the sign extension of the low bytes of a value.
func extended(t string, size int) string {
	sign := uint64(1) << (8*size - 1)
	return fmt.Sprintf("(int64)(((%s & %#x) ^ %#x) - %#x)", t, 2*sign-1, sign, sign)
}

// bpftraceSigns are the operations that bpftrace computes like the prologue: unsigned, in 64
// bits.
var bpftraceSigns = map[loc.Op]string{
	ops.Add: "+", ops.Sub: "-", ops.Mul: "*",
	ops.And: "&", ops.Or: "|", ops.Xor: "^",
}

func (x *exporter) bpftraceExpr(e *loc.Expr) (string, error) {
	sub := func(e *loc.Expr) (string, error) { return x.bpftraceExpr(e) }
	switch e.Op {
	case ops.Reg:
		r, err := x.register(e.K)
		return fmt.Sprintf("reg(%q)", strings.TrimPrefix(r, "%")), err
	case ops.Const:
		return strconv.FormatInt(int64(e.K), 10), nil
	case ops.Addr:
		switch {
		case x.o.Kernel && x.base != "" && e.K >= x.baseAddr:
			return fmt.Sprintf("(kaddr(%q) + %d)", x.base, e.K-x.baseAddr), nil
		}
		return "", leave("an address of the image, which moves")
	case ops.Deref:
		a, err := sub(e.A)
		return fmt.Sprintf("*(uint%d*)(%s)", 8*e.Size, a), err
	case ops.ZExt, ops.SExt:
		a, err := sub(e.A)
		if e.Size >= 8 || err != nil {
			return a, err
		}
		if e.Op == ops.SExt {
			return extended(a, int(e.Size)), nil
		}
		return fmt.Sprintf("(%s & %#x)", a, uint64(1)<<(8*e.Size)-1), nil
	case ops.Not:
		a, err := sub(e.A)
		return "(" + a + " ^ -1)", err
	case ops.Neg:
		a, err := sub(e.A)
		return "(0 - " + a + ")", err
	case ops.Shl, ops.Shr:
		if e.B.Op == ops.Const && e.B.K < 64 {
			a, err := sub(e.A)
			sign := map[loc.Op]string{ops.Shl: "<<", ops.Shr: ">>"}[e.Op]
			return fmt.Sprintf("((uint64)%s %s %d)", a, sign, e.B.K), err
		}
	}
	if _, ok := compared[e.Op]; ok {
		return x.comparison(e)
	}
	if name := tasks[ops.TaskNumber(e.K)]; e.Op == ops.Task && name != "" {
		return name, nil
	}
	if e.Op == ops.Select {
		var parts [3]string
		for i, e := range []*loc.Expr{e.A, e.B, e.C} {
			var err error
			if parts[i], err = sub(e); err != nil {
				return "", err
			}
		}
		return fmt.Sprintf("((uint64)(%s) != 0 ? (uint64)(%s) : (uint64)(%s))", parts[0], parts[1], parts[2]), nil
	}
	if sign, ok := bpftraceSigns[e.Op]; ok {
		a, err := sub(e.A)
		if err != nil {
			return "", err
		}
		b, err := sub(e.B)
		return "(" + a + " " + sign + " " + b + ")", err
	}
	return "", leave("arithmetic (%s)", e.Text(x.p.Image.Arch()))
}
