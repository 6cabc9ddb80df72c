package insn

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
)

// TestUpdates: registers by their DWARF numbers, instructions as objdump prints them.
func TestUpdates(t *testing.T) {
	for _, tt := range []struct {
		arch, code, text string
		want             Registers
	}{
		{"amd64", "83c0ff", "add $0xffffffff,%eax", 1 << 0},
		{"amd64", "ffc9", "dec %ecx", 1 << 2},
		{"amd64", "fec9", "dec %cl", 1 << 2},
		{"amd64", "48ffc7", "inc %rdi", 1 << 5},
		{"amd64", "4983c501", "add $1,%r13", 1 << 13},
		{"amd64", "8d40ff", "lea -1(%rax),%eax", 1 << 0},
		{"amd64", "8d4801", "lea 1(%rax),%ecx", 0},
		{"amd64", "488d0401", "lea (%rcx,%rax,1),%rax", 1 << 0},
		{"amd64", "d1e8", "shr %eax", 1 << 0},
		{"amd64", "6bc003", "imul $3,%eax,%eax", 1 << 0},
		{"amd64", "6bc103", "imul $3,%ecx,%eax", 0},
		{"amd64", "0fafc1", "imul %ecx,%eax", 1 << 0},
		{"amd64", "f7e1", "mul %ecx", 0},
		{"amd64", "31c0", "xor %eax,%eax", 0},
		{"amd64", "31c8", "xor %ecx,%eax", 1 << 0},
		{"amd64", "89c8", "mov %ecx,%eax", 0},
		{"amd64", "83f8ff", "cmp $-1,%eax", 0},
		{"amd64", "ff00", "incl (%rax)", 0},
		{"amd64", "c4e2f9f7c9", "shlx %rax,%rcx,%rcx", 1 << 2},
		{"amd64", "06", "not an instruction", 0},
		{"arm64", "00040051", "sub w0, w0, #1", 1 << 0},
		{"arm64", "20040051", "sub w0, w1, #1", 0},
		{"arm64", "2000008b", "add x0, x1, x0", 1 << 0},
		{"arm64", "00040071", "subs w0, w0, #1", 1 << 0},
		{"arm64", "1f040071", "cmp w0, #1", 0},
		{"arm64", "22144038", "ldrb w2, [x1], #1", 1 << 1},
		{"arm64", "221c4038", "ldrb w2, [x1, #1]!", 1 << 1},
		{"arm64", "22044039", "ldrb w2, [x1, #1]", 0},
		{"arm64", "e003012a", "mov w0, w1", 0},
		{"arm64", "ff4300d1", "sub sp, sp, #16", 1 << 31},
		{"arm64", "00", "cut short", 0},
	} {
		if got := For(tt.arch).updates(dwarftest.Hex(t, tt.code)); got != tt.want {
			t.Errorf("%s: got %#x, want %#x", tt.text, got, tt.want)
		}
	}
}

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
		body []Code
		addr uint64
		want Registers
	}{
		{"the body is a loop", []Code{{0x2000, hex(dec + jump)}}, 0x2000, 1},
		{"the loop begins before it", []Code{{0x1ffe, hex(nop + nop + dec + "75f9")}}, 0x2000, 1},
		{"the loop begins after it", []Code{{0x1fff, hex(nop + dec + jump)}}, 0x1fff, 0},
		{"the loop ends before it", []Code{{0x2000, hex(dec + jump + nop)}}, 0x2004, 0},
		{"a caller closes the loop", []Code{{0x2000, hex(dec)}}, 0x2000, 0},
		{"in two parts", []Code{{0x2000, hex(dec)}, {0x2010, hex("75ee")}}, 0x2000, 1},
		{"a jump to another function", []Code{{0x2000, hex(dec + far)}}, 0x2000, 0},
		{"something else before it", []Code{{0x2000, hex("06" + dec + jump)}}, 0x2000, 0},
		{"too late", []Code{{0x2000, hex(nop)}, {0x2011, hex(dec + "75eb")}}, 0x2000, 0},
		{"nothing", nil, 0x2000, 0},
	} {
		if got := For("amd64").LoopUpdates(&Loop{Body: tt.body, Around: tt.addr, Lowest: 0x1f00, Lo: 0x1000, Hi: 0x2011}); got != tt.want {
			t.Errorf("%s: got %#x, want %#x", tt.name, got, tt.want)
		}
	}
	if r := Registers(1 << 5); !r.Has(5) || r.Has(4) || r.Has(64) || r.Has(69) {
		t.Error("Has")
	}
}
