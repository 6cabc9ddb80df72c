package eval

import (
	"math/bits"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/proof/exprtest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
)

// loop is what GCC 12 writes of __builtin_clz and __builtin_ctz: the beginning, the bit that is looked for, and the end.
func loop(zero byte, bit []byte, shift byte) []byte {
	const breg5, dup, bra, drop, skip, lit0, swap, and, lit1, plusUconst, stackValue, const1u = 0x75, 0x12, 0x28, 0x13, 0x2f, 0x30, 0x16, 0x1a, 0x31, 0x23, 0x9f, 0x08
	turn := append(append([]byte{dup}, bit...), and, bra, 9, 0, lit1, shift, swap, plusUconst, 1, swap, skip)
	back := -int16(len(turn) + 2)
	turn = append(turn, byte(back), byte(uint16(back)>>8))
	rest := append(append([]byte{lit0, swap}, turn...), drop)
	out := []byte{breg5, 0, dup, bra, 6, 0, drop, const1u, zero, skip, byte(len(rest)), 0}
	return append(append(out, rest...), stackValue)
}

// TestZeros: the loops by which GCC counts zeros give what the builtins do, and nothing is taken for one that is another.
func TestZeros(t *testing.T) {
	const shl, shr = 0x24, 0x25
	high64, high32, low := []byte{0x0e, 0, 0, 0, 0, 0, 0, 0, 0x80}, []byte{0x0c, 0, 0, 0, 0x80}, []byte{0x31}
	values := []uint64{1, 2, 3, 0x123456, 0x7fffffff, 0x80000000, 0xdeadbeef, 1 << 32, 1 << 63, ^uint64(0), 0xf000000000000010}
	evaluate := func(expr []byte) (l loc.Location, ev *Evaluator, r loc.Reason) {
		t.Helper()
		ev = &Evaluator{Arch: arch.ByName("amd64"), Encoding: Encoding{AddressSize: 8, OffsetSize: 4}}
		r, err := ev.Evaluate(expr, &l)
		if err != nil {
			t.Fatal(err)
		}
		return l, ev, r
	}
	for name, x := range map[string]struct {
		expr []byte
		want func(v uint64) int
		zero uint64
	}{
		"leading of 64 bits":  {loop(64, high64, shl), bits.LeadingZeros64, 64},
		"leading of 32 bits":  {loop(32, high32, shl), func(v uint64) int { return bits.LeadingZeros32(uint32(v)) }, 32},
		"trailing of 64 bits": {loop(64, low, shr), bits.TrailingZeros64, 64},
		"trailing of 32 bits": {loop(32, low, shr), func(v uint64) int { return bits.TrailingZeros32(uint32(v)) }, 32},
		"trailing of 16 bits": {loop(16, low, shr), func(v uint64) int { return bits.TrailingZeros16(uint16(v)) }, 16},
	} {
		l, _, r := evaluate(x.expr)
		if r.Code != reasons.None {
			t.Errorf("%s: %v", name, r)
			continue
		}
		for _, v := range values {
			if got, ok := exprtest.Value(registers(v), l.Expr); !ok || got != uint64(x.want(v)) {
				t.Errorf("%s of %#x: %d, %v", name, v, got, ok)
			}
		}
		if got, ok := exprtest.Value(registers(0), l.Expr); !ok || got != x.zero {
			t.Errorf("%s of 0: %d, %v", name, got, ok)
		}
	}
	counts := func(l *loc.Location, ev *Evaluator) bool { return strings.Contains(l.Text(ev.Arch), "clz(") }
	for name, expr := range map[string][]byte{
		"ones, from above": loop(64, high64, shr), "another bit": loop(64, []byte{0x33}, shr), "no bit": loop(64, []byte{0x30}, shl),
		"another zero": loop(7, low, shr), "another width": loop(64, high32, shl),
	} {
		if l, ev, r := evaluate(expr); r.Code == reasons.None && counts(&l, ev) {
			t.Errorf("%s: %s", name, l.Text(ev.Arch))
		}
	}
	whole := loop(64, high64, shl)
	for i := range whole[:len(whole)-1] {
		other := append([]byte(nil), whole...)
		other[i]++
		var l loc.Location
		ev := Evaluator{Arch: arch.ByName("amd64"), Encoding: Encoding{AddressSize: 8, OffsetSize: 4}}
		r, err := ev.Evaluate(other, &l)
		// The register may be another, and numbers may be written in another form.
		if err == nil && r.Code == reasons.None && counts(&l, &ev) && i > 1 && i != 7 && i != 15 {
			t.Errorf("with another byte %d: %s", i, l.Text(ev.Arch))
		}
	}
}
