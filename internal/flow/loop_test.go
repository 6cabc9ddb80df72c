package flow

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

func TestLoopUpdates(t *testing.T) {
	const (
		dec  = "ffc8"         // dec %eax
		jump = "75fc"         // jne to dec
		far  = "0f8400f0ffff" // je to 0xffa bytes before it
		nop  = "90"
	)
	hex := func(code string) []byte { return dwarftest.Hex(t, code) }
	for _, tt := range []struct {
		name string
		body []insn.Code
		addr uint64
		want insn.Registers
	}{
		{"the body is a loop", []insn.Code{{Addr: 0x2000, Bytes: hex(dec + jump)}}, 0x2000, 1},
		{"the loop begins before it", []insn.Code{{Addr: 0x1ffe, Bytes: hex(nop + nop + dec + "75f9")}}, 0x2000, 1},
		{"the loop begins after it", []insn.Code{{Addr: 0x1fff, Bytes: hex(nop + dec + jump)}}, 0x1fff, 0},
		{"the loop ends before it", []insn.Code{{Addr: 0x2000, Bytes: hex(dec + jump + nop)}}, 0x2004, 0},
		{"a caller closes the loop", []insn.Code{{Addr: 0x2000, Bytes: hex(dec)}}, 0x2000, 0},
		{"in two parts", []insn.Code{{Addr: 0x2000, Bytes: hex(dec)}, {Addr: 0x2010, Bytes: hex("75ee")}}, 0x2000, 1},
		{"a jump to another function", []insn.Code{{Addr: 0x2000, Bytes: hex(dec + far)}}, 0x2000, 0},
		{"something else before it", []insn.Code{{Addr: 0x2000, Bytes: hex("06" + dec + jump)}}, 0x2000, 0},
		{"too late", []insn.Code{{Addr: 0x2000, Bytes: hex(nop)}, {Addr: 0x2011, Bytes: hex(dec + "75eb")}}, 0x2000, 0},
		{"nothing", nil, 0x2000, 0},
	} {
		if got := LoopUpdates(insn.For("amd64"), &Loop{Body: tt.body, Around: tt.addr, Lowest: 0x1f00, Lo: 0x1000, Hi: 0x2011}); got != tt.want {
			t.Errorf("%s: got %#x, want %#x", tt.name, got, tt.want)
		}
	}
}
