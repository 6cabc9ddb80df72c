package prologue_test

import (
	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Short names for expressions and locations in tables of tests. Registers are
// those of amd64: rax 0, rdx 1, rcx 2, rbx 3, rsi 4, rdi 5, rbp 6, rsp 7.

type (
	expr     = loc.Expr
	location = loc.Location
)

var amd64 = arch.ByName("amd64")

func num(k uint64) *expr       { return &expr{Op: ops.Const, K: k} }
func reg(n uint64) *expr       { return &expr{Op: ops.Reg, K: n} }
func image(addr uint64) *expr  { return &expr{Op: ops.Addr, K: addr} }
func mem(a *expr, n int) *expr { return &expr{Op: ops.Deref, Size: uint8(n), A: a} }
func bin(op loc.Op, a, b *expr) *expr {
	return &expr{Op: op, A: a, B: b}
}
func plus(a *expr, k int64) *expr { return bin(ops.Add, a, num(uint64(k))) }
func callerOf(at *expr, arms ...*expr) *expr {
	for i := range arms[1:] {
		arms[i].B = arms[i+1]
	}
	return &expr{Op: ops.Caller, A: at, B: arms[0]}
}
func sel(cond, yes, no *expr) *expr  { return &expr{Op: ops.Select, A: cond, B: yes, C: no} }
func inReg(n uint64) location        { return location{Kind: loc.KindRegister, Expr: reg(n)} }
func inMem(a *expr) location         { return location{Kind: loc.KindMemory, Expr: a} }
func isValue(e *expr) location       { return location{Kind: loc.KindValue, Expr: e} }
func isConst(k uint64) location      { return location{Kind: loc.KindConstant, Expr: num(k)} }
func known(b ...byte) location       { return location{Kind: loc.KindBytes, Bytes: b} }
func pieces(p ...loc.Piece) location { return location{Kind: loc.KindPieces, Pieces: p} }
func piece(bytes uint64, l location) loc.Piece {
	return loc.Piece{BitSize: 8 * bytes, Loc: l}
}
func bitPiece(size, off uint64, l location) loc.Piece {
	return loc.Piece{BitSize: size, BitOffset: off, Loc: l}
}
