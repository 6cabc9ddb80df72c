package resolve

import (
	mathbits "math/bits"
	"slices"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/arithmetic"
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// narrowed makes the arithmetic of a location that GCC wrote 32 bits wide where it is, and says what is known of its width. changed is false if all
// is as it was written.
func (ev *Evaluator) narrowed(expr []byte, l *loc.Location, t *types.Type) (width arithmetic.Width, changed bool) {
	n := arithmetic.Note{Expr: expr, Encoding: ev.Encoding, WordSize: ev.Arch.WordSize, Registers: registers{ev}}
	was, pieces := l.Expr, slices.Clone(l.Pieces)
	width = n.Narrow(l, t)
	changed = width != arithmetic.AsWritten || !arithmetic.Equal(was, l.Expr)
	for i := range pieces {
		changed = changed || !arithmetic.Equal(pieces[i].Loc.Expr, l.Pieces[i].Loc.Expr)
	}
	return width, changed
}

// eachRegister calls f for each register that a location depends on.
func eachRegister(l *loc.Location, f func(n uint64)) {
	l.Exprs(func(e *loc.Expr) {
		e.Walk(func(n *loc.Expr) {
			if n.Op == ops.Reg {
				f(n.K)
			}
		})
	})
}

// registers is what the code says of registers at the evaluator's spot.
type registers struct{ ev *Evaluator }

func (r registers) Bits(n uint64) uint64 {
	c, err := r.ev.codeOf(r.ev.spot)
	if err != nil {
		return 64
	}
	bits := uint64(c.Held().Bits(n, r.ev.spot.At.Addr))
	if bits > 31 {
		if _, most, ok := c.Held().Counted(n, r.ev.spot.At.Addr); ok {
			return uint64(mathbits.Len64(most))
		}
	}
	return bits
}

func (r registers) Counts(n uint64) (least, most uint64, ok bool) {
	c, err := r.ev.codeOf(r.ev.spot)
	if err != nil {
		return 0, 0, false
	}
	return c.Held().Counted(n, r.ev.spot.At.Addr)
}

func (r registers) Given(n uint64) bool {
	c, err := r.ev.codeOf(r.ev.spot)
	return err == nil && c.Held().Given(n, r.ev.spot.At.Addr)
}

func (r registers) Near(n uint64) (zeros, bits uint8, err error) {
	return r.ev.spot.U.Body.Near(n, r.ev.spot.At.Addr)
}

func (r registers) SetBefore(n uint64) bool {
	return r.ev.spot.U.Img.Code.SetBefore(n, r.ev.spot.At.Addr)
}

func (r registers) Widths(e *loc.Expr, as loc.Op, bits uint8) (narrow, wide, short bool) {
	c, err := r.ev.codeOf(r.ev.spot)
	if err != nil {
		return false, false, false
	}
	return c.WidthsNear(r.ev.spot.At.Addr, &body.Wanted{
		Short:  bits,
		Signed: as == ops.Shra || as == ops.Div || as == ops.Mod, Divides: as != ops.Shr && as != ops.Shra,
		Numbers: func(s *body.State) (of, by body.Number, ok bool) {
			of, ok = numberOf(s, e.A)
			by, also := numberOf(s, e.B)
			return of, by, ok && also
		},
	})
}

// Address looks for a caller's variable that is a pointer and in the register, if that is not the stack pointer.
func (r registers) Address(n uint64) bool {
	s := r.ev.spot
	if n == uint64(r.ev.Arch.SP) {
		return true
	}
	found, err := s.OfCallers(func(x *entries.Scoped) (bool, error) {
		its, ok := s.Placed(x)
		if !ok || len(its.Expr) != 1 || uint64(its.Expr[0]) != uint64(op.DW_OP_reg0)+n {
			return false, nil
		}
		if err := x.Complete(); err != nil {
			return false, err
		}
		t, err := x.U.TypeOf(x.Type)
		if err == nil {
			t, err = t.Resolve()
		}
		return err == nil && t.Kind == types.Pointer, nil //nolint:nilerr // the type is asked for where the variable is
	})
	return found && err == nil
}
