package oracle_test

import (
	"fmt"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/oracle"
	"github.com/bpfprologue/bpfprologue/loc"
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
func (s state) interpret(e *loc.Expr) (v uint64, ok bool) {
	switch e.Op {
	case loc.OpConst:
		return e.K, true
	case loc.OpReg:
		return s.reg(e.K)
	case loc.OpAddr:
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
	case loc.OpDeref:
		var b [8]byte
		s.mem(a, b[:e.Size])
		for i := range b {
			v |= uint64(b[i]) << (8 * i)
		}
		return v, true
	case loc.OpZExt:
		return low(e.Size), true
	case loc.OpSExt:
		v = low(e.Size)
		if e.Size < 8 && v>>(8*e.Size-1) != 0 {
			v |= ^uint64(0) << (8 * e.Size)
		}
		return v, true
	case loc.OpNeg:
		return -a, true
	case loc.OpNot:
		return ^a, true
	case loc.OpSelect:
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
func operate(op loc.Op, a, b uint64) (uint64, bool) {
	truth := func(v bool) (uint64, bool) {
		if v {
			return 1, true
		}
		return 0, true
	}
	sa, sb := int64(a), int64(b)
	switch op {
	case loc.OpAdd:
		return a + b, true
	case loc.OpSub:
		return a - b, true
	case loc.OpMul:
		return a * b, true
	case loc.OpDiv, loc.OpUDiv, loc.OpMod, loc.OpUMod:
		if b == 0 {
			return 0, false
		}
		switch op {
		case loc.OpDiv:
			return uint64(sa / sb), true
		case loc.OpUDiv:
			return a / b, true
		case loc.OpMod:
			return uint64(sa % sb), true
		}
		return a % b, true
	case loc.OpAnd:
		return a & b, true
	case loc.OpOr:
		return a | b, true
	case loc.OpXor:
		return a ^ b, true
	case loc.OpShl:
		return a << b, true
	case loc.OpShr:
		return a >> b, true
	case loc.OpShra:
		return uint64(sa >> b), true
	case loc.OpEq:
		return truth(a == b)
	case loc.OpNe:
		return truth(a != b)
	case loc.OpLt:
		return truth(sa < sb)
	case loc.OpLe:
		return truth(sa <= sb)
	case loc.OpGt:
		return truth(sa > sb)
	case loc.OpGe:
		return truth(sa >= sb)
	case loc.OpULt:
		return truth(a < b)
	case loc.OpULe:
		return truth(a <= b)
	case loc.OpUGt:
		return truth(a > b)
	case loc.OpUGe:
		return truth(a >= b)
	}
	panic(fmt.Sprintf("operation %d", op))
}

// result computes a symbolic location. ok is false for a fault.
func (s state) result(l *loc.Location) (res oracle.Result, ok bool) {
	switch l.Kind {
	case loc.KindNone:
		return oracle.Result{Kind: oracle.IsMissing}, true
	case loc.KindBytes:
		return oracle.Result{Kind: oracle.IsBytes, Bytes: l.Bytes}, true
	case loc.KindImplicitPointer:
		return oracle.Result{Kind: oracle.IsImplicit, Target: l.Target, TargetOffset: l.TargetOffset}, true
	case loc.KindPieces:
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
	case loc.KindRegister:
		if l.Expr.Op != loc.OpReg {
			return res, false
		}
		res.Kind, res.Reg = oracle.InRegister, l.Expr.K
	case loc.KindMemory:
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
