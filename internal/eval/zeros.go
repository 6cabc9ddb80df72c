package eval

import (
	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// GCC describes how many zeros are above a number's highest bit that is 1, or below its lowest, by a loop (clz_loc_descriptor in
// gcc/dwarf2out.cc), of which a program would have to follow each turn. So the loop is recognized:
//
//	dup; bra 1; drop; WHAT ZERO HAS; skip 4; 1: lit0; swap; 2: dup; THE HIGHEST BIT, OR 1; and; bra 3; lit1; shl, OR shr; swap;
//	plus_uconst 1; swap; skip 2; 3: drop; 4:
//
// zerosLoop is what follows its first branch. What has a number of its own is another operation each time.
var zerosLoop = [...]op.Opcode{
	op.DW_OP_drop, anyNumber, op.DW_OP_skip, op.DW_OP_lit0, op.DW_OP_swap, op.DW_OP_dup, anyNumber, op.DW_OP_and, op.DW_OP_bra, op.DW_OP_lit1,
	anyShift, op.DW_OP_swap, op.DW_OP_plus_uconst, op.DW_OP_swap, op.DW_OP_skip, op.DW_OP_drop,
}

const (
	anyNumber op.Opcode = 0 // no operation
	anyShift  op.Opcode = 1
)

// Operations of the loop.
const (
	loopZero  = 1  // the number for 0
	loopEnd   = 2  // to behind the loop
	loopBegin = 3  // where the first branch leads
	loopTurn  = 5  // where a turn begins
	loopBit   = 6  // the bit that is looked for
	loopFound = 8  // leaves the loop, for loopLast
	loopShift = 10 // to the next bit
	loopCount = 12
	loopNext  = 14 // to loopTurn
	loopLast  = 15
)

// zeros replaces the number on the stack, which a branch has found not to be 0, by how many zeros it has, if the loop that counts them is what
// follows the branch, which leads to an offset. end is where the loop ends.
func (m *machine) zeros(number *loc.Expr, to int) (end int, ok bool) {
	var at [len(zerosLoop) + 1]int
	var loop [len(zerosLoop)]Operation
	at[0] = m.at
	for i, want := range zerosLoop {
		if at[i] >= len(m.expr) {
			return 0, false
		}
		o, err := Decode(m.expr, at[i], m.ev.Encoding)
		if err != nil {
			return 0, false
		}
		switch c := op.Opcode(o.Code); {
		case want == anyNumber && (c >= op.DW_OP_lit0 && c <= op.DW_OP_lit31 || c >= op.DW_OP_const1u && c <= op.DW_OP_consts):
		case want == anyShift && (c == op.DW_OP_shl || c == op.DW_OP_shr):
		case want != c:
			return 0, false
		}
		loop[i], at[i+1] = o, o.Next
	}
	leads := func(i int) int { return loop[i].Next + int(int64(loop[i].A)) }
	end = at[len(zerosLoop)]
	if to != at[loopBegin] || leads(loopEnd) != end || leads(loopFound) != at[loopLast] || leads(loopNext) != at[loopTurn] || loop[loopCount].A != 1 {
		return 0, false
	}
	if len(m.stack) == 0 || m.stack[len(m.stack)-1].typ != nil || m.stack[len(m.stack)-1].e != number {
		return 0, false
	}
	value := func(i int) uint64 {
		if c := op.Opcode(loop[i].Code); c >= op.DW_OP_lit0 && c <= op.DW_OP_lit31 {
			return uint64(c - op.DW_OP_lit0)
		}
		return loop[i].A
	}
	// What 0 has says how many bits the number has, whatever is above them: as many as it has zeros.
	width := value(loopZero)
	if width != 8 && width != 16 && width != 32 && width != 64 {
		return 0, false
	}
	ev := m.ev
	number = ev.Extend(number, int(width/8), false)
	var count *loc.Expr
	switch bit, up := value(loopBit), op.Opcode(loop[loopShift].Code) == op.DW_OP_shl; {
	case up && bit == 1<<(width-1):
		count = ev.Unary(ops.Clz, number)
		if width < 64 {
			count = ev.Binary(ops.Sub, count, ev.Const(64-width))
		}
	case !up && bit == 1:
		count = ev.Binary(ops.Sub, ev.Const(63), ev.Unary(ops.Clz, ev.Binary(ops.And, number, ev.Unary(ops.Neg, number))))
	default:
		return 0, false
	}
	m.stack[len(m.stack)-1].e = ev.Select(number, count, ev.Const(width))
	return end, true
}
