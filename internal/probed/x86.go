package probed

import (
	"bytes"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// uprobeRule is what uprobes of x86 do with some instructions.
type uprobeRule struct {
	is   func(x *insn.X86) bool
	does Uprobe
	why  string // of a probe that harms
}

// uprobeRules: the first one that fits an instruction says what the kernel does with it; one that none fits is stepped. The facts
// are those of arch/x86/kernel/uprobes.c and arch/x86/lib/insn.c of Linux 6.1 to 6.18. Package harm of internal/proof runs
// encodings of all opcode maps with and without a probe on the running kernel, and compares what they do with this table.
//
// The kernel's decoder gives an instruction with a VEX or EVEX prefix one opcode byte, whatever its map is (insn_get_opcode), and
// uprobes ask that byte alone what is to be done: VPOR (EB) is taken for a jump.
var uprobeRules = []uprobeRule{
	// The kernel refuses it in a process that runs. One that maps the file later gets no breakpoint, but the kernel takes its own
	// INT3 for one, and starts it again for ever.
	{func(x *insn.X86) bool { return one(x, 0xcc) }, UprobeHarms, "INT3 would run for ever"},
	// is_prefix_bad, good_insns_64, good_2byte_insns.
	{func(x *insn.X86) bool { return x.Segment || x.Locked }, UprobeRefuses, ""},
	{func(x *insn.X86) bool { return x.OpcodeSize == 1 && x86NoUprobe[x.Opcode[0]] }, UprobeRefuses, ""},
	// insn_masking_exception: MOV to SS, which holds back the trap of a single step, and what is taken for it.
	{func(x *insn.X86) bool { return x.OpcodeSize == 1 && x.Opcode[0] == 0x8e && x.Reg() == 2 }, UprobeRefuses, ""},
	// branch_setup_xol_ops emulates jumps, and takes each 90 for a NOP: XCHG of R8, and with VEX VPGATHERDD.
	{func(x *insn.X86) bool { return x.VEX && (x.Opcode[0] == 0x90 || jumps(x)) }, UprobeHarms, "the kernel takes it for a jump or NOP, and it does not happen"},
	{func(x *insn.X86) bool { return x.VEX && x.Opcode[0] == 0xe8 }, UprobeHarms, "the kernel takes it for a call"},
	{func(x *insn.X86) bool { return one(x, 0x90) && x.REX&1 != 0 }, UprobeHarms, "the kernel takes it for a NOP, and it does not happen"},
	// can_optimize: since Linux 6.18, until 7.2, a NOP of five bytes becomes a CALL to a trampoline that pushes three registers. PAUSE
	// with prefixes is one too.
	{func(x *insn.X86) bool {
		return x.Size == 5 && (one(x, 0x90) || !x.VEX && x.OpcodeSize == 2 && x.Opcode[1] == 0x1f && x.Reg() == 0)
	}, UprobeCalls, ""},
	{func(x *insn.X86) bool { return one(x, 0x90) }, UprobeSkips, ""}, // PAUSE too
	{func(x *insn.X86) bool { return x.OperandSize && (jumps(x) || one(x, 0xe8)) }, UprobeRefuses, ""},
	{func(x *insn.X86) bool { return jumps(x) || one(x, 0xe8) }, UprobeEmulates, ""},
	// push_setup_xol_ops.
	{func(x *insn.X86) bool {
		return !x.VEX && x.OpcodeSize == 1 && x.Opcode[0]&0xf8 == 0x50 && (x.Size == 1 || x.Size == 2 && x.REX == 0x41)
	}, UprobeEmulates, ""},
	// arch_uprobe_analyze_insn: after returns and indirect jumps the instruction pointer stays as it is, in the copy's memory, and
	// after POPF the flag for single steps. None of them has an operand that is relative to the instruction.
	{func(x *insn.X86) bool { return x.VEX && bytes.IndexByte(x86Leave, x.Opcode[0]) >= 0 }, UprobeHarms, "the kernel takes it for a return or POPF"},
	{func(x *insn.X86) bool { return x.VEX && x.Opcode[0] == 0xff && x.Reg() >= 2 && x.Reg() <= 5 }, UprobeHarms, "the kernel takes it for an indirect call or jump"},
	// The copy runs with the flag for single steps set, and stores it; a POPF of that ends the program.
	{func(x *insn.X86) bool { return one(x, 0x9c) }, UprobeHarms, "PUSHF would store the flag for single steps"},
	// RCX gets the address after the copy; the kernel may resume elsewhere (rt_sigreturn).
	{func(x *insn.X86) bool { return x.OpcodeSize == 2 && x.Opcode[1] == 0x05 }, UprobeHarms, "SYSCALL would store the address of a copy"},
	// Opcodes of which the kernel's table of opcodes does not have the variant with this prefix have no ModRM byte there, so that
	// nothing is relative to the instruction (inat_get_escape_attribute).
	{func(x *insn.X86) bool { return x.Relative() && unlisted(x) }, UprobeHarms, "the kernel does not see that its operand is relative to the instruction"},
	{func(x *insn.X86) bool {
		return x.Repeat && x.OpcodeSize == 1 && !x.VEX && bytes.IndexByte(x86Strings, x.Opcode[0]) >= 0
	}, UprobeRepeats, ""},
}

// x86Leave has the opcodes after which uprobes do not correct the instruction pointer, and POPF.
var x86Leave = []byte{0x9d, 0xc2, 0xc3, 0xca, 0xcb}

// x86Strings has the opcodes of string instructions that REP repeats.
var x86Strings = []byte{0xa4, 0xa5, 0xa6, 0xa7, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf}

// x86NoUprobe has the opcodes of one byte that uprobes refuse in 64-bit code: invalid, privileged, segment registers, traps.
var x86NoUprobe = func() (out [256]bool) {
	for _, op := range []byte{
		0x06, 0x07, 0x0e, 0x16, 0x17, 0x1e, 0x1f, 0x27, 0x2f, 0x37, 0x3f, 0x60, 0x61, 0x62, 0x6c, 0x6d, 0x6e, 0x6f, 0x82, 0x9a,
		0xcc, 0xcd, 0xce, 0xcf, 0xd4, 0xd5, 0xd6, 0xe4, 0xe5, 0xe6, 0xe7, 0xea, 0xec, 0xed, 0xee, 0xef, 0xf1, 0xf4, 0xfa, 0xfb,
	} {
		out[op] = true
	}
	return out
}()

// x86Scalar has the second opcode bytes, after 0F, that the kernel's table has with the prefix F3, and those with F2
// (arch/x86/lib/x86-opcode-map.txt).
var x86Scalar = map[byte][]byte{
	0xf3: {
		0x10, 0x11, 0x12, 0x16, 0x2a, 0x2c, 0x2d, 0x51, 0x52, 0x53, 0x58, 0x59, 0x5a, 0x5b, 0x5c, 0x5d, 0x5e, 0x5f, 0x6f, 0x70, 0x7e, 0x7f,
		0xb8, 0xc2, 0xe6,
	},
	0xf2: {0x10, 0x11, 0x12, 0x2a, 0x2c, 0x2d, 0x51, 0x58, 0x59, 0x5a, 0x5c, 0x5d, 0x5e, 0x5f, 0x70, 0x7c, 0x7d, 0xc2, 0xd0, 0xe6, 0xf0},
}

// x86Plain has those that are the same instruction there with any of these prefixes, as first and last of a range.
var x86Plain = [...][2]byte{
	{0x00, 0x0f}, {0x18, 0x1f}, {0x40, 0x40}, {0x43, 0x43}, {0x48, 0x49}, {0x4c, 0x4f}, {0x80, 0x8f}, {0x94, 0x97}, {0x9a, 0x9f}, {0xa0, 0xb7},
	{0xb9, 0xc1}, {0xc3, 0xc3}, {0xc7, 0xcf},
}

// one reports whether the opcode is one byte, without VEX.
func one(x *insn.X86, opcode byte) bool { return !x.VEX && x.OpcodeSize == 1 && x.Opcode[0] == opcode }

// jumps reports whether uprobes emulate it as a jump, rightly or not.
func jumps(x *insn.X86) bool {
	switch op := x.Opcode[0]; x.OpcodeSize {
	case 1:
		return op&0xf0 == 0x70 || op == 0xe9 || op == 0xeb
	case 2:
		return x.Opcode[1]&0xf0 == 0x80
	}
	return false
}

// unlisted reports whether the kernel's table of opcodes may lack the instruction with its last prefix.
func unlisted(x *insn.X86) bool {
	if x.VEX || x.OpcodeSize != 2 || x.Last != 0xf2 && x.Last != 0xf3 {
		return false
	}
	op := x.Opcode[1]
	for _, r := range x86Plain {
		if op >= r[0] && op <= r[1] {
			return false
		}
	}
	return bytes.IndexByte(x86Scalar[x.Last], op) < 0
}

// uprobeX86 says what uprobes do with 64-bit code.
func uprobeX86(code []byte) (Uprobe, string) {
	x, ok := insn.DecodeX86(code)
	if !ok {
		return UprobeRefuses, ""
	}
	for i := range uprobeRules {
		if r := &uprobeRules[i]; r.is(&x) {
			return r.does, r.why
		}
	}
	return UprobeSteps, ""
}

// kprobeX86 says why a kprobe changes what an instruction does. Since Linux 5.13 kprobes emulate jumps, calls, returns, and what changes
// the interrupt flag, by the first byte of the opcode as the kernel's decoder has it (prepare_emulation in
// arch/x86/kernel/kprobes/core.c): with VEX and EVEX that is the byte after the prefix, of whatever map, as for uprobes. A store by
// VMOVDQA (7F) is taken for a jump to what follows. A call with prefixes returns to the wrong place.
func kprobeX86(x *insn.X86, in insn.Insn, code []byte) string {
	if !x.VEX {
		// kprobe_emulate_call pushes the address five bytes further (int3_emulate_call): compilers write a CS prefix before calls of
		// thunks for R8 to R15. Seen to end Linux 6.1 and 6.12.
		if in.Call && in.Size > 5 && slices.Contains(code[:in.Size-4], 0xe8) {
			return "the kernel would return into the middle of the call"
		}
		return ""
	}
	switch op := x.Opcode[0]; {
	case jumps(x), op >= 0xe0 && op <= 0xe3, op == 0xff:
		return "the kernel takes it for a jump, and it does not happen"
	case op == 0xe8:
		return "the kernel takes it for a call"
	case op == 0xc2, op == 0xc3, op == 0xca, op == 0xcb:
		return "the kernel takes it for a return"
	case op == 0xfa, op == 0xfb, op == 0x9c, op == 0x9d:
		return "the kernel takes it for one that changes the interrupt flag"
	}
	return ""
}

func kprobeAMD64(code []byte) string {
	x, ok := insn.DecodeX86(code)
	if !ok {
		return ""
	}
	in, _ := insn.For("amd64").Next(code)
	return kprobeX86(&x, in, code)
}

func kprobeI386(code []byte) string {
	x, ok := insn.DecodeI386(code)
	if !ok {
		return ""
	}
	in, _ := insn.For("i386").Next(code)
	return kprobeX86(&x, in, code)
}

// uprobeI386 says what uprobes do with 32-bit code, as far as the table of 64-bit code knows: nothing is refused.
func uprobeI386(code []byte) (Uprobe, string) {
	x, ok := insn.DecodeI386(code)
	if !ok || !x.VEX && !one(&x, 0x9c) && !one(&x, 0xcc) {
		return UprobeSteps, ""
	}
	if does, why := uprobeX86(code); does == UprobeHarms {
		return does, why
	}
	return UprobeSteps, ""
}

// x86Refusals: kprobes at INT3 are refused, and since Linux 6.9 at all of INT and UD (__copy_instruction and is_exception_insn in
// arch/x86/kernel/kprobes/core.c).
var x86Refusals = []Refusal{{Is: isInt3}, {Since: [2]int{6, 9}, Is: raisesX86}}

func isInt3(code []byte) bool { return len(code) > 0 && code[0] == 0xcc }

func raisesX86(code []byte) bool {
	x, ok := insn.DecodeX86(code)
	switch {
	case !ok || x.VEX:
		return false
	case x.OpcodeSize == 2:
		in, _ := insn.For("amd64").Next(code)
		return in.Trap
	}
	return x.OpcodeSize == 1 && x.Opcode[0] >= 0xcc && x.Opcode[0] <= 0xce
}
