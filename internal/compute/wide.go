package compute

import (
	"math"
	"math/big"

	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// wideBytes is the size of the integers that have two words. They are compared, and nothing else is computed with them.
const wideBytes = 16

// wide is an operand of a comparison, extended to two words.
type wide struct {
	low, high *loc.Expr
	signed    bool // it is compared as a signed number, if the other one is
	reason    loc.Reason
}

// withoutSign returns an operand, without the sign of a constant of two words.
func withoutSign(e *syntax.Expr) *syntax.Expr {
	if e.Kind == syntax.KindUnary && e.Name == "-" && e.A.Kind == syntax.KindWide {
		return e.A
	}
	return e
}

// wideConstant returns a constant of two words: one that is written with digits alone is signed if it can be, as those of C are.
func (c *computation) wideConstant(e *syntax.Expr) wide {
	v, _ := new(big.Int).SetString(withoutSign(e).Name, 0) // the parser has read it
	words := new(big.Int).Set(v)
	if e.Kind == syntax.KindUnary {
		words.Sub(new(big.Int).Lsh(big.NewInt(1), 8*wideBytes), v)
	}
	word := func(n *big.Int) *loc.Expr {
		return c.ev.Const(new(big.Int).And(n, new(big.Int).SetUint64(math.MaxUint64)).Uint64())
	}
	return wide{low: word(words), high: word(new(big.Int).Rsh(words, 64)), signed: v.BitLen() < 8*wideBytes}
}

// wideOf returns an operand: an integer of two words, or a number.
func (c *computation) wideOf(e *syntax.Expr) (w wide, err error) {
	if withoutSign(e).Kind == syntax.KindWide {
		return c.wideConstant(e), nil
	}
	if n, err := c.number(e); err == nil {
		w = wide{low: n.e, signed: true, reason: n.reason} // an unsigned number of one word is one of those too
		if n.reason.Code != reasons.None {
			return w, nil
		}
		w.low, w.high = c.ev.Extend(n.e, n.size, n.signed), c.ev.Const(0)
		if n.signed {
			w.high = c.ev.Binary(ops.Shra, w.low, c.ev.Const(63))
		}
		return w, nil
	}
	v, err := c.resolve(e)
	if err != nil {
		return w, err
	}
	t, err := v.Type.Resolve()
	if err != nil {
		return w, err
	}
	if t.Kind != types.Int || t.Size != wideBytes {
		return w, wrongAt(e, "%v is no integer", v.Type)
	}
	w.signed, w.reason = t.Signed, v.Reason
	if w.reason.Code != reasons.None {
		return w, nil
	}
	if w.low, w.reason = c.ev.Bits(&v.Loc, 0, 64); w.reason.Code == reasons.None {
		w.high, w.reason = c.ev.Bits(&v.Loc, 64, 64)
	}
	if c.ev.BigEndian {
		w.low, w.high = w.high, w.low
	}
	return w, nil
}

// compareWide computes a comparison of which an operand is an integer of two words.
func (c *computation) compareWide(e *syntax.Expr) (n number, err error) {
	a, err := c.wideOf(e.A)
	if err != nil {
		return n, err
	}
	b, err := c.wideOf(e.B)
	if err != nil {
		return n, err
	}
	n = number{size: 4, signed: true}
	for _, s := range []*wide{&a, &b} {
		if s.reason.Code != reasons.None {
			n.reason = s.reason
			return n, nil
		}
	}
	o := operators[e.Name]
	which := o.signed
	if !a.signed || !b.signed {
		which = o.unsigned
	}
	// The high words decide, and where they are equal, the low ones, which have no sign.
	same := c.ev.Binary(ops.Eq, a.high, b.high)
	n.e = c.ev.Select(same, c.ev.Binary(o.unsigned, a.low, b.low), c.ev.Binary(which, a.high, b.high))
	return n, nil
}
