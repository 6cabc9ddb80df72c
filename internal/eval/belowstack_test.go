package eval

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// TestBelowStack: how far below the stack pointer a kernel overwrites memory depends on the architecture; an address is none of it.
func TestBelowStack(t *testing.T) {
	for name := range kernelRedZone {
		if arch.ByName(name) == nil {
			t.Errorf("no architecture is %s", name)
		}
	}
	for _, tt := range []struct {
		arch  string
		kind  loc.Kind
		off   int64
		reads bool // what memory at the address has, and not that address
		below bool
	}{
		{"amd64", loc.KindMemory, -8, false, true},
		{"amd64", loc.KindMemory, 0, false, false},
		{"amd64", loc.KindMemory, 8, true, false},
		{"amd64", loc.KindValue, -64, true, true},
		{"amd64", loc.KindValue, -64, false, false},
		{"s390x", loc.KindMemory, -8, false, true},
		{"ppc64el", loc.KindMemory, -288, false, false},
		{"ppc64el", loc.KindMemory, -296, false, true},
	} {
		a := arch.ByName(tt.arch)
		var b Builder
		e := b.Register(uint64(a.SP), tt.off)
		if tt.reads {
			e = b.Deref(e, 8)
		}
		if got := BelowStack(&loc.Location{Kind: tt.kind, Expr: e}, a); got != tt.below {
			t.Errorf("%+v: %v", tt, got)
		}
	}
	var b Builder
	a := arch.ByName("amd64")
	aligned := b.Binary(ops.Add, b.Binary(ops.And, b.Register(uint64(a.SP), -8), b.Const(^uint64(15))), b.Const(^uint64(143)))
	if !BelowStack(&loc.Location{Kind: loc.KindMemory, Expr: aligned}, a) {
		t.Error("a frame that is aligned further")
	}
}
