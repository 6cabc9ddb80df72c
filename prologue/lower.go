package prologue

import (
	"fmt"

	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
)

// maxNodes bounds the operations of one argument; shared ones count each time they occur. It
// keeps jumps within 16 bits: no operation takes more than 15 instructions.
const maxNodes = 2048

// lowering turns arguments' locations into expressions for their values, in the form with
// the fewest operations, and these into nodes. It reuses its memory for each prologue.
type lowering struct {
	nodes
	b    eval.Builder
	o    *Options
	left int // how many more operations the argument may have
}

// begin makes the lowering ready for a prologue.
func (l *lowering) begin(o *Options) {
	l.reset()
	l.b.Reset()
	l.b.Simplify, l.b.BigEndian, l.b.RegisterBytes = true, o.BigEndian, o.Arch.WordSize
	l.o = o
}

// refusal is why an argument cannot be fetched, passed up as an error.
type refusal struct{ reason loc.Reason }

func (r *refusal) Error() string { return r.reason.String() }

func refuse(code loc.ReasonCode, format string, args ...any) error {
	return &refusal{loc.Reason{Code: code, Detail: fmt.Sprintf(format, args...)}}
}

func refused(r loc.Reason) error {
	if r.Code == reasons.None {
		return nil
	}
	return &refusal{r}
}

// lower returns the expression of an argument's value, extended to 64 bits by its type, or
// the reason why there is none.
func (l *lowering) lower(arg *Arg) (*node, loc.Reason) {
	switch {
	case arg.Kind == KindComm:
		return nil, loc.Reason{Code: reasons.TooLarge, Detail: "a task's name needs the record convention"}
	case arg.Loc.Kind == loc.KindNone:
		if arg.Reason.Code == reasons.None {
			return nil, loc.Reason{Code: reasons.OptimizedOut}
		}
		return nil, arg.Reason
	case arg.Kind != KindScalar:
		return nil, loc.Reason{Code: reasons.TooLarge, Detail: "strings and objects need the record convention"}
	}
	e, err := l.value(arg)
	if err != nil {
		return nil, err.(*refusal).reason
	}
	if e = l.b.Extend(e, arg.Size, arg.Signed); arg.LowBit {
		e = l.b.Binary(ops.And, e, l.b.Const(1))
	}
	return l.of(e), loc.Reason{}
}

func (l *lowering) value(arg *Arg) (*loc.Expr, error) {
	switch {
	case arg.Loc.Kind == loc.KindImplicitPointer:
		return nil, refused(loc.Reason{Code: reasons.ImplicitPointer})
	case arg.Size <= 0:
		return nil, refused(loc.Reason{Code: reasons.IncompleteType})
	case arg.Size > 8:
		return nil, refuse(reasons.TooLarge, "%d bytes, a register holds 8", arg.Size)
	}
	at, err := l.location(&arg.Loc)
	if err != nil {
		return nil, err
	}
	e, r := l.b.Bits(&at, 0, 8*uint64(arg.Size))
	switch at.Kind {
	case loc.KindRegister, loc.KindValue, loc.KindConstant:
		e = at.Expr // the type extends it
	}
	return e, refused(r)
}

// location rewrites the expressions of a location.
func (l *lowering) location(from *loc.Location) (to loc.Location, err error) {
	l.left = maxNodes
	return l.rewrite(from)
}

func (l *lowering) rewrite(from *loc.Location) (to loc.Location, err error) {
	to = *from
	switch from.Kind {
	case loc.KindRegister, loc.KindValue, loc.KindConstant, loc.KindMemory:
		to.Expr, err = l.expr(from.Expr)
	case loc.KindPieces:
		to.Pieces = make([]loc.Piece, len(from.Pieces))
		for i := range from.Pieces {
			p := &to.Pieces[i]
			*p = from.Pieces[i]
			if p.Loc, err = l.rewrite(&from.Pieces[i].Loc); err != nil {
				return to, err
			}
			l.left -= 4 // to shift and mask it
		}
	case loc.KindNone, loc.KindBytes, loc.KindImplicitPointer:
	default:
		err = refuse(reasons.Unsupported, "a location of kind %d", from.Kind)
	}
	return to, err
}

// expr rewrites an expression, or refuses one that a program cannot compute.
func (l *lowering) expr(e *loc.Expr) (*loc.Expr, error) {
	if l.left--; l.left < 0 {
		return nil, refuse(reasons.Unsupported, "an expression of more than %d operations", maxNodes)
	}
	if e == nil {
		return nil, refuse(reasons.Unsupported, "an operation without its operand")
	}
	switch e.Op {
	case ops.Const:
		return l.b.Const(e.K), nil
	case ops.Addr:
		if l.o.Moves {
			return l.b.Register(uint64(l.o.Arch.PC), int64(e.K-l.o.At)), nil
		}
		return l.b.Addr(e.K), nil
	case ops.Reg:
		return l.b.Register(e.K, 0), refused(eval.CheckRegister(l.o.Arch, e.K))
	case ops.Task:
		if e.K > uint64(ops.TaskComm)+1 {
			return nil, refuse(reasons.Unsupported, "number %d of a task", e.K)
		}
		return l.b.Task(ops.TaskNumber(e.K)), nil
	case ops.Glob:
		if _, err := compileGlob(e.Pattern()); err != nil {
			return nil, err
		}
		if l.left -= globWeight; l.left < 0 {
			return nil, refuse(reasons.Unsupported, "too many patterns")
		}
		to := *e
		if e.A != nil {
			var err error
			if to.A, err = l.expr(e.A); err != nil {
				return nil, err
			}
		}
		return &to, nil
	}
	a, err := l.expr(e.A)
	if err != nil {
		return nil, err
	}
	if e.Op == ops.Caller {
		return l.caller(a, e.B)
	}
	switch e.Op {
	case ops.Deref, ops.ZExt, ops.SExt:
		switch {
		case e.Size == 0 || e.Size > 8:
			return nil, refuse(reasons.Unsupported, "a value of %d bytes", e.Size)
		case e.Op == ops.Deref:
			return l.b.Deref(a, int(e.Size)), nil
		}
		return l.b.Extend(a, int(e.Size), e.Op == ops.SExt), nil
	case ops.Neg, ops.Not, ops.Clz:
		return l.b.Unary(e.Op, a), nil
	case ops.Text:
		return l.b.Text(a), nil
	}
	if !isBinary(e.Op) && e.Op != ops.Select {
		return nil, refuse(reasons.Unsupported, "operation %d", e.Op)
	}
	b, err := l.expr(e.B)
	if err != nil {
		return nil, err
	}
	if isBinary(e.Op) {
		return l.b.Binary(e.Op, a, b), nil
	}
	c, err := l.expr(e.C)
	if err != nil {
		return nil, err
	}
	return l.b.Select(a, b, c), nil
}
