package prologue

import (
	"fmt"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
)

// maxNodes bounds the operations of one argument, shared ones counted each time
// they occur. It keeps jumps within 16 bits: no operation takes more than 13
// instructions.
const maxNodes = 2048

// lowering turns one argument's location into an expression for its value.
type lowering struct {
	arch  *arch.Arch
	be    bool
	pool  *nodes
	nodes int
}

// refusal is why an argument cannot be fetched, passed up as an error.
type refusal struct{ reason dwarfloc.Reason }

func (r *refusal) Error() string { return r.reason.String() }

func refuse(code dwarfloc.ReasonCode, format string, args ...any) error {
	return &refusal{dwarfloc.Reason{Code: code, Detail: fmt.Sprintf(format, args...)}}
}

// lower returns the expression of an argument's value, extended to 64 bits as its
// type says, or the reason why there is none.
func (p *nodes) lower(arg *Arg, o *Options) (*node, dwarfloc.Reason) {
	switch {
	case arg.Kind == Comm:
		return nil, dwarfloc.Reason{Code: dwarfloc.TooLarge, Detail: "a task's name needs the record convention"}
	case arg.Loc.Kind == dwarfloc.KindNone:
		if arg.Reason.Code == dwarfloc.Located {
			return nil, dwarfloc.Reason{Code: dwarfloc.OptimizedOut}
		}
		return nil, arg.Reason
	case arg.Kind != Scalar:
		return nil, dwarfloc.Reason{Code: dwarfloc.TooLarge, Detail: "strings and objects need the record convention"}
	}
	l := lowering{arch: o.Arch, be: o.BigEndian, pool: p}
	n, err := l.value(arg)
	if err != nil {
		return nil, err.(*refusal).reason
	}
	op := dwarfloc.OpZExt
	if arg.Signed {
		op = dwarfloc.OpSExt
	}
	return p.extend(op, n, arg.Size), dwarfloc.Reason{}
}

func (l *lowering) value(arg *Arg) (*node, error) {
	loc := &arg.Loc
	switch {
	case loc.Kind == dwarfloc.KindImplicitPointer:
		return nil, &refusal{dwarfloc.Reason{Code: dwarfloc.ImplicitPointer}}
	case arg.Size <= 0:
		return nil, &refusal{dwarfloc.Reason{Code: dwarfloc.IncompleteType}}
	case arg.Size > 8:
		return nil, refuse(dwarfloc.TooLarge, "%d bytes, a register holds 8", arg.Size)
	}
	switch loc.Kind {
	case dwarfloc.KindRegister, dwarfloc.KindValue, dwarfloc.KindConstant:
		return l.expr(loc.Expr)
	case dwarfloc.KindMemory:
		a, err := l.expr(loc.Expr)
		if err != nil {
			return nil, err
		}
		return l.pool.deref(a, arg.Size), nil
	case dwarfloc.KindBytes:
		return l.bits(loc, 0, uint64(8*arg.Size))
	case dwarfloc.KindPieces:
		return l.pieces(loc.Pieces, 0, uint64(8*arg.Size))
	}
	return nil, refuse(dwarfloc.Unsupported, "a location of kind %d", loc.Kind)
}

// expr turns an expression into nodes.
func (l *lowering) expr(e *dwarfloc.Expr) (*node, error) {
	if l.nodes++; l.nodes > maxNodes {
		return nil, refuse(dwarfloc.Unsupported, "an expression of more than %d operations", maxNodes)
	}
	if e == nil {
		return nil, refuse(dwarfloc.Unsupported, "an operation without its operand")
	}
	switch e.Op {
	case dwarfloc.OpConst:
		return l.pool.constant(e.K), nil
	case dwarfloc.OpAddr:
		return l.pool.imageAddr(e.K), nil
	case dwarfloc.OpReg:
		r := l.arch.Register(e.K)
		switch {
		case r == nil:
			return nil, refuse(dwarfloc.NoRegister, "DWARF register %d", e.K)
		case r.Class == arch.Vector:
			return nil, refuse(dwarfloc.VectorRegister, "%s", l.arch.RegisterName(e.K))
		case r.Offset < 0:
			return nil, refuse(dwarfloc.NoRegister, "%s", l.arch.RegisterName(e.K))
		}
		return l.pool.register(e.K), nil
	}
	a, err := l.expr(e.A)
	if err != nil {
		return nil, err
	}
	switch e.Op {
	case dwarfloc.OpDeref, dwarfloc.OpZExt, dwarfloc.OpSExt:
		switch {
		case e.Size == 0 || e.Size > 8:
			return nil, refuse(dwarfloc.Unsupported, "a value of %d bytes", e.Size)
		case e.Op == dwarfloc.OpDeref:
			return l.pool.deref(a, int(e.Size)), nil
		}
		return l.pool.extend(e.Op, a, int(e.Size)), nil
	case dwarfloc.OpNeg, dwarfloc.OpNot:
		return l.pool.unaryOp(e.Op, a), nil
	}
	if !e.Op.Binary() && e.Op != dwarfloc.OpSelect {
		return nil, refuse(dwarfloc.Unsupported, "operation %d", e.Op)
	}
	b, err := l.expr(e.B)
	if err != nil {
		return nil, err
	}
	if e.Op.Binary() {
		return l.pool.binaryOp(e.Op, a, b), nil
	}
	c, err := l.expr(e.C)
	if err != nil {
		return nil, err
	}
	return l.pool.choose(a, b, c), nil
}
