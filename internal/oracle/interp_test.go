package oracle_test

import (
	"fmt"
	"slices"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/oracle"
)

// state is a machine's state made up from a seed: every register and every byte
// of memory has a value, always the same one.
type state struct{ seed uint64 }

func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// lastGeneral is the highest DWARF register number of amd64 that struct pt_regs
// holds: 0 to 15 are the general registers, 16 is the return address (psABI,
// figure 3.36). From 17 to 32 are vector registers.
const (
	lastGeneral = 16
	firstVector = 17
	lastVector  = 32
)

func (s state) reg(n uint64) (uint64, bool) {
	if n > lastGeneral {
		return 0, false
	}
	v := mix(s.seed + n*0x9e3779b97f4a7c15)
	if v&3 == 0 {
		v >>= 56 // small numbers find other faults than large ones
	}
	return v, true
}

func (s state) mem(addr uint64, p []byte) bool {
	for i := range p {
		p[i] = byte(mix(s.seed^mix(addr+uint64(i))) >> 24)
	}
	return true
}

func (s state) bias() uint64 { return s.seed << 21 & 0x3fe00000 }

// interpret computes a symbolic expression. ok is false for a fault.
func (s state) interpret(e *dwarfloc.Expr) (v uint64, ok bool) {
	switch e.Op {
	case dwarfloc.OpConst:
		return e.K, true
	case dwarfloc.OpReg:
		return s.reg(e.K)
	case dwarfloc.OpAddr:
		return e.K + s.bias(), true
	}
	a, ok := s.interpret(e.A)
	if !ok {
		return 0, false
	}
	low := func(size uint8) uint64 {
		if size >= 8 {
			return a
		}
		return a & (1<<(8*size) - 1)
	}
	switch e.Op {
	case dwarfloc.OpDeref:
		var b [8]byte
		s.mem(a, b[:e.Size])
		for i := range b {
			v |= uint64(b[i]) << (8 * i)
		}
		return v, true
	case dwarfloc.OpZExt:
		return low(e.Size), true
	case dwarfloc.OpSExt:
		v = low(e.Size)
		if e.Size < 8 && v>>(8*e.Size-1) != 0 {
			v |= ^uint64(0) << (8 * e.Size)
		}
		return v, true
	case dwarfloc.OpNeg:
		return -a, true
	case dwarfloc.OpNot:
		return ^a, true
	case dwarfloc.OpSelect:
		if a != 0 {
			return s.interpret(e.B)
		}
		return s.interpret(e.C)
	}
	b, ok := s.interpret(e.B)
	if !ok {
		return 0, false
	}
	return operate(e.Op, a, b)
}

// operate is what dwarfloc's documentation says of operations with two operands.
func operate(op dwarfloc.ExprOp, a, b uint64) (uint64, bool) {
	truth := func(v bool) (uint64, bool) {
		if v {
			return 1, true
		}
		return 0, true
	}
	sa, sb := int64(a), int64(b)
	switch op {
	case dwarfloc.OpAdd:
		return a + b, true
	case dwarfloc.OpSub:
		return a - b, true
	case dwarfloc.OpMul:
		return a * b, true
	case dwarfloc.OpDiv, dwarfloc.OpUDiv, dwarfloc.OpMod, dwarfloc.OpUMod:
		if b == 0 {
			return 0, false
		}
		switch op {
		case dwarfloc.OpDiv:
			return uint64(sa / sb), true
		case dwarfloc.OpUDiv:
			return a / b, true
		case dwarfloc.OpMod:
			return uint64(sa % sb), true
		}
		return a % b, true
	case dwarfloc.OpAnd:
		return a & b, true
	case dwarfloc.OpOr:
		return a | b, true
	case dwarfloc.OpXor:
		return a ^ b, true
	case dwarfloc.OpShl:
		return a << b, true
	case dwarfloc.OpShr:
		return a >> b, true
	case dwarfloc.OpShra:
		return uint64(sa >> b), true
	case dwarfloc.OpEq:
		return truth(a == b)
	case dwarfloc.OpNe:
		return truth(a != b)
	case dwarfloc.OpLt:
		return truth(sa < sb)
	case dwarfloc.OpLe:
		return truth(sa <= sb)
	case dwarfloc.OpGt:
		return truth(sa > sb)
	case dwarfloc.OpGe:
		return truth(sa >= sb)
	case dwarfloc.OpULt:
		return truth(a < b)
	case dwarfloc.OpULe:
		return truth(a <= b)
	case dwarfloc.OpUGt:
		return truth(a > b)
	case dwarfloc.OpUGe:
		return truth(a >= b)
	}
	panic(fmt.Sprintf("operation %d", op))
}

// result computes a symbolic location. ok is false for a fault.
func (s state) result(l *dwarfloc.Location) (res oracle.Result, ok bool) {
	switch l.Kind {
	case dwarfloc.KindNone:
		return oracle.Result{Kind: oracle.IsMissing}, true
	case dwarfloc.KindBytes:
		return oracle.Result{Kind: oracle.IsBytes, Bytes: l.Bytes}, true
	case dwarfloc.KindImplicitPointer:
		return oracle.Result{Kind: oracle.IsImplicit, Target: l.Target, TargetOffset: l.TargetOffset}, true
	case dwarfloc.KindPieces:
		res.Kind = oracle.InPieces
		for i := range l.Pieces {
			p := &l.Pieces[i]
			part, ok := s.result(&p.Loc)
			if !ok {
				return res, false
			}
			res.Pieces = append(res.Pieces, oracle.Piece{Result: part, Bits: p.BitSize, Skip: p.BitOffset})
		}
		return res, true
	}
	v, ok := s.interpret(l.Expr)
	res = oracle.Result{Kind: oracle.IsValue, Value: v}
	switch l.Kind {
	case dwarfloc.KindRegister:
		if l.Expr.Op != dwarfloc.OpReg {
			return res, false
		}
		res.Kind, res.Reg = oracle.InRegister, l.Expr.K
	case dwarfloc.KindMemory:
		res.Kind = oracle.InMemory
	}
	return res, ok
}

// shorten makes bytes that fit into a number one, which is dwarfloc's form.
func shorten(r oracle.Result) oracle.Result {
	if n := len(r.Bytes); r.Kind == oracle.IsBytes && n > 0 && n <= 8 {
		var v uint64
		for i, b := range r.Bytes {
			v |= uint64(b) << (8 * i)
		}
		return oracle.Result{Kind: oracle.IsValue, Value: v}
	}
	r.Pieces = slices.Clone(r.Pieces)
	for i := range r.Pieces {
		r.Pieces[i].Result = shorten(r.Pieces[i].Result)
	}
	return r
}
