package arithmetic

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// known is what the code says of every register.
type known struct {
	bits         uint64
	given        bool
	narrow, wide bool // what is shifted in the code
	address      bool
}

func (k known) Bits(uint64) uint64                 { return k.bits }
func (k known) Given(uint64) bool                  { return k.given }
func (known) Near(uint64) (_, bits uint8, _ error) { return 0, 64, nil }
func (known) SetBefore(uint64) bool                { return false }

func (known) Counts(uint64) (least, most uint64, ok bool) { return 0, 0, false }

func (k known) Widths(*loc.Expr, loc.Op, uint8) (narrow, wide, short bool) {
	return k.narrow, k.wide, false
}

func (k known) Address(uint64) bool { return k.address }

// TestCuts: arithmetic of 8 or 16 bits that GCC does not say is so, on a register with other bits above.
func TestCuts(t *testing.T) {
	reg, num := &loc.Expr{Op: ops.Reg, K: 3}, func(n uint64) *loc.Expr { return &loc.Expr{Op: ops.Const, K: n} }
	and := func(e *loc.Expr, mask uint64) *loc.Expr { return &loc.Expr{Op: ops.And, A: e, B: num(mask)} }
	shr := func(by uint64) *loc.Expr { return &loc.Expr{Op: ops.Shr, A: reg, B: num(by)} }
	mod := &loc.Expr{Op: ops.UMod, A: reg, B: num(6)}
	for _, tt := range []struct {
		what  string
		e     *loc.Expr
		bits  uint64 // of the register
		found Width
	}{
		{"the remainder of 16 bits of more", and(mod, 0xffff), 32, Unclear},
		{"of 16 bits", and(mod, 0xffff), 16, AsWritten},
		{"of 32 bits", mod, 32, AsWritten},
		{"a field that ends where a short does", and(shr(12), 0xf), 32, AsWritten},
		{"the upper byte of 16 bits", and(shr(8), 0xff), 32, AsWritten},
		{"more than a short has", and(shr(3), 0xffff), 32, Unclear},
		{"another mask", and(shr(14), 0xfff), 32, AsWritten},
		{"of a short", and(shr(3), 0xffff), 16, AsWritten},
		{"the sign of a short", and(&loc.Expr{Op: ops.Shra, A: reg, B: num(3)}, 0xffff), 16, Unclear},
		{"by a variable", and(&loc.Expr{Op: ops.Shr, A: reg, B: reg}, 0xff), 32, AsWritten},
	} {
		n := narrowing{bits: 32, registers: known{bits: tt.bits}}
		n.expr(tt.e, 32)
		if n.found != tt.found {
			t.Errorf("%s: %d, want %d", tt.what, n.found, tt.found)
		}
	}
}

// TestUpperBits: what is moved down from above 32 bits, where nobody says what is there, and where the code does; and what was sign-extended
// to 32 bits, or to 64.
func TestUpperBits(t *testing.T) {
	reg, num := &loc.Expr{Op: ops.Reg, K: 3}, func(n uint64) *loc.Expr { return &loc.Expr{Op: ops.Const, K: n} }
	op := func(o loc.Op, a *loc.Expr, n uint64) *loc.Expr { return &loc.Expr{Op: o, A: a, B: num(n)} }
	short := op(ops.Shra, op(ops.Shl, reg, 48), 48)
	long := op(ops.Shra, op(ops.Shl, reg, 32), 32)
	for _, tt := range []struct {
		what  string
		e     *loc.Expr
		given bool
		bits  uint64
		found Width
	}{
		{"what is given", op(ops.Shr, reg, 1), true, 32, Unclear},
		{"what the function has made", op(ops.Shr, reg, 1), false, 32, AsWritten},
		{"a number of 64 bits", op(ops.Shr, reg, 1), true, 64, AsWritten},
		{"a short as an unsigned number", op(ops.Shr, short, 2), true, 32, Unclear},
		{"a short as a signed number", op(ops.Shra, short, 2), true, 32, AsWritten},
		{"an int as one of 64 bits", op(ops.Shr, long, 2), true, 32, AsWritten},
	} {
		n := narrowing{bits: tt.bits, registers: known{bits: 64, given: tt.given}}
		n.expr(tt.e, tt.bits)
		if n.found != tt.found {
			t.Errorf("%s: %d, want %d", tt.what, n.found, tt.found)
		}
	}
}

// TestSpecial: operations with types say themselves how wide they are, in pieces too.
func TestSpecial(t *testing.T) {
	for _, tt := range []struct {
		what    string
		expr    []byte
		special bool
	}{
		// breg3 0; lit6; mod; stack_value; piece 4; reg0; piece 4
		{"pieces", []byte{0x73, 0, 0x36, 0x1d, 0x9f, 0x93, 4, 0x50, 0x93, 4}, false},
		// addr 0x4050b8; deref_size 4; lit6; shra; stack_value
		{"memory of the image", []byte{3, 0xb8, 0x50, 0x40, 0, 0, 0, 0, 0, 0x94, 4, 0x36, 0x26, 0x9f}, false},
		// breg3 0; convert 0x20; lit6; mod; stack_value; piece 4
		{"a piece with a type", []byte{0x73, 0, 0xa8, 0x20, 0x36, 0x1d, 0x9f, 0x93, 4}, true},
	} {
		n := Note{Expr: tt.expr, Encoding: eval.Encoding{AddressSize: 8, OffsetSize: 4}}
		if got := n.special(); got != tt.special {
			t.Errorf("%s: %v", tt.what, got)
		}
	}
}
