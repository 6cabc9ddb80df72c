package arithmetic

import (
	"slices"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
)

// LLVM can forget to say that what it describes is a value: for a char, a short or a structure of 4 bytes that is in a register of which
// the calling convention says that it is extended, clang 19 and 22 write conversions to the bits of the type, and nothing after them
// (mips64el, ppc64el, s390x). That makes the number an address.

// NumberAsAddress reports whether an object is at an address that is a number of fewer bytes than a word has, or a part of it is.
func NumberAsAddress(l *loc.Location, word int) bool {
	switch l.Kind {
	case loc.KindMemory:
		return (l.Expr.Op == ops.ZExt || l.Expr.Op == ops.SExt) && int(l.Expr.Size) < word
	case loc.KindPieces:
		return slices.ContainsFunc(l.Pieces, func(p loc.Piece) bool { return NumberAsAddress(&p.Loc, word) })
	}
	return false
}

// LLVM can also lose the width of a value: it then describes "the upper byte of 64 bits" of a number
// that has fewer (seen with clang 19 at -O1 to -O3, for a member of a structure that is passed in a
// register). What is left of it is 0, whatever the register holds. A compiler that knew that the
// member is 0 would have said so.

// ShiftedOut drops the values, and parts of a value, of which no bit is left. It reports whether
// nothing remains.
func ShiftedOut(l *loc.Location) bool {
	switch l.Kind {
	case loc.KindValue:
		return alwaysZero(l.Expr)
	case loc.KindPieces:
		for i := range l.Pieces {
			if p := &l.Pieces[i]; p.Loc.Kind == loc.KindValue && alwaysZero(p.Loc.Expr) {
				p.Loc, p.Reason = loc.Location{}, loc.Reason{Code: reasons.Contradictory, Detail: NothingLeft}
			}
		}
	}
	return false
}

// NothingLeft is the detail of the reason for that.
const NothingLeft = "all bits of the value are shifted out"

// alwaysZero reports whether an expression is 0 though it depends on the machine.
func alwaysZero(e *loc.Expr) bool {
	depends := false
	e.Walk(func(n *loc.Expr) { depends = depends || n.Op == ops.Reg || n.Op == ops.Deref })
	return depends && possibleOnes(e) == 0
}

// possibleOnes returns the bits of an expression's value that may be 1.
func possibleOnes(e *loc.Expr) uint64 {
	const all = 1<<64 - 1
	low := func(size uint8) uint64 {
		if size == 0 || size >= 8 {
			return all
		}
		return 1<<(8*size) - 1
	}
	by := func() (uint64, bool) { return e.B.K, e.B.Op == ops.Const && e.B.K < 64 }
	switch e.Op {
	case ops.Const:
		return e.K
	case ops.Deref:
		return low(e.Size)
	case ops.ZExt:
		return possibleOnes(e.A) & low(e.Size)
	case ops.And:
		return possibleOnes(e.A) & possibleOnes(e.B)
	case ops.Or, ops.Xor:
		return possibleOnes(e.A) | possibleOnes(e.B)
	case ops.Shl:
		if n, ok := by(); ok {
			return possibleOnes(e.A) << n
		}
	case ops.Shr:
		if n, ok := by(); ok {
			return possibleOnes(e.A) >> n
		}
	}
	return all
}

// And it can describe what it has left of a number: bits that the body cannot use are not computed, and become an operand that is 0 (seen with clang 15 to 22
// at -O1 and -O2). Nobody adds 0 on purpose.

// AddsNothing reports whether an expression has an operation with 0 that changes nothing.
func AddsNothing(expr []byte, enc eval.Encoding) bool {
	zero := false
	for at := 0; at < len(expr); {
		o, err := eval.Decode(expr, at, enc)
		if err != nil {
			return false
		}
		c := op.Opcode(o.Code)
		if zero && (c == op.DW_OP_or || c == op.DW_OP_xor || c == op.DW_OP_plus) {
			return true
		}
		zero = c == op.DW_OP_lit0 || c >= op.DW_OP_const1u && c <= op.DW_OP_consts && o.A == 0
		at = o.Next
	}
	return false
}
