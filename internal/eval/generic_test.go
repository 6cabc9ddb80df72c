package eval

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/proof/exprtest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
)

// registers is a machine with the same number in each register.
type registers uint64

func (r registers) Register(uint64) (uint64, bool)  { return uint64(r), true }
func (r registers) Address(a uint64) uint64         { return a }
func (r registers) Load(uint64, int) (uint64, bool) { return 0, false }

// On machines with addresses of 4 bytes, arithmetic of the generic type is modulo 1<<32.
func TestGenericSize(t *testing.T) {
	const breg3, lit0 = 0x73, 0x30
	const stackValue, shl, shr, shra, minus, lt, div, mod, eq, ge, neg, not, const4u, const1s, plus = 0x9f, 0x24, 0x25, 0x26, 0x1c, 0x2d, 0x1b, 0x1d, 0x29, 0x2a, 0x1f, 0x20, 0x0c, 0x09, 0x22
	for _, tt := range []struct {
		what string
		expr []byte
		text string
		reg  uint64
		want uint32
	}{
		{"the low half", []byte{breg3, 0, lit0 + 16, shl, lit0 + 16, shr, stackValue}, "u32(%ebx << 16) >>u 16", 0x12345678, 0x5678},
		{"the low half, signed", []byte{breg3, 0, lit0 + 16, shl, lit0 + 16, shra, stackValue}, "s32(%ebx << 16) >> 16", 0x1234a678, 0xffffa678},
		{"ERR_PTR", []byte{breg3, 0, const4u, 0x01, 0xf0, 0xff, 0xff, ge, stackValue}, "s32(%ebx) >= -4095", 0xfffffff4, 1},
		{"less than 0", []byte{breg3, 0, lit0, lt, stackValue}, "s32(%ebx) < 0", 0x80000000, 1},
		{"a difference", []byte{breg3, 0, lit0 + 9, minus, lit0 + 2, shr, stackValue}, "u32(%ebx-9) >>u 2", 5, 0x3fffffff},
		{"division", []byte{breg3, 0, lit0 + 2, div, stackValue}, "s32(%ebx) / 2", 0xfffffff8, 0xfffffffc},
		{"modulo", []byte{breg3, 1, lit0 + 7, mod, stackValue}, "u32(%ebx+1) modu 7", 0xffffffff, 0},
		{"equal after wrapping", []byte{breg3, 1, lit0, eq, stackValue}, "u32(%ebx+1) == 0", 0xffffffff, 1},
		{"a negative offset", []byte{breg3, 0, const4u, 0xf8, 0xff, 0xff, 0xff, plus, stackValue}, "%ebx-8", 24, 16},
		{"not", []byte{breg3, 0, not, lit0 + 4, shr, stackValue}, "u32(~%ebx) >>u 4", 0, 0x0fffffff},
		{"negated", []byte{breg3, 0, neg, lit0, lt, stackValue}, "s32(-%ebx) < 0", 1, 1},
	} {
		ev := Evaluator{Arch: arch.ByName("i386"), Encoding: Encoding{AddressSize: 4, OffsetSize: 4}}
		var l loc.Location
		if r, err := ev.Evaluate(tt.expr, &l); err != nil || r.Code != reasons.None {
			t.Errorf("%s: %v, %v", tt.what, r, err)
			continue
		}
		if got := l.Text(ev.Arch); got != tt.text || l.Size != 4 {
			t.Errorf("%s: got %s of %d bytes, want %s", tt.what, got, l.Size, tt.text)
		}
		if got, ok := exprtest.Value(registers(tt.reg), l.Expr); !ok || uint32(got) != tt.want {
			t.Errorf("%s: got %#x, want %#x", tt.what, uint32(got), tt.want)
		}
	}
	// A register, and a value of the generic type, have no more bytes.
	b := Builder{RegisterBytes: 4}
	for _, l := range []loc.Location{{Kind: loc.KindRegister, Expr: b.Register(3, 0)}, {Kind: loc.KindValue, Size: 4, Expr: b.Register(3, 1)}} {
		if _, r := b.Bits(&l, 0, 64); r.Code != reasons.MissingPiece {
			t.Errorf("64 bits of %s: %v", l.Text(arch.ByName("i386")), r)
		}
		if _, r := b.Bits(&l, 0, 32); r.Code != reasons.None {
			t.Errorf("32 bits of %s: %v", l.Text(arch.ByName("i386")), r)
		}
	}
}
