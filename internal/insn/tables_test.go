package insn

import (
	"slices"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
)

// TestForms: where instructions of the architectures with tables lead. TestObjdump compares all of a kernel's; these
// are kinds that kernels have few of. The bytes are those of binutils' assemblers for the text.
func TestForms(t *testing.T) {
	for _, tt := range []struct {
		arch, code, text string
		want             Insn
	}{
		{"ppc64el", "f8ffff4b", "b .-8", Insn{Size: 4, Branches: true, Target: -8}},
		{"ppc64el", "08008241", "beq .+8", Insn{Size: 4, Onward: true, Branches: true, Target: 8}},
		{"ppc64el", "2000824d", "beqlr", Insn{Size: 4, Onward: true, Leaves: true}},
		{"ppc64el", "2004824d", "beqctr", Insn{Size: 4, Onward: true, Lost: true}},
		{"ppc64el", "05009f42", "bcl 20, 31, .+4", Insn{Size: 4, Onward: true}},
		{"ppc64el", "0800e07f", "trap", Insn{Size: 4, Onward: true, Trap: true}},
		{"ppc64el", "0000090b", "tdnei r9, 0", Insn{Size: 4, Onward: true}},
		{"ppc64el", "0000000601008038", "pli r4, 1", Insn{Size: 8, Onward: true}},
		{"s390x", "07fe", "br %r14", Insn{Size: 2}},
		{"s390x", "07f4", "br %r4", Insn{Size: 2, Lost: true}},
		{"s390x", "07f0", "br %r0", Insn{Size: 2, Onward: true, Nop: true}},
		{"s390x", "078e", "ber %r14", Insn{Size: 2, Onward: true, Leaves: true}},
		{"s390x", "a7f40001", "j .+2", Insn{Size: 4, Onward: true, Trap: true}},
		{"s390x", "a784fffc", "je .-8", Insn{Size: 4, Onward: true, Branches: true, Target: -8}},
		{"s390x", "c0f4fffffffc", "jg .-8", Insn{Size: 6, Branches: true, Target: -8}},
		{"s390x", "ec1200048076", "crje %r1, %r2, .+8", Insn{Size: 6, Onward: true, Branches: true, Target: 8}},
		{"s390x", "c60000000005", "exrl %r0, .+10", Insn{Size: 6, Onward: true}},
		{"riscv64", "8280", "ret", Insn{Size: 2}},
		{"riscv64", "8287", "jr a5", Insn{Size: 2, Lost: true}},
		{"riscv64", "e5bf", "j .-8", Insn{Size: 2, Branches: true, Target: -8}},
		{"riscv64", "e3cef5fe", "blt a1, a5, .-4", Insn{Size: 4, Onward: true, Branches: true, Target: -4}},
		{"riscv64", "eff0dfff", "jal .-4", Insn{Size: 4, Onward: true, Call: true, Target: -4}},
		{"riscv64", "0290", "ebreak", Insn{Size: 2, Onward: true, Trap: true}},
		{"loong64", "2000004c", "ret", Insn{Size: 4}},
		{"loong64", "8001004c", "jr $t0", Insn{Size: 4, Lost: true}},
		{"loong64", "fffbff53", "b -8", Insn{Size: 4, Branches: true, Target: -8}},
		{"loong64", "fffdff53", "b 134217724", Insn{Size: 4, Branches: true, Target: 134217724}},
		{"loong64", "9ff8ff43", "beqz $a0, -8", Insn{Size: 4, Onward: true, Branches: true, Target: -8}},
		{"loong64", "8ffcff43", "beqz $a0, 4194300", Insn{Size: 4, Onward: true, Branches: true, Target: 4194300}},
		{"loong64", "86090068", "bltu $t0, $a2, 8", Insn{Size: 4, Onward: true, Branches: true, Target: 8}},
		{"loong64", "00090048", "bcnez $fcc0, 8", Insn{Size: 4, Onward: true, Branches: true, Target: 8}},
		{"loong64", "fffbff57", "bl -8", Insn{Size: 4, Onward: true, Call: true, Target: -8}},
		{"loong64", "8101004c", "jirl $ra, $t0, 0", Insn{Size: 4, Onward: true, Call: true}},
		{"loong64", "01002a00", "break 1", Insn{Size: 4, Onward: true, Trap: true}},
		{"loong64", "00384806", "ertn", Insn{Size: 4}},
		{"loong64", "00004003", "nop", Insn{Size: 4, Onward: true, Nop: true}},
		{"loong64", "2c001500", "move $t0, $ra", Insn{Size: 4, Onward: true}},
		{"armhf", "fcffffea", "b .-8", Insn{Size: 4, Branches: true, Target: -8}},
		{"armhf", "fcffff0a", "beq .-8", Insn{Size: 4, Onward: true, Branches: true, Target: -8}},
		{"armhf", "f080bde8", "pop {r4, r5, r6, r7, pc}", Insn{Size: 4}},
		{"armhf", "f080bd08", "popeq {r4, r5, r6, r7, pc}", Insn{Size: 4, Onward: true, Leaves: true}},
		{"armhf", "1eff2f01", "bxeq lr", Insn{Size: 4, Onward: true, Leaves: true}},
		{"armhf", "02f19f97", "ldrls pc, [pc, r2, lsl #2]", Insn{Size: 4, Onward: true, Lost: true}},
		{"armhf", "f211f0e7", "udf", Insn{Size: 4, Onward: true, Trap: true}},
	} {
		if in, ok := For(tt.arch).Next(dwarftest.Hex(t, tt.code)); in != tt.want || !ok {
			t.Errorf("%s: %s: %+v (%v), want %+v", tt.arch, tt.text, in, ok, tt.want)
		}
	}
	for arch, code := range map[string]string{"ppc64el": "00000006", "s390x": "c0f4", "riscv64": "1f000000", "loong64": "00000000", "armhf": "0000"} {
		if in, ok := For(arch).Next(dwarftest.Hex(t, code)); ok {
			t.Errorf("%s: %s: %+v, want it not known", arch, code, in)
		}
	}
	if For("thumb") != nil || For("mips64el") != nil {
		t.Error("instructions that no decoder knows")
	}
}

// TestPair: calls of riscv64 and loong64 in two instructions.
func TestPair(t *testing.T) {
	auipc, jalr := dwarftest.Hex(t, "97000100"), dwarftest.Hex(t, "e7800080") // auipc ra, 0x10; jalr -2048(ra)
	if to, ok := riscv64().Pair(auipc, jalr); !ok || to != 0x10000-2048 {
		t.Errorf("%#x, %v", to, ok)
	}
	if to, ok := riscv64().Pair(jalr, jalr); ok {
		t.Errorf("not after auipc: %#x", to)
	}
	var after []int
	// pcaddu18i $ra, 1; jirl $ra, $ra, -4. pcaddu18i $ra, -1; jirl $ra, $ra, 8
	if to, ok := loong64().Pair(dwarftest.Hex(t, "2100001e"), dwarftest.Hex(t, "21fcff4f")); !ok || to != 1<<18-4 {
		t.Errorf("%#x, %v", to, ok)
	}
	if to, ok := loong64().Pair(dwarftest.Hex(t, "e1ffff1f"), dwarftest.Hex(t, "2108004c")); !ok || to != 8-1<<18 {
		t.Errorf("%#x, %v", to, ok)
	}
	if to, ok := loong64().Pair(dwarftest.Hex(t, "2100001e"), dwarftest.Hex(t, "8101004c")); ok {
		t.Errorf("an instruction pair of two registers leads to %#x", to)
	}
	riscv64().Results.Calls(append(auipc, jalr...), 0x1000, func(at int, to uint64) {
		if after = append(after, at); to != 0x1000+0x10000-2048 {
			t.Errorf("a call of %#x", to)
		}
	})
	if !slices.Equal(after, []int{8}) {
		t.Errorf("calls end at %d", after)
	}
}

// TestOperations: what instructions do to a slot and to registers.
func TestOperations(t *testing.T) {
	type slots = map[Slot]Effect
	for _, tt := range []struct {
		arch, code, text string
		slots            slots
		writes           Writes
		known            bool // what it writes
		updates          Registers
	}{
		{"ppc64el", "20007ff8", "std r3, 32(r31)", slots{{31, 32, 8}: Stored, {31, 32, 4}: Lost, {31, 24, 8}: Kept, {1, 32, 8}: Kept}, Writes{Memory: true}, true, 0},
		{"ppc64el", "20007f90", "stw r3, 32(r31)", slots{{31, 32, 4}: Stored, {31, 28, 8}: Lost}, Writes{Memory: true}, true, 0},
		{"ppc64el", "c1ff21f8", "stdu r1, -64(r1)", slots{{1, -64, 8}: Lost, {31, 0, 8}: Kept}, Writes{Registers: 1 << 1, Memory: true}, true, 1 << 1},
		{"ppc64el", "20008138", "addi r4, r1, 32", slots{{1, 32, 8}: Lost, {1, 40, 8}: Kept}, Writes{Registers: 1 << 4}, true, 0},
		{"ppc64el", "20007fe8", "ld r3, 32(r31)", slots{{31, 32, 8}: Lost, {31, 40, 8}: Kept}, Writes{Registers: 1 << 3}, true, 0},
		{"ppc64el", "ffff6338", "addi r3, r3, -1", slots{{1, 0, 8}: Kept}, Writes{Registers: 1 << 3}, true, 1 << 3},
		{"ppc64el", "781b7f7c", "mr r31, r3", slots{{31, 0, 8}: Lost}, Writes{Registers: 1 << 31}, true, 0},
		{"ppc64el", "0000032c", "cmpwi r3, 0", slots{{1, 0, 8}: Kept}, Writes{}, true, 0},
		{"ppc64el", "0100238d", "lbzu r9, 1(r3)", slots{{1, 0, 8}: Kept}, Writes{Registers: 1<<3 | 1<<9}, true, 1 << 3},
		{"ppc64el", "2000804e", "blr", slots{{1, 0, 8}: Lost}, Writes{}, false, 0},
		{"s390x", "e320f0a80024", "stg %r2, 168(%r15)", slots{{15, 168, 8}: Stored, {15, 160, 8}: Kept, {15, 164, 8}: Lost}, Writes{Memory: true}, true, 0},
		{"s390x", "5020b0a8", "st %r2, 168(%r11)", slots{{11, 168, 4}: Stored}, Writes{Memory: true}, true, 0},
		{"s390x", "eb67f0300024", "stmg %r6, %r7, 48(%r15)", slots{{15, 48, 8}: Stored, {15, 56, 8}: Stored, {15, 64, 8}: Kept, {15, 52, 8}: Lost}, Writes{Memory: true}, true, 0},
		{"s390x", "e548f0a80000", "mvghi 168(%r15), 0", slots{{15, 168, 8}: Stored}, Writes{Memory: true}, true, 0},
		{"s390x", "d207f0a82000", "mvc 168(8,%r15), 0(%r2)", slots{{15, 168, 8}: Stored, {15, 176, 8}: Kept, {2, 0, 8}: Lost}, Writes{Memory: true}, true, 0},
		{"s390x", "4120f0a0", "la %r2, 160(%r15)", slots{{15, 160, 8}: Lost, {15, 168, 8}: Kept}, Writes{Registers: 1 << 2}, true, 0},
		{"s390x", "a72bffff", "aghi %r2, -1", slots{{15, 0, 8}: Kept}, Writes{Registers: 1 << 2}, true, 1 << 2},
		{"s390x", "41202001", "la %r2, 1(%r2)", slots{{15, 0, 8}: Kept}, Writes{Registers: 1 << 2}, true, 1 << 2},
		{"s390x", "b90400a2", "lgr %r10, %r2", slots{{15, 0, 8}: Kept}, Writes{Registers: 1 << 10}, true, 0},
		{"s390x", "a72f0000", "cghi %r2, 0", slots{{15, 0, 8}: Kept}, Writes{}, true, 0},
		{"riscv64", "2ae4", "sd a0, 8(sp)", slots{{2, 8, 8}: Stored, {2, 8, 4}: Lost, {2, 0, 8}: Kept}, Writes{Memory: true}, true, 0},
		{"riscv64", "2324a4fe", "sw a0, -24(s0)", slots{{8, -24, 4}: Stored}, Writes{Memory: true}, true, 0},
		{"riscv64", "2c00", "addi a1, sp, 8", slots{{2, 8, 8}: Lost, {2, 16, 8}: Kept}, Writes{Registers: 1 << 11}, true, 0},
		{"riscv64", "2265", "ld a0, 8(sp)", slots{{2, 8, 8}: Lost}, Writes{Registers: 1 << 10}, true, 0},
		{"riscv64", "7d15", "addi a0, a0, -1", slots{{2, 8, 8}: Kept}, Writes{Registers: 1 << 10}, true, 1 << 10},
		{"riscv64", "aa84", "mv s1, a0", slots{{2, 8, 8}: Kept}, Writes{Registers: 1 << 9}, true, 0},
		{"loong64", "6420c029", "st.d $a0, $sp, 8", slots{{3, 8, 8}: Stored, {3, 8, 4}: Lost, {3, 0, 8}: Kept}, Writes{Memory: true}, true, 0},
		{"loong64", "c4eaff25", "stptr.w $a0, $fp, -24", slots{{22, -24, 4}: Stored}, Writes{Memory: true}, true, 0},
		{"loong64", "6020c02b", "fst.d $fa0, $sp, 8", slots{{3, 8, 8}: Stored}, Writes{Memory: true}, true, 0},
		{"loong64", "64141c38", "stx.d $a0, $sp, $a1", slots{{3, 8, 8}: Lost}, Writes{Memory: true}, true, 0},
		{"loong64", "6520c002", "addi.d $a1, $sp, 8", slots{{3, 8, 8}: Lost, {3, 16, 8}: Kept}, Writes{Registers: 1 << 5}, true, 0},
		{"loong64", "6420c028", "ld.d $a0, $sp, 8", slots{{3, 8, 8}: Lost}, Writes{Registers: 1 << 4}, true, 0},
		{"loong64", "84fcff02", "addi.d $a0, $a0, -1", slots{{3, 8, 8}: Kept}, Writes{Registers: 1 << 4}, true, 1 << 4},
		{"loong64", "97001500", "move $s0, $a0", slots{{3, 8, 8}: Kept}, Writes{Registers: 1 << 23}, true, 0},
		{"loong64", "24000016", "lu32i.d $a0, 1", slots{{3, 8, 8}: Kept}, Writes{Registers: 1 << 4}, true, 1 << 4},
		{"loong64", "a4008700", "bstrins.d $a0, $a1, 7, 0", slots{{3, 8, 8}: Kept}, Writes{Registers: 1 << 4}, true, 1 << 4},
		{"loong64", "64946138", "amadd.d $a0, $a1, $sp", slots{{3, 0, 8}: Lost}, Writes{}, false, 0},
		{"loong64", "c4946138", "amadd.d $a0, $a1, $a2", slots{{3, 0, 8}: Kept}, Writes{}, false, 0},
		{"loong64", "00007238", "dbar 0", slots{{3, 8, 8}: Kept}, Writes{}, true, 0},
		{"i386", "89542408", "mov %edx, 8(%esp)", slots{{4, 8, 4}: Stored, {4, 4, 4}: Kept, {4, 8, 8}: Lost}, Writes{Memory: true}, true, 0},
		{"i386", "8955f8", "mov %edx, -8(%ebp)", slots{{5, -8, 4}: Stored, {4, -8, 4}: Kept}, Writes{Memory: true}, true, 0},
		{"i386", "8b442408", "mov 8(%esp), %eax", slots{{4, 8, 4}: Lost, {4, 12, 4}: Kept}, Writes{Registers: 1}, true, 0},
		{"i386", "48", "dec %eax", slots{{4, 8, 4}: Kept}, Writes{Registers: 1}, true, 1},
		{"i386", "89c3", "mov %eax, %ebx", slots{{4, 8, 4}: Kept}, Writes{Registers: 1 << 3}, true, 0},
		{"i386", "50", "push %eax", slots{{4, 8, 4}: Lost}, Writes{Registers: 1 << 4, Memory: true}, true, 0},
		{"armhf", "04308de5", "str r3, [sp, #4]", slots{{13, 4, 4}: Stored, {13, 0, 4}: Kept, {13, 4, 8}: Lost}, Writes{Memory: true}, true, 0},
		{"armhf", "04308d15", "strne r3, [sp, #4]", slots{{13, 4, 4}: Lost}, Writes{Memory: true}, true, 0},
		{"armhf", "10300be5", "str r3, [fp, #-16]", slots{{11, -16, 4}: Stored}, Writes{Memory: true}, true, 0},
		{"armhf", "10402de9", "push {r4, lr}", slots{{13, -4, 4}: Lost}, Writes{}, false, 1 << 13},
		{"armhf", "04208de2", "add r2, sp, #4", slots{{13, 4, 4}: Lost, {13, 8, 4}: Kept}, Writes{Registers: 1 << 2}, true, 0},
		{"armhf", "010040e2", "sub r0, r0, #1", slots{{13, 4, 4}: Kept}, Writes{Registers: 1}, true, 1},
		{"armhf", "0120d1e4", "ldrb r2, [r1], #1", slots{{13, 4, 4}: Kept}, Writes{Registers: 1<<1 | 1<<2}, true, 1 << 1},
		{"armhf", "0040a0e1", "mov r4, r0", slots{{13, 4, 4}: Kept}, Writes{Registers: 1 << 4}, true, 0},
	} {
		a, code := For(tt.arch), dwarftest.Hex(t, tt.code)
		for m, want := range tt.slots {
			if _, did := a.Slots.next(code, m); did != want {
				t.Errorf("%s: %s: %d for %+v, want %d", tt.arch, tt.text, did, m, want)
			}
			if at, ok := a.Slots.StoredLast(code, m); ok != (want == Stored) || at != 0 {
				t.Errorf("%s: %s: stored last %v at %d for %+v", tt.arch, tt.text, ok, at, m)
			}
		}
		if w, ok := a.Writes(code); w != tt.writes || ok != tt.known {
			t.Errorf("%s: %s: writes %+v (%v), want %+v (%v)", tt.arch, tt.text, w, ok, tt.writes, tt.known)
		}
		if got := a.Updates(code); got != tt.updates {
			t.Errorf("%s: %s: updates %#x, want %#x", tt.arch, tt.text, got, tt.updates)
		}
	}
}

// TestResults: code after a call, which uses the result or not.
func TestResults(t *testing.T) {
	for _, tt := range []struct {
		arch, code string
		want       bool
	}{
		{"ppc64el", "00000060" + "781b7f7c", true},  // nop; mr r31, r3
		{"ppc64el", "20007fe8" + "781b7f7c", false}, // ld r3, 32(r31)
		{"s390x", "b90400a2", true},                 // lgr %r10, %r2
		{"s390x", "a7290000" + "b90400a2", false},   // lghi %r2, 0
		{"riscv64", "aa84", true},                   // mv s1, a0
		{"riscv64", "2265" + "aa84", false},         // ld a0, 8(sp)
		{"loong64", "97001500", true},               // move $s0, $a0
		{"loong64", "04008003" + "97001500", false}, // ori $a0, $zero, 0
		{"loong64", "6420c028" + "97001500", false}, // ld.d $a0, $sp, 8
		{"i386", "89c3", true},                      // mov %eax, %ebx
		{"i386", "8b442408" + "89c3", false},        // mov 8(%esp), %eax
		{"armhf", "0040a0e1", true},                 // mov r4, r0
		{"armhf", "0000a0e3" + "0040a0e1", false},   // mov r0, #0
		{"armhf", "fcffffeb" + "0040a0e1", false},   // bl
	} {
		code := dwarftest.Hex(t, tt.code)
		if got := For(tt.arch).Results.Uses(code); got != tt.want {
			t.Errorf("%s: %s: %v", tt.arch, tt.code, got)
		}
	}
}

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
		if got := For(tt.arch).Updates(dwarftest.Hex(t, tt.code)); got != tt.want {
			t.Errorf("%s: got %#x, want %#x", tt.text, got, tt.want)
		}
	}
}

// TestReads: what a register was does not count where an operation needs none of it.
func TestReads(t *testing.T) {
	for _, tt := range []struct {
		code, text string
		want       Registers
	}{
		{"31ff", "xor %edi,%edi", 0},
		{"29ff", "sub %edi,%edi", 0},
		{"19ff", "sbb %edi,%edi", 0},
		{"19f7", "sbb %esi,%edi", 1<<5 | 1<<4},
		{"11ff", "adc %edi,%edi", 1 << 5},
		{"48c1ef20", "shr $32,%rdi", 1 << 5},
		{"4088c7", "mov %al,%dil", 1 << 0},
	} {
		if got, _, ok := For("amd64").Accesses(dwarftest.Hex(t, tt.code)); got != tt.want || !ok {
			t.Errorf("%s: reads %#x, %v; want %#x", tt.text, got, ok, tt.want)
		}
	}
}
