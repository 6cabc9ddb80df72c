package export

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/cname"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/plan"
)

// tests returns the expressions that must be other than 0 at a site for its condition to hold.
func (x *exporter) tests(s *plan.Site) ([]*loc.Expr, error) {
	var out []*loc.Expr
	for i := range s.If {
		switch v := s.If[i].Variable; {
		case !v.Located() && x.p.Definition.Options.Pass:
		case !v.Located():
			return nil, leave("the condition %s: %v", s.If[i].Expr, v.Reason)
		case v.Loc.Kind != loc.KindConstant:
			out = append(out, v.Loc.Expr)
		}
	}
	return out, nil
}

// conditional is what is left out for a condition that cannot be expressed: without it hits would be too many.
func (x *exporter) conditional(err error) error {
	return leave("the condition %s: %v", x.p.Definition.Options.If, err)
}

// predicate returns a site's condition for bpftrace, or "".
func (x *exporter) predicate(s *plan.Site) (string, error) {
	tests, err := x.tests(s)
	if err != nil {
		return "", err
	}
	var all []string
	for _, e := range tests {
		text, err := x.bpftraceExpr(e)
		if err != nil {
			return "", x.conditional(err)
		}
		all = append(all, text)
	}
	return strings.Join(all, " && "), nil
}

// compared are comparisons, as C and bpftrace write them, and whether they are of signed numbers.
var compared = map[loc.Op]struct {
	sign   string
	signed bool
}{
	ops.Eq: {"==", false}, ops.Ne: {"!=", false},
	ops.Lt: {"<", true}, ops.Le: {"<=", true}, ops.Gt: {">", true}, ops.Ge: {">=", true},
	ops.ULt: {"<", false}, ops.ULe: {"<=", false}, ops.UGt: {">", false}, ops.UGe: {">=", false},
}

// comparison returns a comparison for bpftrace, whose operands have signs.
func (x *exporter) comparison(e *loc.Expr) (string, error) {
	c := compared[e.Op]
	kind := map[bool]string{false: "uint64", true: "int64"}[c.signed]
	a, err := x.bpftraceExpr(e.A)
	if err != nil {
		return "", err
	}
	b, err := x.bpftraceExpr(e.B)
	return fmt.Sprintf("((%s)(%s) %s (%s)(%s))", kind, a, c.sign, kind, b), err
}

// tasks are the numbers of the current task as bpftrace names them. Its nsecs is another clock than $time, one that goes on while the machine
// is suspended.
var tasks = map[ops.TaskNumber]string{
	ops.TaskPID: "pid", ops.TaskTID: "tid", ops.TaskUID: "uid", ops.TaskGID: "gid", ops.TaskCPU: "cpu", ops.TaskCgroup: "cgroup",
}

// traced is an argument of an event: its field, and its type there.
type traced struct {
	arg        *plan.Argument
	name, kind string
}

// filter returns a site's condition as a filter of its event, or "". Filters compare fields with numbers (Documentation/trace/events.rst).
func (x *exporter) filter(s *plan.Site, fields []traced) (string, error) {
	tests, err := x.tests(s)
	if err != nil {
		return "", err
	}
	var all []string
	for _, e := range tests {
		text, err := x.filterOf(e, fields)
		if err != nil {
			return "", x.conditional(err)
		}
		all = append(all, text)
	}
	return strings.Join(all, " && "), nil
}

func (x *exporter) filterOf(e *loc.Expr, fields []traced) (string, error) {
	c, ok := compared[e.Op]
	switch {
	case !ok:
		return "", leave("a filter has only comparisons that && combines")
	case e.B.Op != ops.Const:
		return "", leave("a filter compares with a number")
	case e.Op == ops.Ne && e.B.K == 0:
		bits := e.A
		if of := bits.A; bits.Op == ops.ZExt && of.Op == ops.And && of.B.Op == ops.Const && of.B.K>>(8*bits.Size) == 0 {
			bits = of
		}
		if bits.Op != ops.And || bits.B.Op != ops.Const {
			break
		}
		if f, extended := x.fieldOf(bits.A, fields); f != nil && extended != ops.SExt && fits("u"+f.kind[1:], bits.B.K) {
			return fmt.Sprintf("%s & %#x", f.name, bits.B.K), nil
		}
	}
	f, extended := x.fieldOf(e.A, fields)
	if f == nil {
		return "", leave("a filter compares arguments: give it %s as one", e.A.Text(x.p.Image.Arch()))
	}
	if !fits(f.kind, e.B.K) {
		return "", leave("a filter compares the field %s:%s with numbers of its type", f.name, f.kind)
	}
	equality, signed := e.Op == ops.Eq || e.Op == ops.Ne, strings.HasPrefix(f.kind, "s")
	switch {
	case extended == ops.SExt && (!signed || !c.signed && !equality), extended == ops.ZExt && (signed || c.signed && int64(e.B.K) < 0),
		extended == ops.Const && !equality && signed != c.signed:
		return "", leave("a filter compares the field %s:%s with the sign of its type", f.name, f.kind)
	}
	number := strconv.FormatUint(e.B.K, 10)
	if signed {
		number = strconv.FormatInt(int64(e.B.K), 10)
	}
	return f.name + " " + c.sign + " " + number, nil
}

// fits reports whether a type of a field, as "u32" or "b3@2/8", has a number. The kernel takes the lower bits of others.
func fits(kind string, n uint64) bool {
	digits := len(kind) - len(strings.TrimLeft(kind[1:], "0123456789")) - 1
	bits, err := strconv.Atoi(kind[1 : 1+digits])
	switch {
	case err != nil || bits < 1 || bits > 64:
		return false
	case kind[0] == 's':
		return int64(n)>>(bits-1) == 0 || int64(n)>>(bits-1) == -1
	}
	return bits == 64 || n>>bits == 0
}

// fieldOf returns the field that has the value of an expression, and how the expression extends it: ops.ZExt, ops.SExt, or ops.Const for
// all 64 bits.
func (x *exporter) fieldOf(e *loc.Expr, fields []traced) (*traced, loc.Op) {
	arch := x.p.Image.Arch()
	for i := range fields {
		f := &fields[i]
		v, err := value(f.arg)
		if err != nil || f.kind == "" {
			continue
		}
		size, of, extended := 8, e, loc.Op(ops.Const)
		switch e.Op {
		case ops.ZExt, ops.SExt:
			size, of, extended = int(e.Size), e.A, e.Op
		case ops.Deref:
			size = int(e.Size)
			if size < 8 {
				extended = ops.ZExt
			}
		}
		if size == f.arg.Size && (of.Text(arch) == v.Text(arch) || e.Text(arch) == v.Text(arch)) {
			return f, extended
		}
	}
	return nil, 0
}

// unread writes a comment if a condition reads memory: bpftrace, and events, take what they cannot read for 0.
func (x *exporter) unread(w io.Writer, sign string) {
	for i := range x.p.Sites {
		tests, err := x.tests(&x.p.Sites[i])
		for _, e := range tests {
			if err == nil && reads(e) {
				fmt.Fprintf(w, "%s in the condition %s memory that cannot be read counts as 0\n", sign, cname.OneLine(x.p.Definition.Options.If.String()))
				return
			}
		}
	}
}
