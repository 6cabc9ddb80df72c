package attachable

import (
	"encoding/binary"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/ktable"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestMethods: each method has a name and a sentence, which its documentation lists.
func TestMethods(t *testing.T) {
	source, err := os.ReadFile("method.go")
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for m := MethodNone + 1; m < methodCount; m++ {
		if m.String() == "" || m.Describe() == "" || names[m.String()] {
			t.Errorf("method %d is %q: %q", uint8(m), m, m.Describe())
		}
		names[m.String()] = true
		if line := "//   - " + m.String() + ": " + m.Describe() + "\n"; !strings.Contains(string(source), line) {
			t.Errorf("the documentation of Method lacks the line\n%s", line)
		}
	}
	if m := Method(99); m.String() != "Method(99)" || m.Describe() != "Method(99)" {
		t.Errorf("method 99 is %q: %q", m, m.Describe())
	}
}

// TestSteps: how Linux 6.1 and 6.12 run an instruction at a breakpoint, not preemptible and
// preemptible: can_boost, prepare_emulation and setup_singlestep in arch/x86/kernel/kprobes/core.c.
func TestSteps(t *testing.T) {
	const b, e, s = methodBoosted, methodEmulated, methodStepped
	for code, want := range map[string][4]Method{ // 6.1, 6.12, preemptible: 6.1, 6.12
		"4889e5":             {b, b, s, s}, // mov %rsp, %rbp
		"4157":               {b, b, s, s}, // push %r15
		"c3":                 {b, b, e, e}, // ret
		"9c":                 {b, b, e, e}, // pushf
		"fa":                 {b, b, e, e}, // cli
		"e800000000":         {e, e, e, e}, // call
		"e900000000":         {e, e, e, e}, // jmp
		"eb00":               {e, e, e, e},
		"7500":               {e, e, e, e}, // jne
		"0f8500000000":       {e, e, e, e},
		"e300":               {e, e, e, e}, // jrcxz
		"48c1e003":           {s, b, s, s}, // shl $3, %rax: group 2
		"48d3f0":             {s, s, s, s}, // its reserved form
		"48f7d8":             {s, b, s, s}, // neg %rax: group 3
		"f7c801000000":       {s, s, s, s}, // its reserved form
		"feC0":               {s, b, s, s}, // inc %al: group 4
		"ffc0":               {s, b, s, s}, // inc %eax: group 5
		"fff0":               {s, s, s, s}, // push %rax, its long form
		"ffe0":               {b, b, e, e}, // jmp *%rax
		"ffd0":               {e, e, e, e}, // call *%rax
		"f0480fc103":         {b, b, s, s}, // lock xadd %rax, (%rbx)
		"0f05":               {s, s, s, s}, // syscall
		"0f1f440000":         {b, b, s, s}, // nopl
		"2e0f1f440000":       {b, b, s, s}, // prefixes of two-byte opcodes are not looked at
		"2e90":               {s, s, s, s}, // those of others are
		"678b00":             {s, s, s, s}, // mov (%eax), %eax
		"0fae38":             {s, s, s, s}, // clflush
		"660f3840c1":         {s, s, s, s}, // three-byte opcodes
		"d9c0":               {s, s, s, s}, // fld
		"f3a4":               {b, b, s, s}, // rep movsb
		"65488b042500000000": {b, b, s, s}, // mov %gs:0, %rax
	} {
		x, ok := insn.DecodeX86(dwarftest.Hex(t, code))
		if !ok {
			t.Fatalf("%s does not decode", code)
		}
		for i, w := range want {
			r := x86Rules{preemptible: i >= 2, groups: i%2 == 1}
			if got := r.atBreakpoint(&x, false); got != w {
				t.Errorf("%s, %+v: %v, want %v", code, r, got, w)
			}
		}
		r := x86Rules{}
		if got := r.atBreakpoint(&x, true); got == methodBoosted {
			t.Errorf("%s is boosted, and may fault", code)
		}
	}
}

// TestUprobes: arch_uprobe_analyze_insn in arch/x86/kernel/uprobes.c and
// arch/arm64/kernel/probes/uprobes.c (6.1 and 6.12).
func TestUprobes(t *testing.T) {
	for code, want := range map[string]Method{
		"90":           methodNop,
		"6690":         methodNop,
		"f390":         methodNop,     // pause
		"0f1f440000":   methodCalled,  // stepped by other kernels than Linux 6.18 to 7.2
		"6666666690":   methodCalled,  // skipped by these
		"f30f1efa":     methodStepped, // endbr64
		"55":           methodEmulated,
		"4157":         methodEmulated,
		"6655":         methodStepped,
		"4855":         methodStepped, // a prefix that push does not need
		"e800000000":   methodEmulated,
		"e900000000":   methodEmulated,
		"eb00":         methodEmulated,
		"7400":         methodEmulated,
		"0f8400000000": methodEmulated,
		"e300":         methodStepped, // jrcxz
		"66e900000000": MethodNone,
		"2e90":         MethodNone,
		"3e7400":       MethodNone,
		"f0ff00":       MethodNone, // lock incl (%rax)
		"c3":           methodStepped,
		"4889e5":       methodStepped,
		"c5f877":       MethodNone, // vzeroupper: uprobes skip it
		"06":           MethodNone,
	} {
		if got := uprobeX86(dwarftest.Hex(t, code)); got != want {
			t.Errorf("%s: %v, want %v", code, got, want)
		}
	}
	for code, want := range map[string][2]Method{ // uprobes, kprobes
		"1f2003d5": {methodStepped, methodStepped}, // nop
		"3f2303d5": {methodStepped, methodStepped}, // paciasp
		"00040091": {methodStepped, methodStepped}, // add x0, x0, #1
		"00000014": {methodEmulated, methodEmulated},
		"00000094": {methodEmulated, methodEmulated}, // bl
		"00000054": {methodEmulated, methodEmulated}, // b.eq
		"000000b4": {methodEmulated, methodEmulated}, // cbz x0
		"00000037": {methodEmulated, methodEmulated}, // tbnz w0, #0
		"00000090": {methodEmulated, methodEmulated}, // adrp x0
		"4000005c": {MethodNone, methodStepped},      // ldr d0, a literal: kprobes step it too, and load something else
		"a00020d4": {MethodNone, methodStepped},      // brk #5, a uprobe
		"00000010": {methodEmulated, methodEmulated}, // adr x0
		"00021fd6": {methodEmulated, methodEmulated}, // br x16
		"00023fd6": {methodEmulated, methodEmulated}, // blr x16
		"c0035fd6": {methodEmulated, methodEmulated}, // ret
		"00000058": {MethodNone, methodEmulated},     // ldr x0, literal
		"00000098": {MethodNone, methodEmulated},     // ldrsw x0, literal
		"bf2303d5": {MethodNone, methodStepped},      // autiasp, about which At is asked first
	} {
		d := dwarftest.Hex(t, code)
		if got := [2]Method{uprobeARM64(d), stepARM64(d)}; got != want {
			t.Errorf("%s: %v, want %v", code, got, want)
		}
	}
}

// TestStepsLoong: what insns_not_supported and insns_need_simulation in arch/loongarch/kernel/inst.c say of an instruction. The
// bytes are those of LLVM's assembler for the text.
func TestStepsLoong(t *testing.T) {
	const n, e, s = MethodNone, methodEmulated, methodStepped
	for code, want := range map[string]Method{
		"a4000020": n, // ll.w $a0, $a1, 0
		"c4145738": n, // sc.q $a0, $a1, $a2
		"c4146038": n, // amswap.w $a0, $a1, $a2
		"c4146938": n, // amswap_db.w $a0, $a1, $a2
		"c4947138": n, // ammin_db.du $a0, $a1, $a2
		"a48c5738": n, // screl.d $a0, $a1
		"a4805738": n, // llacq.w $a0, $a1
		"00090048": n, // bcnez $fcc0, 8
		"c4145838": s, // amcas.b $a0, $a1, $a2
		"00007238": s, // dbar 0
		"a4187838": s, // ldgt.b $a0, $a1, $a2
		"01002a00": s, // break 1
		"6420c029": s, // st.d $a0, $sp, 8
		"0ce1011a": e, // pcalau12i $t0, 3848
		"2100001e": e, // pcaddu18i $ra, 1
		"2000004c": e, // ret
		"fffbff53": e, // b -8
		"fffbff57": e, // bl -8
		"9ff8ff43": e, // beqz $a0, -8
		"86090068": e, // bltu $t0, $a2, 8
	} {
		if got := uprobeLoong(dwarftest.Hex(t, code)); got != want {
			t.Errorf("%s: %v, want %v", code, got, want)
		}
	}
}

// TestJumps: which kprobes become jumps, in one function.
func TestJumps(t *testing.T) {
	const lo = uint64(dwarftest.TextAddr)
	const mov, ret, filler = "4889e5", "c3", "4889e54889e54889e54889e5"
	call := func(at, to uint64, op string) string { // or a jump
		return op + hexOf(binary.LittleEndian.AppendUint32(nil, uint32(to-at-5)))
	}
	var units dwarftest.Writer
	units.Add(dwarftest.CU{Version: 5, Root: dwarftest.Root()})
	for _, tt := range []struct {
		name, code string
		at         uint64
		change     func(t *Table)
		want       bool
	}{
		{name: "plain", code: filler, want: true},
		{name: "later", code: filler, at: 3, want: true},
		{name: "near the end", code: mov + "9090", want: true},
		{name: "too near the end", code: mov + "90"},
		{name: "a call in it", code: mov + call(lo+3, lo+64, "e8") + filler},
		{name: "a call after it", code: mov + mov + call(lo+6, lo+64, "e8") + filler, want: true},
		{name: "a jump to its beginning", code: filler + "ebf2", want: true},
		{name: "a jump to its second byte", code: filler + "ebf3"},
		{name: "a jump to its last byte", code: filler + "ebf6"},
		{name: "a jump to the byte after", code: filler + "ebf7"},
		{name: "a jump further on", code: filler + "ebf8", want: true},
		{name: "a conditional jump", code: filler + "0f84f1ffffff"},
		{name: "a jump into it, before it", code: "eb05" + filler, at: 2},
		{name: "a fault elsewhere", code: filler, change: func(t *Table) { t.faults = []uint64{lo + 9} }},
		{name: "a fault that is none of its instructions", code: filler, change: func(t *Table) { t.faults = []uint64{lo + 10} }, want: true},
		{name: "an indirect jump", code: filler + "ffe0", change: func(t *Table) { t.x86.indirect = true }},
		{name: "an indirect jump, with retpolines", code: filler + "ffe0", want: true},
		{name: "a jump to a thunk", code: filler + call(lo+12, lo+0x40, "e9"), change: func(t *Table) { t.x86.thunks = span{lo + 0x38, lo + 0x40} }},
		{name: "a jump to no thunk", code: filler + call(lo+12, lo+0x37, "e9"), change: func(t *Table) { t.x86.thunks = span{lo + 0x38, lo + 0x40} }, want: true},
		{name: "a jump that returns", code: filler + call(lo+12, lo+0x3c, "e9"), change: func(t *Table) { t.x86.thunks, t.x86.ret = span{lo + 0x38, lo + 0x40}, lo+0x3c }, want: true},
		{name: "up to a return", code: "909090" + mov[:0] + "9090", want: true},
		{name: "with a return", code: "90909090" + ret + filler, want: true},
		{name: "with a return by a jump", code: "90909090" + call(lo+4, lo+0x3c, "e9"), change: func(t *Table) { t.x86.ret = lo + 0x3c }, want: true},
		{name: "beyond a return by a jump", code: "909090" + call(lo+3, lo+0x3c, "e9"), change: func(t *Table) { t.x86.ret = lo + 0x3c }},
		{name: "ftrace's call after it", code: filler, change: func(t *Table) { t.mcount = []uint64{lo + 6} }, want: true},
		{name: "ftrace's call in it", code: filler, change: func(t *Table) { t.mcount = []uint64{lo + 5} }},
		{name: "ftrace's call before it", code: filler, at: 6, change: func(t *Table) { t.mcount = []uint64{lo + 1} }, want: true},
		{name: "a static call in it", code: filler, change: func(t *Table) { t.statics = []uint64{lo + 5} }},
		{name: "a static branch in it", code: mov + "6690" + filler, change: func(t *Table) { t.jumps = []uint64{lo + 3} }},
		{name: "a static branch at its end", code: mov + "6690" + filler, at: 5, change: func(t *Table) { t.jumps = []uint64{lo + 3} }, want: true},
		{name: "a shift", code: "48c1e003" + filler},
		{name: "a shift since Linux 6.9", code: "48c1e003" + filler, change: func(t *Table) { t.x86.groups = true }, want: true},
		{name: "what is replaced", code: mov + "ff1578563412" + filler, change: func(t *Table) { t.patches = []ktable.Patch{{Addr: lo + 3, Size: 6, Code: []byte{0x9c, 0x58}}} }, want: true},
		{name: "what does not decode", code: filler + "06"},
	} {
		code := dwarftest.Hex(t, tt.code)
		text := dwarftest.Text()
		text.Data = make([]byte, max(len(code), 0x80))
		copy(text.Data, code)
		img, err := dwarfloc.FromBytes("test", dwarftest.ELF(text, dwarftest.Debug(".debug_info", units.Info), dwarftest.Debug(".debug_abbrev", units.Abbrev)), nil)
		if err != nil {
			t.Fatal(err)
		}
		table := &Table{img: img}
		if tt.change != nil {
			tt.change(table)
		}
		r := table.reading(span{lo, lo + uint64(len(code))})
		if got := table.jumps5(r, lo+tt.at); got != tt.want {
			t.Errorf("%s: %v, want %v (%+v)", tt.name, got, tt.want, r)
		}
		if table.reading(r.span) != r {
			t.Errorf("%s: the function is read again", tt.name)
		}
	}
}

func hexOf(d []byte) string {
	const digits = "0123456789abcdef"
	var out strings.Builder
	for _, b := range d {
		out.WriteByte(digits[b>>4])
		out.WriteByte(digits[b&15])
	}
	return out.String()
}

// TestTwoByteBoosts compares the list with the table in a kernel image.
func TestTwoByteBoosts(t *testing.T) {
	img := testenv.Open(t, testenv.Vmlinux(t))
	at, err := inside.File(img).SymbolAddresses("twobyte_is_boostable")
	if err != nil || len(at) != 1 {
		t.Skip("the image has no table", err)
	}
	d, err := inside.File(img).Bytes(at["twobyte_is_boostable"], 32)
	if err != nil {
		t.Fatal(err)
	}
	var got [256]bool
	for i := range got {
		got[i] = d[i/8]>>(i%8)&1 != 0
	}
	for i := range got {
		if got[i] != twoByteBoosts[i] {
			t.Errorf("0f %02x: %v in the kernel", i, got[i])
		}
	}
}

// TestFixtureMethods: a toy kernel, which has neither optimised kprobes nor preemption.
func TestFixtureMethods(t *testing.T) {
	img := testenv.Fixture(t, fixture)
	table, err := New(img)
	if err != nil {
		t.Fatal(err)
	}
	all, err := inside.File(img).SymbolAddresses("queue_send", "page_gate")
	if err != nil || len(all) != 2 {
		t.Fatal(err)
	}
	if got := table.Method(all["page_gate"]); got != MethodNone {
		t.Errorf("in entry code: %v", got)
	}
	if got := table.Method(all["queue_send"]); got == MethodNone || got == methodJump || slices.Contains([]Method{methodNop, methodFtrace}, got) {
		t.Errorf("queue_send: %v", got)
	}
	if got := UprobeMethod(img, inside.File(img).Sections()[len(inside.File(img).Sections())-1].Addr); got != MethodNone {
		t.Errorf("in data: %v", got)
	}
}

// TestBooster: a kernel's code asks whether an instruction can be boosted, for a single kprobe, only
// if the kernel is not preemptible: prepare_singlestep, which compilers inline into arch_copy_kprobe.
func TestBooster(t *testing.T) {
	img := testenv.Open(t, testenv.Vmlinux(t))
	at, err := inside.File(img).SymbolAddresses("arch_copy_kprobe", "can_boost")
	if err != nil || len(at) != 2 {
		t.Skip("the image has no such functions", err)
	}
	table, err := New(img)
	if err != nil {
		t.Fatal(err)
	}
	f, _ := table.rangeOf(at["arch_copy_kprobe"])
	asks := false
	for addr := f.lo; addr < f.hi; {
		x, ok := insn.DecodeX86(table.reading(f).from(addr))
		if !ok {
			t.Fatalf("%#x does not decode", addr)
		}
		addr += uint64(x.Size)
		asks = asks || x.OpcodeSize == 1 && x.Opcode[0] == 0xe8 && addr+uint64(x.Immediate) == at["can_boost"]
	}
	if asks == table.x86.preemptible {
		t.Errorf("preemptible: %v, and arch_copy_kprobe calls can_boost: %v", table.x86.preemptible, asks)
	}
}
