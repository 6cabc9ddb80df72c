package arithmetic

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// TestShort: what GCC 12 writes for parameters of 8 and 16 bits of which the arguments are bit-fields, or shifted twice.
func TestShort(t *testing.T) {
	num := func(n uint64) *loc.Expr { return &loc.Expr{Op: ops.Const, K: n} }
	op := func(o loc.Op, a *loc.Expr, n uint64) *loc.Expr { return &loc.Expr{Op: o, A: a, B: num(n)} }
	reg := &loc.Expr{Op: ops.Reg, K: 3}
	memory := func(size uint8) *loc.Expr { return &loc.Expr{Op: ops.Deref, Size: size, A: reg} }
	for _, tt := range []struct {
		what   string
		e      *loc.Expr
		bytes  uint64
		signed bool
		has    uint64 // bits of the register
		want   string // or "" if it can be two numbers
	}{
		{"an unsigned field", op(ops.Shra, op(ops.Shl, memory(1), 1), 5), 1, false, 64, "(u8[%rbx] << 57) >>u 61"},
		{"a signed field", op(ops.Shr, op(ops.Shl, memory(1), 2), 5), 1, true, 64, "(u8[%rbx] << 58) >> 61"},
		{"(signed char)(c << 1) >> 5", op(ops.Shra, op(ops.Shl, memory(1), 1), 5), 1, true, 64, "(u8[%rbx] << 57) >> 61"},
		{"(short)(n << 3) >> 5", op(ops.Shra, op(ops.Shl, memory(2), 3), 5), 2, true, 64, "(u16[%rbx] << 51) >> 53"},
		{"of a register", op(ops.Shr, op(ops.Shl, reg, 1), 5), 1, false, 64, ""},
		{"of a register with few bits", op(ops.Shr, op(ops.Shl, reg, 1), 5), 1, false, 7, "(%rbx << 1) >>u 5"},
		{"a signed field, or c >> 6", op(ops.Shr, memory(1), 6), 1, true, 64, ""},
		{"c >> 6", op(ops.Shr, memory(1), 6), 1, false, 64, "u8[%rbx] >>u 6"},
		{"(short)(n >> 3)", op(ops.Shr, memory(2), 3), 2, true, 64, "u16[%rbx] >>u 3"},
		{"of 32 bits", op(ops.Shra, op(ops.Shl, memory(4), 1), 5), 4, true, 64, "(u32[%rbx] << 1) >> 5"},
		{"extended", op(ops.Shr, op(ops.Shl, op(ops.And, memory(1), 0xff), 1), 5), 1, false, 64, "((u8[%rbx] & 255) << 1) >>u 5"},
	} {
		e, decided := short(known{bits: tt.has}, tt.e, tt.bytes, tt.signed)
		got := ""
		if decided {
			got = (&loc.Location{Kind: loc.KindValue, Expr: e}).Text(arch.ByName("amd64"))
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.what, got, tt.want)
		}
	}
}

// TestBit: a truth value that is a bit of a byte is that bit alone.
func TestBit(t *testing.T) {
	num := func(n uint64) *loc.Expr { return &loc.Expr{Op: ops.Const, K: n} }
	bit := &loc.Expr{Op: ops.Shl, A: &loc.Expr{Op: ops.Deref, Size: 1, A: &loc.Expr{Op: ops.Reg, K: 5}}, B: num(6)}
	l := loc.Location{Kind: loc.KindValue, Expr: &loc.Expr{Op: ops.Shra, A: bit, B: num(7)}}
	n := Note{WordSize: 8, Registers: known{bits: 64}}
	width := n.Narrow(&l, &types.Type{Kind: types.Bool, Size: 1})
	if got, want := l.Text(arch.ByName("amd64")), "(u8[%rdi] << 62) >>u 63"; width != Narrow || got != want {
		t.Errorf("%q, %d; want %q", got, width, want)
	}
}
