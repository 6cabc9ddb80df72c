package attachable

import (
	"encoding/hex"
	"testing"
)

// bytesOf is the bytes that hexadecimal digits stand for.
func bytesOf(t *testing.T, digits string) []byte {
	t.Helper()
	b, err := hex.DecodeString(digits)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestSizes: instructions that x86asm does not decode, with the sizes that objdump
// gives them.
func TestSizes(t *testing.T) {
	for code, want := range map[string]int{
		"0f01cf":             3, // encls
		"0f01ee":             3, // rdpkru
		"0f01d9":             3, // vmmcall
		"f30f01d9":           4, // vmgexit
		"0f01e8":             3, // setssbsy's group, serialize
		"0faef1":             3, // umwait's group
		"f30f1efa":           4, // endbr64
		"f3480f1ec8":         5, // rdsspq %rax
		"480fc72f":           4, // xsaves64 (%rdi)
		"480fc76f40":         5, // xsaves64 0x40(%rdi)
		"480fc7ac2400010000": 9, // xsaves64 0x100(%rsp)
		"0f0b":               2, // ud2, which it does
	} {
		if in, ok := nextX86(bytesOf(t, code+"909090909090909090909090")); in.size != want || in.branches || !in.onward || !ok {
			t.Errorf("%s has %d bytes (%v), want %d", code, in.size, ok, want)
		}
	}
}

// TestX86: where instructions lead, as objdump prints them.
func TestX86(t *testing.T) {
	for code, want := range map[string]instruction{
		"7406":             {size: 2, onward: true, branches: true, target: 8},  // je .+8
		"0f85f2ffffff":     {size: 6, onward: true, branches: true, target: -8}, // jne .-8
		"e2fc":             {size: 2, onward: true, branches: true, target: -2}, // loop .-2
		"e3fc":             {size: 2, onward: true, branches: true, target: -2}, // jrcxz .-2
		"ebf6":             {size: 2, branches: true, target: -8},               // jmp .-8
		"e9f3ffffff":       {size: 5, branches: true, target: -8},               // jmp .-8
		"e8f3ffffff":       {size: 5, onward: true},                             // call .-8
		"ffd0":             {size: 2, onward: true},                             // call *%rax
		"ffe0":             {size: 2, lost: true},                               // jmp *%rax
		"ff24c500000081":   {size: 7, lost: true},                               // jmp *-0x7f000000(,%rax,8)
		"c3":               {size: 1},                                           // ret
		"48cf":             {size: 2},                                           // iretq
		"480f07":           {size: 3},                                           // sysretq
		"0f0b":             {size: 2, onward: true},                             // ud2
		"f3a4":             {size: 2, onward: true},                             // rep movsb
		"488d0df9ffffff":   {size: 7, onward: true},                             // lea -7(%rip), %rcx
		"f00fb115f8ffffff": {size: 8, onward: true},                             // lock cmpxchg %edx, -8(%rip)
	} {
		if in, ok := nextX86(bytesOf(t, code)); in != want || !ok {
			t.Errorf("%s: %+v (%v), want %+v", code, in, ok, want)
		}
	}
	for _, code := range []string{"06", "0f", ""} { // push %es, which 64 bits do not have; cut short
		if in, ok := nextX86(bytesOf(t, code)); ok {
			t.Errorf("%q: %+v, want it not known", code, in)
		}
	}
}

// TestARM64: where instructions lead, among them all kinds of branches. The bytes are
// those of llvm-mc -triple=aarch64 -mattr=+v8.7a,+sve for the text; the last three, which
// it does not know yet, are from the Arm ARM.
func TestARM64(t *testing.T) {
	for _, tt := range []struct {
		code, text string
		want       instruction
	}{
		{"feffff17", "b .-8", instruction{branches: true, target: -8}},
		{"a1ffff54", "b.ne .-12", instruction{onward: true, branches: true, target: -12}},
		{"40000034", "cbz w0, .+8", instruction{onward: true, branches: true, target: 8}},
		{"81ffffb5", "cbnz x1, .-16", instruction{onward: true, branches: true, target: -16}},
		{"62ff1f36", "tbz w2, #3, .-20", instruction{onward: true, branches: true, target: -20}},
		{"c30040b7", "tbnz x3, #40, .+24", instruction{onward: true, branches: true, target: 24}},
		{"ffffff97", "bl .-4", instruction{onward: true}},
		{"80003fd6", "blr x4", instruction{onward: true}},
		{"22083fd7", "blraa x1, x2", instruction{onward: true}},
		{"3f0c3fd6", "blrabz x1", instruction{onward: true}},
		{"a0001fd6", "br x5", instruction{lost: true}},
		{"22081fd7", "braa x1, x2", instruction{lost: true}},
		{"3f0c1fd6", "brabz x1", instruction{lost: true}},
		{"c0035fd6", "ret", instruction{}},
		{"ff0b5fd6", "retaa", instruction{}},
		{"ff0f5fd6", "retab", instruction{}},
		{"e0039fd6", "eret", instruction{}},
		{"ff0b9fd6", "eretaa", instruction{}},
		{"e003bfd6", "drps", instruction{}},
		{"210000d4", "svc #1", instruction{onward: true}},
		{"000021d4", "brk #0x800", instruction{onward: true}},
		{"3f2303d5", "paciasp", instruction{onward: true}},
		{"5f2403d5", "bti c", instruction{onward: true}},
		{"df4203d5", "msr daifset, #2", instruction{onward: true}},
		{"80d038d5", "mrs x0, tpidr_el1", instruction{onward: true}},
		{"1f8308d5", "tlbi vmalle1is", instruction{onward: true}},
		{"ff3003d5", "sb", instruction{onward: true}},
		{"001003d5", "wfet x0", instruction{onward: true}},
		{"c0ffff10", "adr x0, .-8", instruction{onward: true}},
		{"c0ffff58", "ldr x0, .-8", instruction{onward: true}},
		{"4100e0b8", "ldaddal w0, w1, [x2]", instruction{onward: true}},
		{"e0e31825", "ptrue p0.b", instruction{onward: true}},
	} {
		tt.want.size = 4
		if in, ok := nextARM64(bytesOf(t, tt.code)); in != tt.want || !ok {
			t.Errorf("%s: %+v (%v), want %+v", tt.text, in, ok, tt.want)
		}
	}
	for code, text := range map[string]string{
		"b1ffff54": "bc.ne .-12",
		"a13f0174": "cbgt w1, w1, .-12",
		"1f000055": "retaasppc .",
		"feffff":   "cut short",
	} {
		if in, ok := nextARM64(bytesOf(t, code)); ok {
			t.Errorf("%s: %+v, want it not known", text, in)
		}
	}
}

// TestRefuses: what Linux 6.1 says of the last of some instructions, as the comments spell
// them (llvm-mc -triple=aarch64 -show-encoding).
func TestRefuses(t *testing.T) {
	const load, store, add = "007c5f88", "007c0188", "00040091" // ldxr w0, [x0]; stxr w1, w0, [x0]; add x0, x0, #1
	for code, want := range map[string]Cause{
		add:                      CauseNone,
		"1f2003d5":               CauseNone,       // nop
		"5f2403d5":               CauseNone,       // bti c
		"3f2303d5":               CauseNone,       // paciasp
		"bf2303d5":               causeCannotStep, // autiasp
		"5f2003d5":               causeCannotStep, // wfe
		"00423bd5":               CauseNone,       // mrs x0, nzcv
		"20423bd5":               causeCannotStep, // mrs x0, daif
		"df4203d5":               causeCannotStep, // msr daifset, #2
		"001018d5":               causeCannotStep, // msr sctlr_el1, x0
		"000020d4":               causeCannotStep, // brk #0
		"c0035fd6":               CauseNone,       // ret, which is simulated
		"ff0b5fd6":               causeCannotStep, // retaa
		"00000014":               CauseNone,       // b, too
		load:                     causeCannotStep,
		store:                    causeCannotStep,
		load + add:               causeInExclusive,
		load + add + store:       causeCannotStep,
		load + add + store + add: CauseNone,
		"00fcdf88" + add:         causeInExclusive, // behind ldar, which the kernel takes for an exclusive load
	} {
		if got := decoders["arm64"].refuses(bytesOf(t, code)); got != want {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}
