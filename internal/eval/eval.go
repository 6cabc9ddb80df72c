package eval

import (
	"errors"
	"fmt"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
)

// The evaluator turns a DWARF expression (DWARF 5 sections 2.5 and 2.6) into a
// Location. It runs the stack machine on expressions instead of numbers; what needs
// the machine's state becomes a node that a prologue computes.
//
// Where DWARF 5 leaves a choice, the evaluator follows GCC and GDB: on values without
// a type, DW_OP_mod is unsigned (GCC expands a signed modulo into over over div mul
// minus) and DW_OP_shr is logical, but DW_OP_div and the comparisons are signed.

// Context provides what an expression needs to know about the place it is evaluated for:
// each method returns a value, the reason why there is none, or an error.
type Context interface {
	// FrameBase returns the value of the function's DW_AT_frame_base, for DW_OP_fbreg.
	FrameBase() (*loc.Expr, loc.Reason, error)
	// Base returns what a register counts as in an address that is relative to it, or nil if that is what it has.
	Base(n uint64) (*loc.Expr, loc.Reason, error)
	// CallFrame returns the canonical frame address, for DW_OP_call_frame_cfa.
	CallFrame() (*loc.Expr, loc.Reason, error)
	// AtEntry reports whether the place is the first instruction of its function, where
	// registers still hold what DW_OP_entry_value asks for.
	AtEntry() (bool, error)
	// EntryValue returns what an expression, a register or memory at one, was where the function was called, and ParameterRef what
	// its callers passed for the parameter whose entry is off bytes from the start of the unit. They are asked elsewhere than at
	// the entry.
	EntryValue(expr []byte) (*loc.Expr, loc.Reason, error)
	ParameterRef(off uint64) (*loc.Expr, loc.Reason, error)
	// BaseType returns the type whose entry is off bytes from the start of its unit, for
	// typed operations.
	BaseType(off uint64) (BaseType, loc.Reason, error)
	// Address returns an entry of .debug_addr, for DW_OP_addrx.
	Address(index uint64) (uint64, error)
}

// BaseType is an integer type.
type BaseType struct {
	Size   int // bytes: 1 to 8
	Signed bool
	Bits   uint64 // if these are fewer than its bytes have; else 0
}

// ErrInvalidExpression is wrapped by Evaluate's error if the expression violates DWARF's
// rules. Other errors come from the Context.
var ErrInvalidExpression = errors.New("invalid expression")

// Limits for one expression. A kernel's longest has about 200 operations; a damaged
// one may loop.
const (
	maxOps      = 4096
	maxStack    = 256
	maxExprSize = 1024 // nodes in the result, shared ones counted each time
	maxNesting  = 16   // entry values and frame bases inside each other
	maxPieces   = 64
)

// Evaluator evaluates expressions for one place at a time, on one goroutine.
type Evaluator struct {
	Builder
	Arch     *arch.Arch
	Encoding Encoding
	Context  Context

	stacks [maxNesting + 1][]operand
	depth  int // nesting of expressions being evaluated
	ops    int // operations run for the outermost one
}

// Evaluate evaluates a location expression into l, which is valid until the Builder is
// Reset. The Context's methods may call it.
func (ev *Evaluator) Evaluate(expr []byte, l *loc.Location) (loc.Reason, error) {
	if ev.depth > maxNesting {
		return unavailable(reasons.Unsupported, "expressions nested more than %d deep", maxNesting), nil
	}
	if ev.depth == 0 {
		ev.ops = 0
	}
	if len(expr) == 0 {
		return loc.Reason{Code: reasons.OptimizedOut}, nil
	}
	m := machine{ev: ev, expr: expr, stack: ev.stacks[ev.depth][:0]}
	ev.depth++
	st := m.location(l)
	ev.depth--
	ev.stacks[ev.depth] = m.stack[:0]
	if st == nil && ev.depth == 0 && size(l, maxExprSize+1) > maxExprSize {
		st = unsupported("an expression of more than %d operations", maxExprSize)
	}
	if st != nil {
		*l = loc.Location{}
		return st.reason, st.err
	}
	return loc.Reason{}, nil
}

// CheckRegister returns the reason why a probe cannot read the register with DWARF number
// n, or the zero Reason.
func CheckRegister(a *arch.Arch, n uint64) loc.Reason {
	r := a.Register(n)
	switch {
	case r == nil:
		return unavailable(reasons.NoRegister, "DWARF register %d", n)
	case r.Vector:
		return unavailable(reasons.VectorRegister, "%s", a.RegisterName(n))
	case r.Offset < 0:
		return unavailable(reasons.NoRegister, "%s", a.RegisterName(n))
	}
	return loc.Reason{}
}

// stop says why an evaluation ended without a location.
type stop struct {
	reason loc.Reason
	err    error
}

func stopFor(r loc.Reason, err error) *stop {
	if r.Code == reasons.None && err == nil {
		return nil
	}
	return &stop{r, err}
}

func unsupported(format string, args ...any) *stop {
	return &stop{reason: unavailable(reasons.Unsupported, format, args...)}
}

func invalid(format string, args ...any) *stop {
	return &stop{err: fmt.Errorf("%w: %s", ErrInvalidExpression, fmt.Sprintf(format, args...))}
}

// size counts the nodes of a location's expressions, up to limit.
func size(l *loc.Location, limit int) int {
	n := sizeOfExpr(l.Expr, limit)
	for i := range l.Pieces {
		n += size(&l.Pieces[i].Loc, limit-n)
	}
	return n
}

// sizeOfExpr counts an expression's nodes, up to limit.
func sizeOfExpr(e *loc.Expr, limit int) int {
	if e == nil || limit <= 0 {
		return 0
	}
	n := 1
	for _, c := range [...]*loc.Expr{e.A, e.B, e.C} {
		n += sizeOfExpr(c, limit-n)
	}
	return n
}
