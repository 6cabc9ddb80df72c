package prologue_test

import (
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// source makes arguments of bytes, so that the fuzzer can learn which byte
// decides what. It is all zeros at its end.
type source struct{ data []byte }

func (s *source) byte() int {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return int(b)
}

func (s *source) below(n int) int { return s.byte() % n }

// constants are those at which instructions change.
var constants = [...]uint64{
	0, 1, 2, 3, 7, 63, 64, 65, 127, 128, 255, 256, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000,
	0x7fffffffffffffff, 0x8000000000000000, 0xffffffff80000000, 0xffffffff7fffffff, 1<<64 - 1, 1<<64 - 2, 1<<64 - 7, 1<<64 - 128,
}

// general are registers that hold numbers rather than addresses.
var general = [...]uint64{0, 1, 2, 3, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16}

func (s *source) expr(depth int) *expr {
	if depth == 0 {
		switch s.below(4) {
		case 0:
			return num(constants[s.below(len(constants))])
		case 1:
			return num(uint64(int8(s.byte())))
		}
		return reg(general[s.below(len(general))])
	}
	switch n := s.below(40); {
	case n < 4:
		return s.expr(0)
	case n < 7:
		return mem(s.addr(depth-1), 1+s.below(8))
	case n < 9:
		return &expr{Op: ops.ZExt, Size: uint8(1 + s.below(8)), A: s.expr(depth - 1)}
	case n < 11:
		return &expr{Op: ops.SExt, Size: uint8(1 + s.below(8)), A: s.expr(depth - 1)}
	case n < 12:
		return &expr{Op: ops.Neg, A: s.expr(depth - 1)}
	case n < 13:
		return &expr{Op: [...]loc.Op{ops.Not, ops.Clz}[s.below(2)], A: s.expr(depth - 1)}
	case n < 16:
		return sel(s.expr(depth-1), s.expr(depth-1), s.expr(depth-1))
	case n < 18:
		// A shift by what may be less than 64.
		op := ops.Shl + loc.Op(s.below(3))
		return bin(op, s.expr(depth-1), bin(ops.And, s.expr(depth-1), num(127)))
	}
	if s.below(24) == 23 {
		// Some of eight numbers have an arm; the value of a number without one is missing.
		var arms []*expr
		for k := range uint64(8) {
			if s.below(4) > 0 {
				arms = append(arms, &expr{Op: ops.Arm, K: k * 5, A: s.expr(depth - 1)})
			}
		}
		if len(arms) > 0 {
			return callerOf(bin(ops.Mul, bin(ops.And, s.expr(depth-1), num(7)), num(5)), arms...)
		}
	}
	op := ops.Add + loc.Op(s.below(int(ops.Select-ops.Add)))
	return bin(op, s.expr(depth-1), s.expr(depth-1))
}

// addr makes an address of which is known whether it can be read: in a real
// process other memory may be anywhere.
func (s *source) addr(depth int) *expr {
	switch s.below(8) {
	case 0:
		return plus(reg(4), int64(s.byte())) // unmapped
	case 1:
		return num(uint64(s.byte()))
	case 2:
		if depth > 0 {
			return bin(ops.Add, reg(5), bin(ops.And, s.expr(depth-1), num(0xfff)))
		}
	case 3:
		base, off := reg(5), int64(ptrOff)
		if s.below(2) == 0 {
			base, off = reg(7), ptrOff-spOff // in the stack frame
		}
		return plus(mem(plus(base, off+int64(8*s.below(8))), 8), int64(s.byte()))
	case 4:
		if depth > 0 {
			return sel(s.expr(depth-1), s.addr(depth-1), s.addr(depth-1))
		}
	case 5:
		return plus(reg(5), 4080+int64(s.below(16))) // may reach beyond the end
	}
	return plus(reg(7), int64(int8(s.byte())))
}

// location makes a location of an object of n bits.
func (s *source) location(n, depth int, part bool) location {
	switch s.below(7) {
	case 0:
		return inReg(general[s.below(len(general))])
	case 1:
		return isConst(constants[s.below(len(constants))])
	case 2:
		return inMem(s.addr(depth))
	case 3:
		return s.known((n + 7) / 8)
	case 4:
		if !part {
			return s.pieces(n, depth)
		}
	}
	return isValue(s.expr(depth))
}

// known makes bytes that are known.
func (s *source) known(n int) location {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(s.byte())
	}
	return location{Kind: loc.KindBytes, Bytes: b}
}

// pieces puts an object of n bits together.
func (s *source) pieces(n, depth int) location {
	var ps []loc.Piece
	for left := n; left > 0; {
		size := 1 + s.below(64)
		if s.below(2) == 0 {
			size = 8 * (1 + s.below(8))
		}
		off := 0
		l := s.location(size+64, depth-1, true)
		if l.Kind != loc.KindMemory && l.Kind != loc.KindBytes {
			off = s.below(65 - size)
		} else if s.below(2) == 0 {
			off = s.below(64)
		}
		ps = append(ps, bitPiece(uint64(size), uint64(off), l))
		left -= size
	}
	return pieces(ps...)
}

func (s *source) args() []prologue.Arg {
	args := make([]prologue.Arg, s.below(prologue.MaxArgs+1))
	for i := range args {
		a := &args[i]
		a.Name = string(rune('a' + i))
		a.Size = 1 + s.below(8)
		a.Signed = s.below(2) == 1
		if s.below(16) == 0 {
			continue // not located
		}
		a.Loc = s.location(8*a.Size, 1+s.below(6), false)
	}
	return args
}

// recordArgs makes arguments of all kinds, as many as fit on the stack.
func (s *source) recordArgs() []prologue.Arg {
	args := make([]prologue.Arg, s.below(prologue.MaxRecordArgs+1))
	left := 300 // bytes; the prologue needs the rest
	for i := range args {
		a := &args[i]
		a.Name = "arg" + string(rune('a'+i%26))
		a.User = s.below(8) == 0
		located := s.below(12) != 0
		switch kind := s.below(10); {
		case kind < 5:
			a.Size = 1 + s.below(8)
			a.Signed = s.below(2) == 1
			if located {
				a.Loc = s.location(8*a.Size, 1+s.below(4), false)
			}
			left -= 8
		case kind < 6:
			a.Kind = prologue.KindComm
			left -= 16
		case kind < 8:
			a.Kind = prologue.KindObject
			a.Size = 1 + s.below(60)
			switch n := s.below(4); {
			case !located:
			case n == 0:
				a.Loc = s.pieces(8*a.Size, 2)
			case n == 1:
				a.Loc = s.known(a.Size)
			case n == 2 && a.Size <= 8:
				a.Loc = s.location(8*a.Size, 2, true)
			default:
				a.Loc = inMem(s.addr(2))
			}
			left -= (a.Size + 7) &^ 7
		default:
			a.Kind = prologue.KindString + prologue.ArgKind(s.below(2))
			a.MaxBytes = 1 + s.below(70)
			if s.below(2) == 0 {
				a.Size = 1 + s.below(70)
			}
			switch n := s.below(4); {
			case !located:
			case n == 0:
				a.Loc = s.known(max(a.Size, 1+s.below(70)))
			default:
				a.Loc = inMem(s.addr(2))
			}
			left -= (a.MaxBytes + 7) &^ 7
		}
		if left < 0 {
			return args[:i]
		}
	}
	return args
}
