package arithmetic

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
)

// TestShiftedOut: of the first value clang 19 says that it is a member, of the second that it was one.
func TestShiftedOut(t *testing.T) {
	var b eval.Builder
	rbx := b.Register(3, 0)
	low := b.Extend(rbx, 1, false)
	or := func(e *loc.Expr) *loc.Expr { return &loc.Expr{Op: ops.Or, A: e, B: b.Const(0)} }
	shift := func(op loc.Op, e *loc.Expr, n uint64) *loc.Expr { return &loc.Expr{Op: op, A: e, B: b.Const(n)} }
	for _, x := range []struct {
		e    *loc.Expr
		want bool
	}{
		{shift(ops.Shr, or(shift(ops.Shl, low, 16)), 48), true},
		{shift(ops.Shr, or(shift(ops.Shl, low, 48)), 48), false},
		{shift(ops.Shr, or(shift(ops.Shl, rbx, 16)), 48), false},
		{shift(ops.Shr, low, 8), true},
		{shift(ops.Shra, low, 8), false}, // not looked into
		{shift(ops.Shr, b.Const(1), 8), false},
		{&loc.Expr{Op: ops.And, A: low, B: b.Const(0x100)}, true},
		{&loc.Expr{Op: ops.Xor, A: low, B: b.Const(0x100)}, false},
		{&loc.Expr{Op: ops.Shr, A: &loc.Expr{Op: ops.Deref, Size: 2, A: rbx}, B: b.Const(16)}, true},
	} {
		l := loc.Location{Kind: loc.KindValue, Expr: x.e}
		if got := ShiftedOut(&l); got != x.want {
			t.Errorf("%s: %v, want %v", l.Text(arch.ByName("amd64")), got, x.want)
		}
		l = loc.Location{Kind: loc.KindPieces, Pieces: []loc.Piece{{BitSize: 8, Loc: l}}}
		if ShiftedOut(&l) || (l.Pieces[0].Reason.Code == reasons.Contradictory) != x.want {
			t.Errorf("%s: as a piece: %v", l.Text(arch.ByName("amd64")), l.Pieces[0].Reason)
		}
	}
}

// TestNumberAsAddress: what clang 19 and 22 write for a short in a register, and what an address may be.
func TestNumberAsAddress(t *testing.T) {
	var b eval.Builder
	r3 := b.Register(3, 0)
	for _, x := range []struct {
		e    *loc.Expr
		want bool
	}{
		{b.Extend(b.Extend(r3, 4, false), 2, false), true},
		{b.Extend(r3, 1, true), true},
		{b.Extend(r3, 4, false), true},
		{r3, false},
		{b.Register(3, 16), false},
	} {
		l := loc.Location{Kind: loc.KindMemory, Expr: x.e}
		if got := NumberAsAddress(&l, 8); got != x.want {
			t.Errorf("%s: %v, want %v", l.Text(arch.ByName("ppc64el")), got, x.want)
		}
		l = loc.Location{Kind: loc.KindPieces, Pieces: []loc.Piece{{BitSize: 8, Loc: l}}}
		if got := NumberAsAddress(&l, 8); got != x.want {
			t.Errorf("%s: %v, want %v", l.Text(arch.ByName("ppc64el")), got, x.want)
		}
		l = loc.Location{Kind: loc.KindValue, Expr: x.e}
		if NumberAsAddress(&l, 8) {
			t.Errorf("%s is a value", l.Text(arch.ByName("ppc64el")))
		}
	}
}
