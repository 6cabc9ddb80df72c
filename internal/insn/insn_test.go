package insn

import (
	"strconv"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
)

// TestSizes: instructions that x86asm does not decode, with the sizes that objdump
// gives them.
func TestSizes(t *testing.T) {
	for code, want := range map[string]int{
		"0f01cf":             3, // encls
		"0f01ee":             3, // rdpkru
		"f20f00f7":           4, // lkgs %edi
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
		"66480f38f556f8":     7, // wrussq %rdx, -8(%rsi)
		"67480fb93a":         5, // ud1 (%edx), %rdi
		"f30fa6d0":           4, // repz xsha256

		"c4e2f9f7c9":           5,  // shlx %rax, %rcx, %rcx
		"c5f877":               3,  // vzeroupper
		"c4e3fbf0c805":         6,  // rorx $5, %rax, %rcx
		"c4e2f2f514c7":         6,  // pext (%rdi,%rax,8), %rcx, %rdx
		"c5fe6f8c2400010000":   9,  // vmovdqu 0x100(%rsp), %ymm1
		"64c5f96f042510000000": 10, // vmovdqa %fs:0x10, %xmm0
		"c5f970d11b":           5,  // vpshufd $0x1b, %xmm1, %xmm2
		"c5f1c4d003":           5,  // vpinsrw $3, %eax, %xmm1, %xmm2
		"c4e3750f574008":       7,  // vpalignr $8, 0x40(%rdi), %ymm1, %ymm2
		"c5ed73d103":           5,  // vpsrlq $3, %ymm1, %ymm2
		"c5f9c5c102":           5,  // vpextrw $2, %xmm1, %eax
		"c5fc102578563412":     8,  // vmovups 0x12345678(%rip), %ymm4
		"c4e275901c90":         6,  // vpgatherdd %ymm1, (%rax,%ymm2,4), %ymm3
		"62f16d48fed9":         6,  // vpaddd %zmm1, %zmm2, %zmm3
		"6271fe486f4c2401":     8,  // vmovdqu64 0x40(%rsp), %zmm9
		"62f36d4825d996":       7,  // vpternlogd $0x96, %zmm1, %zmm2, %zmm3
	} {
		if in, ok := amd64().Next(dwarftest.Hex(t, code+"909090909090909090909090")); in.Size != want || in.Branches || !in.Onward || !ok {
			t.Errorf("%s has %d bytes (%v), want %d", code, in.Size, ok, want)
		}
	}
}

// TestX86: where instructions lead, as objdump prints them.
func TestX86(t *testing.T) {
	for code, want := range map[string]Insn{
		"7406":             {Size: 2, Onward: true, Branches: true, Target: 8},  // je .+8
		"0f85f2ffffff":     {Size: 6, Onward: true, Branches: true, Target: -8}, // jne .-8
		"e2fc":             {Size: 2, Onward: true, Branches: true, Target: -2}, // loop .-2
		"e3fc":             {Size: 2, Onward: true, Branches: true, Target: -2}, // jrcxz .-2
		"ebf6":             {Size: 2, Branches: true, Target: -8},               // jmp .-8
		"e9f3ffffff":       {Size: 5, Branches: true, Target: -8},               // jmp .-8
		"e8f3ffffff":       {Size: 5, Onward: true, Call: true, Target: -8},     // call .-8
		"ffd0":             {Size: 2, Onward: true, Call: true},                 // call *%rax
		"ffe0":             {Size: 2, Lost: true},                               // jmp *%rax
		"ff24c500000081":   {Size: 7, Lost: true},                               // jmp *-0x7f000000(,%rax,8)
		"c3":               {Size: 1},                                           // ret
		"48cf":             {Size: 2},                                           // iretq
		"480f07":           {Size: 3},                                           // sysretq
		"0f0b":             {Size: 2, Onward: true, Trap: true},                 // ud2
		"6690":             {Size: 2, Onward: true, Nop: true},                  // xchg %ax, %ax
		"0f1f440000":       {Size: 5, Onward: true, Nop: true},                  // nopl 0(%rax,%rax)
		"f3a4":             {Size: 2, Onward: true},                             // rep movsb
		"488d0df9ffffff":   {Size: 7, Onward: true},                             // lea -7(%rip), %rcx
		"f00fb115f8ffffff": {Size: 8, Onward: true},                             // lock cmpxchg %edx, -8(%rip)
	} {
		if in, ok := amd64().Next(dwarftest.Hex(t, code)); in != want || !ok {
			t.Errorf("%s: %+v (%v), want %+v", code, in, ok, want)
		}
	}
	for _, code := range []string{"06", "0f", ""} { // push %es, which 64 bits do not have; cut short
		if in, ok := amd64().Next(dwarftest.Hex(t, code)); ok {
			t.Errorf("%q: %+v, want it not known", code, in)
		}
	}
}

// TestI386: instructions that 64-bit code does not have, or has another meaning for. The bytes are those of GNU's assembler.
func TestI386(t *testing.T) {
	for code, want := range map[string]Insn{
		"48":             {Size: 1, Onward: true},                             // dec %eax
		"41":             {Size: 1, Onward: true},                             // inc %ecx
		"60":             {Size: 1, Onward: true},                             // pusha
		"06":             {Size: 1, Onward: true},                             // push %es
		"63c3":           {Size: 2, Onward: true},                             // arpl %ax, %bx
		"c408":           {Size: 2, Onward: true},                             // les (%eax), %ecx
		"c501":           {Size: 2, Onward: true},                             // lds (%ecx), %eax
		"6201":           {Size: 2, Onward: true},                             // bound %eax, (%ecx)
		"c5f877":         {Size: 3, Onward: true},                             // vzeroupper
		"c5f1efd0":       {Size: 4, Onward: true},                             // vpxor %xmm0, %xmm1, %xmm2
		"ff248507000000": {Size: 7, Lost: true},                               // jmp *7(,%eax,4)
		"e306":           {Size: 2, Onward: true, Branches: true, Target: 8},  // jecxz .+8
		"e8f3ffffff":     {Size: 5, Onward: true, Call: true, Target: -8},     // call .-8
		"0f0b":           {Size: 2, Onward: true, Trap: true},                 // ud2
		"c3":             {Size: 1},                                           // ret
		"a100000080":     {Size: 5, Onward: true},                             // mov 0x80000000, %eax
		"ebf6":           {Size: 2, Branches: true, Target: -8},               // jmp .-8
		"0f84f2ffffff":   {Size: 6, Onward: true, Branches: true, Target: -8}, // je .-8
	} {
		code += "9090909090909090"
		if in, ok := i386().Next(dwarftest.Hex(t, code)); in != want || !ok {
			t.Errorf("%s: %+v (%v), want %+v", code, in, ok, want)
		}
	}
}

// TestARM64: where instructions lead, among them all kinds of branches. The bytes are
// those of llvm-mc -triple=aarch64 -mattr=+v8.7a,+sve for the text; the last two, which
// it does not know yet, are from the Arm ARM.
func TestARM64(t *testing.T) {
	for _, tt := range []struct {
		code, text string
		want       Insn
	}{
		{"feffff17", "b .-8", Insn{Branches: true, Target: -8}},
		{"a1ffff54", "b.ne .-12", Insn{Onward: true, Branches: true, Target: -12}},
		{"b1ffff54", "bc.ne .-12", Insn{Onward: true, Branches: true, Target: -12}},
		{"1f2003d5", "nop", Insn{Onward: true, Nop: true}},
		{"40000034", "cbz w0, .+8", Insn{Onward: true, Branches: true, Target: 8}},
		{"81ffffb5", "cbnz x1, .-16", Insn{Onward: true, Branches: true, Target: -16}},
		{"62ff1f36", "tbz w2, #3, .-20", Insn{Onward: true, Branches: true, Target: -20}},
		{"c30040b7", "tbnz x3, #40, .+24", Insn{Onward: true, Branches: true, Target: 24}},
		{"ffffff97", "bl .-4", Insn{Onward: true, Call: true, Target: -4}},
		{"80003fd6", "blr x4", Insn{Onward: true, Call: true}},
		{"22083fd7", "blraa x1, x2", Insn{Onward: true, Call: true}},
		{"3f0c3fd6", "blrabz x1", Insn{Onward: true, Call: true}},
		{"a0001fd6", "br x5", Insn{Lost: true}},
		{"22081fd7", "braa x1, x2", Insn{Lost: true}},
		{"3f0c1fd6", "brabz x1", Insn{Lost: true}},
		{"c0035fd6", "ret", Insn{}},
		{"ff0b5fd6", "retaa", Insn{}},
		{"ff0f5fd6", "retab", Insn{}},
		{"e0039fd6", "eret", Insn{}},
		{"ff0b9fd6", "eretaa", Insn{}},
		{"e003bfd6", "drps", Insn{}},
		{"210000d4", "svc #1", Insn{Onward: true}},
		{"000021d4", "brk #0x800", Insn{Onward: true, Trap: true}},
		{"3f2303d5", "paciasp", Insn{Onward: true}},
		{"5f2403d5", "bti c", Insn{Onward: true}},
		{"df4203d5", "msr daifset, #2", Insn{Onward: true}},
		{"80d038d5", "mrs x0, tpidr_el1", Insn{Onward: true}},
		{"1f8308d5", "tlbi vmalle1is", Insn{Onward: true}},
		{"ff3003d5", "sb", Insn{Onward: true}},
		{"001003d5", "wfet x0", Insn{Onward: true}},
		{"c0ffff10", "adr x0, .-8", Insn{Onward: true}},
		{"c0ffff58", "ldr x0, .-8", Insn{Onward: true}},
		{"4100e0b8", "ldaddal w0, w1, [x2]", Insn{Onward: true}},
		{"e0e31825", "ptrue p0.b", Insn{Onward: true}},
	} {
		tt.want.Size = 4
		if in, ok := arm64().Next(dwarftest.Hex(t, tt.code)); in != tt.want || !ok {
			t.Errorf("%s: %+v (%v), want %+v", tt.text, in, ok, tt.want)
		}
	}
	for code, text := range map[string]string{
		"a13f0174": "cbgt w1, w1, .-12",
		"1f000055": "retaasppc .",
		"feffff":   "cut short",
	} {
		if in, ok := arm64().Next(dwarftest.Hex(t, code)); ok {
			t.Errorf("%s: %+v, want it not known", text, in)
		}
	}
}

const rbp, rsp = 6, 7 // DWARF numbers

// TestStoredLast: code from a site to the end of a list's entry.
func TestStoredLast(t *testing.T) {
	const store = " 48 89 44 24 08" // mov %rax,8(%rsp)
	sp8 := Slot{rsp, 8, 8}
	for _, tt := range []struct {
		name string
		code string
		m    Slot
		want int // where the store begins; -1: it is no late store
	}{
		{"nothing else", store, sp8, 0},
		{"of another register", "48 89 4c 24 08", sp8, 0},                           // mov %rcx,8(%rsp)
		{"after other instructions", "48 89 c7 90" + store, sp8, 4},                 // mov %rax,%rdi; nop
		{"after a store of another slot", "48 89 4c 24 10" + store, sp8, 5},         // mov %rcx,16(%rsp)
		{"after a read of another slot", "48 8b 0c 24" + store, sp8, 4},             // mov (%rsp),%rcx
		{"after memory of another register", "48 89 4d 08" + store, sp8, 4},         // mov %rcx,8(%rbp)
		{"after memory of another segment", "65 48 8b 4c 24 08" + store, sp8, 6},    // mov %gs:8(%rsp),%rcx
		{"after another slot's address", "48 8d 7c 24 18" + store, sp8, 5},          // lea 24(%rsp),%rdi
		{"without a displacement", "48 89 04 24", Slot{rsp, 0, 8}, 0},               // mov %rax,(%rsp)
		{"8 bits, negative", "48 89 45 f8", Slot{rbp, -8, 8}, 0},                    // mov %rax,-8(%rbp)
		{"8 bits, 0", "48 89 45 00", Slot{rbp, 0, 8}, 0},                            // mov %rax,0(%rbp)
		{"32 bits", "48 89 84 24 80 00 00 00", Slot{rsp, 128, 8}, 0},                // mov %rax,128(%rsp)
		{"32 bits, negative", "4c 89 85 f8 fe ff ff", Slot{rbp, -264, 8}, 0},        // mov %r8,-264(%rbp)
		{"4 bytes", "89 44 24 08", Slot{rsp, 8, 4}, 0},                              // mov %eax,8(%rsp)
		{"2 bytes", "66 89 44 24 08", Slot{rsp, 8, 2}, 0},                           // mov %ax,8(%rsp)
		{"1 byte", "88 44 24 08", Slot{rsp, 8, 1}, 0},                               // mov %al,8(%rsp)
		{"condition", "0f 94 44 24 08", Slot{rsp, 8, 1}, 0},                         // sete 8(%rsp)
		{"constant", "48 c7 44 24 08 07 00 00 00", sp8, 0},                          // movq $7,8(%rsp)
		{"constant of 4 bytes", "c7 44 24 08 07 00 00 00", Slot{rsp, 8, 4}, 0},      // movl $7,8(%rsp)
		{"constant of 2 bytes", "66 c7 44 24 08 07 00", Slot{rsp, 8, 2}, 0},         // movw $7,8(%rsp)
		{"constant of 1 byte", "c6 44 24 08 07", Slot{rsp, 8, 1}, 0},                // movb $7,8(%rsp)
		{"vector register", "f2 0f 11 44 24 08", sp8, 0},                            // movsd %xmm0,8(%rsp)
		{"16 bytes", "0f 11 44 24 08", Slot{rsp, 8, 16}, 0},                         // movups %xmm0,8(%rsp)
		{"AVX", "c5 fa 7f 44 24 08", Slot{rsp, 8, 16}, 0},                           // vmovdqu %xmm0,8(%rsp)
		{"no code", "", sp8, -1},                                                    //
		{"no store", "48 89 c7", sp8, -1},                                           // mov %rax,%rdi
		{"the entry ends after it", store + "90", sp8, -1},                          // nop
		{"the entry ends in it", "48 89 44 24", sp8, -1},                            // cut
		{"two stores", store + store, sp8, -1},                                      //
		{"another slot", "48 89 44 24 10", sp8, -1},                                 // mov %rax,16(%rsp)
		{"a slot that overlaps", "48 89 44 24 04", sp8, -1},                         // mov %rax,4(%rsp)
		{"a read at the end", "48 8b 44 24 08", sp8, -1},                            // mov 8(%rsp),%rax
		{"narrower", "89 44 24 08", sp8, -1},                                        // mov %eax,8(%rsp)
		{"wider", store, Slot{rsp, 8, 4}, -1},                                       //
		{"of unknown size", store, Slot{rsp, 8, -1}, -1},                            //
		{"after a read", "48 8b 4c 24 08" + store, sp8, -1},                         // mov 8(%rsp),%rcx
		{"after a read of a part", "8b 4c 24 0c" + store, sp8, -1},                  // mov 12(%rsp),%ecx
		{"after a store of a part", "c6 44 24 0f 00" + store, sp8, -1},              // movb $0,15(%rsp)
		{"after its address", "48 8d 7c 24 08" + store, sp8, -1},                    // lea 8(%rsp),%rdi
		{"after an index", "48 89 0c cc" + store, sp8, -1},                          // mov %rcx,(%rsp,%rcx,8)
		{"it has an index", "48 89 44 cc 08", sp8, -1},                              // mov %rax,8(%rsp,%rcx,8)
		{"it adds", "48 01 44 24 08", sp8, -1},                                      // add %rax,8(%rsp)
		{"it exchanges", "48 87 44 24 08", sp8, -1},                                 // xchg %rax,8(%rsp)
		{"after a call", "e8 00 00 00 00" + store, sp8, -1},                         // call
		{"after an indirect call", "ff d0" + store, sp8, -1},                        // call *%rax
		{"after a branch", "74 00" + store, sp8, -1},                                // je
		{"after a jump", "eb 00" + store, sp8, -1},                                  // jmp
		{"after a return", "c3" + store, sp8, -1},                                   // ret
		{"after a trap", "0f 0b" + store, sp8, -1},                                  // ud2
		{"after a high byte", "88 e1" + store, sp8, 2},                              // mov %ah,%cl
		{"after a push", "50" + store, sp8, -1},                                     // push %rax
		{"after a pop", "58" + store, sp8, -1},                                      // pop %rax
		{"after a new frame", "48 83 ec 10" + store, sp8, -1},                       // sub $16,%rsp
		{"after a new stack", "bc 00 00 00 00" + store, sp8, -1},                    // mov $0,%esp
		{"after a part of a new stack", "40 b4 01" + store, sp8, -1},                // mov $1,%spl
		{"after a new frame pointer", "48 89 e5 48 89 45 f8", Slot{rbp, -8, 8}, -1}, // mov %rsp,%rbp
		{"after what does nothing", "f3 0f 1e fa" + store, sp8, 4},                  // endbr64
		{"after what is not known", "0f 05" + store, sp8, -1},                       // syscall
	} {
		code := dwarftest.Hex(t, strings.ReplaceAll(tt.code, " ", ""))
		d := amd64().Slots
		at, ok := d.storedLast(code, tt.m)
		if !ok {
			at = -1
		}
		if at != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, at, tt.want)
		}
		if ends := d.ends(code, tt.m); ok && !ends {
			t.Errorf("%s: the cheap test does not see the store", tt.name)
		}
	}
}

// TestCutShort: x86asm panics on a VEX prefix without an opcode.
func TestCutShort(t *testing.T) {
	for _, code := range []string{"c530", "c5", "c4e2", "c4e279", "62f1fd", "62f1fd48", "6666c5f8"} {
		if in, ok := amd64().Next(dwarftest.Hex(t, code)); ok {
			t.Errorf("%s: %+v", code, in)
		}
	}
}

// TestStoredLater: what clang 22 makes of the beginning of a function with variable arguments, and what
// differs from it.
func TestStoredLater(t *testing.T) {
	const (
		frame  = "55 48 89 e5"    // push %rbp; mov %rsp,%rbp
		test   = "84 c0"          // test %al,%al
		over   = "74 04"          // je over the next instruction
		vector = "0f 29 45 80"    // movaps %xmm0,-0x80(%rbp)
		other  = "4c 89 4d b8"    // mov %r9,-0x48(%rbp)
		store  = "89 7d fc"       // mov %edi,-0x4(%rbp)
		read   = "8b 45 fc"       // mov -0x4(%rbp),%eax
		back   = "74 f0"          // je back
		beyond = "74 40"          // je behind the store
		call   = "e8 00 00 00 00" // call
		wide   = "48 89 7d fc"    // mov %rdi,-0x4(%rbp)
	)
	code := func(parts ...string) []byte {
		var out []byte
		for _, p := range parts {
			for _, b := range strings.Fields(p) {
				n, err := strconv.ParseUint(b, 16, 8)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, byte(n))
			}
		}
		return out
	}
	slot := Slot{Base: 6, Off: -4, Size: 4}
	for i, x := range []struct {
		before, after []byte
		want          bool
	}{
		{code(frame), code(test, over, vector, other, store), true},
		{code(frame), code(store), true},
		{code(frame, store), code(test, over, vector, store), false},
		{code(frame), code(test, over, vector, read, store), false},
		{code(frame), code(back, store), false},
		{code(frame), code(beyond, store), false},
		{code(frame), code(call, store), false},
		{code(frame), code(wide, store), false},
		{code(frame), code(other), false},
		{code(frame), nil, false},
	} {
		if _, got := amd64().StoredLater(x.before, x.after, slot); got != x.want {
			t.Errorf("%d: %v, want %v", i, got, x.want)
		}
	}
}
