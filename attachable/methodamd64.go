package attachable

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/probed"
)

// kprobeX86 asks in the kernel's order: register_kprobe takes ftrace's places first
// (kernel/kprobes.c, check_ftrace_location); a kprobe that can be optimised becomes a jump;
// setup_singlestep (arch/x86/kernel/kprobes/core.c) prefers a boosted copy to emulation, and that to a
// single step.
func kprobeX86(t *Table, addr uint64) Method {
	f := t.functionAt(addr)
	if f == nil {
		return MethodNone
	}
	r := t.reading(f.span)
	if t.onFtrace(r, addr) {
		return methodFtrace
	}
	x, ok := insn.DecodeX86(r.from(addr))
	switch {
	case !ok:
		return MethodNone
	case t.x86.optprobes && t.jumps5(r, addr):
		return methodJump
	}
	return t.x86.atBreakpoint(&x, t.faulty(addr))
}

// atBreakpoint returns how an instruction runs at which a kprobe has its breakpoint.
func (r *x86Rules) atBreakpoint(x *insn.X86, faulty bool) Method {
	switch {
	case !r.preemptible && !faulty && r.boosts(x):
		return methodBoosted
	case emulatedX86(x):
		return methodEmulated
	}
	return methodStepped
}

// onFtrace reports whether a probe is at ftrace's call. One at the ENDBR64 before that, at a
// function's beginning, is moved there (arch_adjust_kprobe_addr).
func (t *Table) onFtrace(r *reading, addr uint64) bool {
	if _, at := slices.BinarySearch(t.mcount, addr); at {
		return true
	}
	_, after := slices.BinarySearch(t.mcount, addr+endbrSize)
	code := r.from(addr)
	return after && addr == r.lo && len(code) >= endbrSize && [endbrSize]byte(code) == [endbrSize]byte{0xf3, 0x0f, 0x1e, 0xfa}
}

const endbrSize = 4

// jumpSize is the bytes of the jump that an optimised kprobe puts over instructions.
const jumpSize = 5

// jumps5 reports whether a kprobe becomes a jump: can_optimize and copy_optimized_instructions in
// arch/x86/kernel/kprobes/opt.c.
func (t *Table) jumps5(r *reading, addr uint64) bool {
	if r.blocked {
		return false
	}
	// No jump of the function may lead into the bytes after the first. The one after the five
	// counts too: insn_jump_into_range compares with <=.
	if i, _ := slices.BinarySearch(r.targets, addr+1); i < len(r.targets) && r.targets[i] <= addr+jumpSize {
		return false
	}
	// The reading ends where the function does: less than five bytes before that, none is left to
	// decode.
	size := uint64(0)
	for size < jumpSize {
		x, ok := insn.DecodeX86(r.from(addr + size))
		if !ok || t.faulty(addr+size) || !t.x86.boosts(&x) {
			return false
		}
		size += uint64(x.Size)
	}
	code := span{addr, addr + size}
	return !overlap(t.mcount, t.callSize(), code) && !overlap(t.statics, callX86, code) && !t.jumpLabelIn(code)
}

// callX86 is the bytes of a static call.
const callX86 = 5

// overlap reports whether one of some sorted addresses, or the size-1 bytes after it, is in a range.
func overlap(addrs []uint64, size uint64, r span) bool {
	i, _ := slices.BinarySearch(addrs, r.lo-min(r.lo, size-1))
	return i < len(addrs) && addrs[i] < r.hi
}

func (t *Table) jumpLabelIn(r span) bool {
	i, _ := slices.BinarySearch(t.jumps, r.lo-min(r.lo, maxInstruction))
	for ; i < len(t.jumps) && t.jumps[i] < r.hi; i++ {
		if t.jumps[i]+t.instructionSize(t.jumps[i]) > r.lo {
			return true
		}
	}
	return false
}

// faulty reports whether the kernel expects that the instruction at an address may fault
// (search_exception_tables).
func (t *Table) faulty(addr uint64) bool {
	_, ok := slices.BinarySearch(t.faults, addr)
	return ok
}

// x86Rules are the rules of one kernel.
type x86Rules struct {
	optprobes   bool // CONFIG_OPTPROBES
	preemptible bool // CONFIG_PREEMPTION: prepare_singlestep boosts nothing
	groups      bool // more instructions of groups 2 to 5 are boosted, since Linux 6.9
	// indirect says that a function with an indirect jump is not optimised. Since Linux 6.6 it is if
	// the kernel was built with retpolines or for IBT, which exclude jump tables. thunks are the
	// code that counts as an indirect jump if something jumps there.
	indirect bool
	thunks   span
	ret      uint64 // the return thunk
}

// twoByteBoosts lists the second bytes of the opcodes that kprobes boost (twobyte_is_boostable in
// arch/x86/kernel/kprobes/core.c), as first and last of a range.
var twoByteBoosts = bitsOf([][2]byte{
	{0x02, 0x03}, {0x06, 0x06}, {0x08, 0x09}, {0x1f, 0x1f}, {0x20, 0x23}, {0x31, 0x31}, {0x40, 0x4f}, {0x60, 0x6b}, {0x6e, 0x6f},
	{0x74, 0x77}, {0x7e, 0x7f}, {0x90, 0x9f}, {0xa0, 0xa1}, {0xa3, 0xa5}, {0xa8, 0xa9}, {0xab, 0xad}, {0xaf, 0xaf}, {0xb0, 0xb7},
	{0xbb, 0xbf}, {0xc0, 0xc1}, {0xc8, 0xcf}, {0xd1, 0xd3}, {0xd5, 0xd5}, {0xd8, 0xd9}, {0xdb, 0xdd}, {0xdf, 0xdf}, {0xe1, 0xe2},
	{0xe5, 0xe5}, {0xe8, 0xe9}, {0xeb, 0xed}, {0xef, 0xef}, {0xf1, 0xf3}, {0xf5, 0xf5}, {0xf8, 0xfa}, {0xfc, 0xfe},
})

// oneByteStays lists the opcodes of one byte that kprobes do not boost (can_boost).
var oneByteStays = bitsOf([][2]byte{
	{0x62, 0x62}, {0x70, 0x7f}, {0x9a, 0x9a}, {0xcc, 0xce}, {0xd6, 0xd6}, {0xd8, 0xdf}, {0xe0, 0xe3}, {0xe8, 0xe9}, {0xeb, 0xeb}, {0xf0, 0xf4},
})

// groupBoosts are the opcodes that are boosted for some values of ModRM's middle bits: until Linux
// 6.8, and since 6.9. Bit n is value n.
var groupBoosts = map[byte][2]uint8{
	0xc0: {0, ^uint8(1 << 6)}, 0xc1: {0, ^uint8(1 << 6)}, 0xd0: {0, ^uint8(1 << 6)}, 0xd1: {0, ^uint8(1 << 6)}, 0xd2: {0, ^uint8(1 << 6)}, 0xd3: {0, ^uint8(1 << 6)},
	0xf6: {0, ^uint8(1 << 1)}, 0xf7: {0, ^uint8(1 << 1)},
	0xfe: {0, 1<<0 | 1<<1},
	0xff: {1 << 4, 1<<0 | 1<<1 | 1<<4},
}

func bitsOf(ranges [][2]byte) (out [256]bool) {
	for _, r := range ranges {
		for i := int(r[0]); i <= int(r[1]); i++ {
			out[i] = true
		}
	}
	return out
}

// boosts reports whether a copy of an instruction can run elsewhere and be followed by a jump:
// can_boost in arch/x86/kernel/kprobes/core.c, without its question whether it may fault.
func (r *x86Rules) boosts(x *insn.X86) bool {
	switch {
	case x.OpcodeSize == 2:
		return twoByteBoosts[x.Opcode[1]]
	case x.OpcodeSize != 1 || x.CS || x.AddressSize || oneByteStays[x.Opcode[0]]:
		return false
	}
	group, ok := groupBoosts[x.Opcode[0]]
	if !ok {
		return true
	}
	values := group[0]
	if r.groups {
		values = group[1]
	}
	return values>>x.Reg()&1 != 0
}

// emulatedOpcodes has the opcodes of one byte that kprobes emulate (prepare_emulation in
// arch/x86/kernel/kprobes/core.c): what changes the instruction pointer or the interrupt flag.
var emulatedOpcodes = bitsOf([][2]byte{
	{0x70, 0x7f}, {0x9c, 0x9d}, {0xc2, 0xc3}, {0xca, 0xcb}, {0xe0, 0xe3}, {0xe8, 0xe9}, {0xeb, 0xeb}, {0xfa, 0xfb},
})

func emulatedX86(x *insn.X86) bool {
	switch {
	case x.OpcodeSize == 2:
		return x.Opcode[1]&0xf0 == 0x80
	case x.OpcodeSize != 1 || x.VEX:
		return false
	case x.Opcode[0] == 0xff: // calls and jumps to what is in a register
		return x.Reg() == 2 || x.Reg() == 4
	}
	return emulatedOpcodes[x.Opcode[0]]
}

// uprobeX86 asks the table of what uprobes do with each instruction.
func uprobeX86(code []byte) Method {
	does, _ := probed.For("amd64").Uprobe(code)
	return [...]Method{
		probed.UprobeSteps: methodStepped, probed.UprobeSkips: methodNop, probed.UprobeEmulates: methodEmulated, probed.UprobeCalls: methodCalled,
		probed.UprobeRepeats: methodStepped, probed.UprobeRefuses: MethodNone, probed.UprobeHarms: MethodNone,
	}[does]
}
