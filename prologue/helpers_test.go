package prologue_test

import (
	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
)

// Short names for expressions and locations in tables of tests. Registers are
// those of amd64: rax 0, rdx 1, rcx 2, rbx 3, rsi 4, rdi 5, rbp 6, rsp 7.

type (
	expr = dwarfloc.Expr
	loc  = dwarfloc.Location
)

var amd64 = arch.ByName("amd64")

func num(k uint64) *expr       { return &expr{Op: dwarfloc.OpConst, K: k} }
func reg(n uint64) *expr       { return &expr{Op: dwarfloc.OpReg, K: n} }
func image(addr uint64) *expr  { return &expr{Op: dwarfloc.OpAddr, K: addr} }
func mem(a *expr, n int) *expr { return &expr{Op: dwarfloc.OpDeref, Size: uint8(n), A: a} }
func bin(op dwarfloc.ExprOp, a, b *expr) *expr {
	return &expr{Op: op, A: a, B: b}
}
func plus(a *expr, k int64) *expr    { return bin(dwarfloc.OpAdd, a, num(uint64(k))) }
func sel(cond, yes, no *expr) *expr  { return &expr{Op: dwarfloc.OpSelect, A: cond, B: yes, C: no} }
func inReg(n uint64) loc             { return loc{Kind: dwarfloc.KindRegister, Expr: reg(n)} }
func inMem(a *expr) loc              { return loc{Kind: dwarfloc.KindMemory, Expr: a} }
func isValue(e *expr) loc            { return loc{Kind: dwarfloc.KindValue, Expr: e} }
func isConst(k uint64) loc           { return loc{Kind: dwarfloc.KindConstant, Expr: num(k)} }
func known(b ...byte) loc            { return loc{Kind: dwarfloc.KindBytes, Bytes: b} }
func pieces(p ...dwarfloc.Piece) loc { return loc{Kind: dwarfloc.KindPieces, Pieces: p} }
func piece(bytes uint64, l loc) dwarfloc.Piece {
	return dwarfloc.Piece{BitSize: 8 * bytes, Loc: l}
}
func bitPiece(size, off uint64, l loc) dwarfloc.Piece {
	return dwarfloc.Piece{BitSize: size, BitOffset: off, Loc: l}
}
