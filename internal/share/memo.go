package share

import (
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// memo remembers the prologues of plain arguments: registers, small constants, and arguments
// without a location. Most prologues of a kernel have only such arguments, in a few thousand
// combinations, and equal combinations have equal code. Its size is fixed: a combination
// replaces another one with the same entry.
type memo [1 << 12]remembered

type remembered struct {
	plain  plain
	number uint32
	insns  uint32
}

// plain is a list of plain arguments as one number, 21 bits each. 0 marks arguments that are
// not plain.
type plain uint64

const (
	plainBits = 21
	valueBits = 13
)

// Kinds of plain arguments, above the value, the sign, four bits of size and the low bit.
const (
	plainNone = (iota + 1) << (valueBits + 6)
	plainRegister
	plainConstant
)

// plainOf returns arguments as a number. Lists with equal numbers other than 0 have equal
// prologues: the code for an argument without a location does not depend on anything else.
func plainOf(args []prologue.Arg) (p plain) {
	for i := range args {
		a := &args[i]
		var x, k uint64
		switch e := a.Loc.Expr; {
		case a.Loc.Kind == loc.KindNone:
			p = p<<plainBits | plainNone
			continue
		case a.Loc.Kind == loc.KindRegister && e.Op == ops.Reg:
			x, k = plainRegister, e.K
		case a.Loc.Kind == loc.KindConstant && e.Op == ops.Const:
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
		if a.LowBit {
			x |= 1 << (valueBits + 5)
		}
		p = p<<plainBits | plain(x)
	}
	return p
}

func (m *memo) entry(p plain) *remembered {
	return &m[uint64(p)*0x9e3779b97f4a7c15>>52]
}
