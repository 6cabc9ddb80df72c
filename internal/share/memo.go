package share

import (
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// memo remembers the prologues of plain arguments: registers, small constants, and
// what has no location. Most prologues of a kernel have no others, in a few
// thousand combinations, and for the same ones the same code is written. It is of
// one size: a combination pushes out another one that has the same entry.
type memo [1 << 12]remembered

type remembered struct {
	plain  plain
	number uint32
	insns  uint32
}

// plain is arguments in one number, 21 bits each; 0 stands for arguments that are
// not plain.
type plain uint64

const (
	plainBits = 21
	valueBits = 14
)

// Kinds of plain arguments, above the value, the sign and four bits of size.
const (
	plainNone = (iota + 1) << (valueBits + 5)
	plainRegister
	plainConstant
)

// plainOf returns arguments as a number. Two lists with the same number, which is
// not 0, have the same prologue: for an argument without a location the code has
// nothing but that.
func plainOf(args []prologue.Arg) (p plain) {
	for i := range args {
		a := &args[i]
		var x, k uint64
		switch e := a.Loc.Expr; {
		case a.Loc.Kind == loc.KindNone:
			p = p<<plainBits | plainNone
			continue
		case a.Loc.Kind == loc.KindRegister && e.Op == loc.OpReg:
			x, k = plainRegister, e.K
		case a.Loc.Kind == loc.KindConstant && e.Op == loc.OpConst:
			x, k = plainConstant, e.K
		default:
			return 0
		}
		if k>>valueBits != 0 || uint(a.Size) > 15 {
			return 0
		}
		x |= k | uint64(a.Size)<<(valueBits+1)
		if a.Signed {
			x |= 1 << valueBits
		}
		p = p<<plainBits | plain(x)
	}
	return p
}

func (m *memo) entry(p plain) *remembered {
	return &m[uint64(p)*0x9e3779b97f4a7c15>>52]
}
