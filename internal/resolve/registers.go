package resolve

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/arithmetic"
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

// registers is what the code says of registers at the evaluator's spot.
type registers struct{ ev *Evaluator }

func (r registers) Bits(n uint64) uint64 {
	c, err := r.ev.codeOf(r.ev.spot)
	if err != nil {
		return 64
	}
	return uint64(c.Held().Bits(n, r.ev.spot.At.Addr))
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
