package eval

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
)

// TestDecode prints expressions with operands of every form.
func TestDecode(t *testing.T) {
	enc := Encoding{AddressSize: 8, OffsetSize: 4}
	for _, tt := range []struct {
		expr []byte
		want string
	}{
		{[]byte{0x77, 0x06, 0x9f}, "DW_OP_breg7 0x6 DW_OP_stack_value"},
		{[]byte{0x03, 1, 2, 3, 4, 5, 6, 7, 8}, "DW_OP_addr 0x807060504030201"},
		{[]byte{0x09, 0xff, 0x0b, 0xfe, 0xff, 0x15, 3}, "DW_OP_const1s -0x1 DW_OP_const2s -0x2 DW_OP_pick 0x3"},
		{[]byte{0x92, 0x05, 0x78}, "DW_OP_bregx 0x5 -0x8"},
		{[]byte{0xa3, 1, 0x55, 0x9f}, "DW_OP_entry_value 1 [55] DW_OP_stack_value"},
		{[]byte{0xa4, 0x2a, 2, 0x34, 0x12}, "DW_OP_const_type 0x2a 2 [3412]"},
		{[]byte{0xa0, 1, 0, 0, 0, 0x7f}, "DW_OP_implicit_pointer 0x1 -0x1"},
		{[]byte{0xfa, 1, 2, 3, 4}, "DW_OP_GNU_parameter_ref 0x4030201"},
		{[]byte{0x9d, 3, 5}, "DW_OP_bit_piece 0x3 0x5"},
		{[]byte{0x50, 0xef, 1}, "DW_OP_reg0 0xef ..."},
		{[]byte{0x0c, 1, 2}, "DW_OP_const4u ..."},
		{nil, ""},
	} {
		if got := ExpressionText(tt.expr, enc); got != tt.want {
			t.Errorf("% x: got %q, want %q", tt.expr, got, tt.want)
		}
	}
}

// TestEvaluateAlone: an Evaluator needs no image.
func TestEvaluateAlone(t *testing.T) {
	ev := Evaluator{Arch: arch.ByName("amd64"), Encoding: Encoding{AddressSize: 8, OffsetSize: 4}}
	var l loc.Location
	r, err := ev.Evaluate([]byte{0x77, 0x08}, &l)
	if got := l.Text(ev.Arch); err != nil || r.Code != reasons.None || got != "[%rsp+8]" {
		t.Errorf("%s, %v, %v", got, r, err)
	}
}

// TestFold compares Fold with 64-bit arithmetic written out.
func TestFold(t *testing.T) {
	minus := func(v int64) uint64 { return uint64(-v) }
	for _, tt := range []struct {
		op   loc.Op
		x, y uint64
		want uint64
		ok   bool
	}{
		{ops.Add, ^uint64(0), 2, 1, true}, {ops.Sub, 1, 2, ^uint64(0), true}, {ops.Mul, 1 << 63, 2, 0, true},
		{ops.Div, minus(7), 2, minus(3), true}, {ops.UDiv, minus(8), 2, 1<<63 - 4, true}, {ops.Mod, minus(7), 2, minus(1), true}, {ops.UMod, 7, 4, 3, true},
		{ops.Div, 1, 0, 0, false}, {ops.UDiv, 1, 0, 0, false}, {ops.Mod, 1, 0, 0, false}, {ops.UMod, 1, 0, 0, false},
		{ops.Mod, 1 << 63, ^uint64(0), 0, true},
		{ops.Shl, 1, 64, 0, true}, {ops.Shr, 1 << 63, 63, 1, true}, {ops.Shr, 1 << 63, 64, 0, true}, {ops.Shra, 1 << 63, 99, ^uint64(0), true},
		{ops.And, 6, 3, 2, true}, {ops.Or, 6, 3, 7, true}, {ops.Xor, 6, 3, 5, true},
		{ops.Eq, 1, 1, 1, true}, {ops.Ne, 1, 1, 0, true},
		{ops.Lt, ^uint64(0), 0, 1, true}, {ops.ULt, ^uint64(0), 0, 0, true}, {ops.Le, 1, 1, 1, true}, {ops.ULe, 2, 1, 0, true},
		{ops.Gt, ^uint64(0), 0, 0, true}, {ops.UGt, ^uint64(0), 0, 1, true}, {ops.Ge, 0, 0, 1, true}, {ops.UGe, 0, 1, 0, true},
		{ops.Const, 1, 1, 0, false},
	} {
		if got, ok := Fold(tt.op, tt.x, tt.y); got != tt.want || ok != tt.ok {
			t.Errorf("Fold(%d, %#x, %#x) = %#x, %v, want %#x, %v", tt.op, tt.x, tt.y, got, ok, tt.want, tt.ok)
		}
	}
}
