package resolve

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

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
		found width
	}{
		{"the remainder of 16 bits of more", and(mod, 0xffff), 32, unclear},
		{"of 16 bits", and(mod, 0xffff), 16, asWritten},
		{"of 32 bits", mod, 32, asWritten},
		{"a field that ends where a short does", and(shr(12), 0xf), 32, asWritten},
		{"the upper byte of 16 bits", and(shr(8), 0xff), 32, asWritten},
		{"more than a short has", and(shr(3), 0xffff), 32, unclear},
		{"another mask", and(shr(14), 0xfff), 32, asWritten},
		{"of a short", and(shr(3), 0xffff), 16, asWritten},
		{"by a variable", and(&loc.Expr{Op: ops.Shr, A: reg, B: reg}, 0xff), 32, asWritten},
	} {
		n := narrowing{bits: 32, of: func(uint64) uint64 { return tt.bits }}
		n.expr(tt.e, 32)
		if n.found != tt.found {
			t.Errorf("%s: %d, want %d", tt.what, n.found, tt.found)
		}
	}
}
