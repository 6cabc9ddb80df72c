package insn

import (
	"encoding/binary"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/symbolic"
)

// x86 is what the instructions of amd64 and of i386 differ in.
type x86 struct {
	narrow bool // it is code of 32 bits
	// numbers are the DWARF numbers of the general registers, in the order of their codes.
	numbers [16]int8
	bits    uint8 // of an address
	once    sync.Once
	rows    [x86Maps][256][]x86Row // set once an operation is asked for: most processes ask for none
}

// amd64: System V ABI, AMD64 Architecture Processor Supplement, figures 3.36 (numbers) and 3.4: functions do not preserve RAX, RDX, RCX, RSI,
// RDI and R8 to R11, and RAX and RDX have results. RBP is the frame pointer.
var amd64 = sync.OnceValue(func() *Arch {
	m := &x86{bits: 64, numbers: [16]int8{0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15}}
	a := m.arch(&operations{stack: 7, pointer: 6, lost: 0xf37, results: 0x003})
	a.Global = m.global
	return a
})

// i386: System V ABI, Intel386 Architecture Processor Supplement 1.1, tables 2.14 (numbers) and 2.3: functions do not preserve EAX, ECX and EDX, and
// EAX and EDX have results. EBP is the frame pointer.
var i386 = sync.OnceValue(func() *Arch {
	m := &x86{narrow: true, bits: 32, numbers: [16]int8{0, 1, 2, 3, 4, 5, 6, 7}}
	return m.arch(&operations{stack: 4, pointer: 5, lost: 0x07, results: 0x05})
})

func (m *x86) arch(o *operations) *Arch {
	o.decode, o.bits, o.frame, o.condition, o.leads = m.operation, m.bits, 1<<o.stack|1<<o.pointer, m.condition, m.leads
	return fromTables(&Arch{Results: Results{Calls: m.calls}, MayChoose: mayMove}, m.next, o)
}

// What is more to say of where execution goes on than what control says.
const (
	relative control = 0x100 << iota // to a distance from what follows
	perhaps                          // only some of the opcode's instructions: see next
)

// x86Leads are the opcodes after which execution may go on elsewhere, of one byte and of two (0F). Execution may go on after UD2: it is also
// the trap of a WARN.
var x86Leads = [...]struct {
	does        control
	size        int
	first, last byte
}{
	{relative, 1, 0x70, 0x7f}, {relative, 1, 0xe0, 0xe3}, // Jcc, LOOP, JCXZ
	{calls, 1, 0x9a, 0x9a}, {ends, 1, 0xc2, 0xc3}, {perhaps | relative, 1, 0xc7, 0xc7}, {ends, 1, 0xca, 0xcb}, // a far call, RET, XBEGIN, far RET
	{traps, 1, 0xcc, 0xcc}, {perhaps | traps, 1, 0xcd, 0xcd}, {ends, 1, 0xcf, 0xcf}, // INT3, INT, IRET
	{calls | relative, 1, 0xe8, 0xe8}, {ends | relative, 1, 0xe9, 0xe9}, {ends | lost, 1, 0xea, 0xea}, {ends | relative, 1, 0xeb, 0xeb},
	{perhaps | idle, 1, 0x90, 0x90}, {perhaps, 1, 0xff, 0xff}, // NOP; calls and jumps to what an operand is
	{ends, 2, 0x07, 0x07}, {ends, 2, 0x35, 0x35}, {relative, 2, 0x80, 0x8f}, {idle, 2, 0x1f, 0x1f}, // SYSRET, SYSEXIT, Jcc
	{traps, 2, 0x0b, 0x0b}, {traps, 2, 0xb9, 0xb9}, {traps, 2, 0xff, 0xff}, // UD2, UD1, UD0
}

var x86Leads1, x86Leads2 = func() (one, two [256]control) {
	for _, l := range x86Leads {
		for op := int(l.first); op <= int(l.last); op++ {
			if l.size == 1 {
				one[op] = l.does
			} else {
				two[op] = l.does
			}
		}
	}
	return one, two
}()

// x86Through are the operations of FF by the middle of their ModRM byte.
var x86Through = [8]control{2: calls, 3: calls, 4: ends | lost, 5: ends | lost}

// next says where control goes after an instruction, by the fields of its encoding alone.
func (m *x86) next(code []byte) (in Insn, ok bool) {
	var x X86
	if !x.decode(code, m.narrow) {
		return in, false
	}
	does := control(0)
	switch {
	case x.VEX:
	case x.OpcodeSize == 1:
		does = x86Leads1[x.Opcode[0]]
	case x.OpcodeSize == 2:
		does = x86Leads2[x.Opcode[1]]
	}
	if does == 0 {
		return plain[x.Size], true
	}
	x.leads(does, &in)
	return in, true
}

// leads says where control goes after an instruction of an opcode after which it may go on elsewhere.
func (x *X86) leads(does control, in *Insn) {
	if does&perhaps != 0 {
		does &^= perhaps
		switch op := x.Opcode[0]; {
		case op == 0xff:
			does = x86Through[x.Reg()]
		case op == 0xc7 && x.ModRM != 0xf8, op == 0xcd && x.Immediate != 3,
			op == 0x90 && (x.rex&1 != 0 || x.Last == 0xf3): // XCHG of R8, PAUSE
			does = 0
		}
	}
	*in = Insn{Size: x.Size, Onward: does&ends == 0, Call: does&calls != 0, Lost: does&lost != 0, Trap: does&traps != 0, Nop: does&idle != 0}
	if does&relative != 0 {
		in.Branches, in.Target = !in.Call, int64(x.Size)+x.Immediate
	}
}

func (m *x86) calls(code []byte, addr uint64, visit func(after int, target uint64)) {
	for i := 0; i+5 <= len(code); i++ {
		if code[i] == 0xe8 {
			rel := int32(binary.LittleEndian.Uint32(code[i+1:]))
			visit(i+5, (addr+uint64(i+5)+uint64(int64(rel)))&symbolic.Mask(m.bits))
		}
	}
}

// x86Conditions are the conditions of jumps that follow a comparison, by the last bits of their opcodes.
var x86Conditions = [16]symbolic.Condition{2: symbolic.Below, 3: symbolic.AtLeast, 4: symbolic.Equal, 5: symbolic.Different, 6: symbolic.AtMost, 7: symbolic.Above, 12: symbolic.Less, 13: symbolic.NotLess, 14: symbolic.NotGreater, 15: symbolic.Greater}

// condition follows a branch under a condition.
func (m *x86) condition(t *symbolic.Trace, code []byte) symbolic.Condition {
	var x X86
	if !x.decode(code, m.narrow) {
		return symbolic.Always
	}
	op := x.Opcode[x.OpcodeSize-1]
	switch {
	case x.OpcodeSize == 2 || op < 0x80:
		if x86Conditions[op&15] != symbolic.Always {
			t.Branch = t.Flags
		}
		return x86Conditions[op&15]
	case op < 0xe3: // LOOP counts
		t.Regs[m.numbers[1]] = t.Unknown()
	case op == 0xc7:
		t.LoseAll()
	}
	return symbolic.Always
}

// leads returns where JMP to what an operand is leads.
func (m *x86) leads(o *operations, t *symbolic.Trace, code []byte, addr uint64) symbolic.Value {
	var op operation
	if !m.operation(code, &op) || op.name != "jmp" || op.count == 0 {
		return t.Unknown()
	}
	if a := &op.list[0]; a.kind == memoryOperand {
		return t.Load(o.address(t, a, addr), op.does.bits)
	}
	return o.value(t, &op.list[0])
}

// global returns the address of an operand in memory that is relative to the instruction.
func (m *x86) global(code []byte, addr uint64) (at uint64, ok bool) {
	var op operation
	if !m.operation(code, &op) || op.does.verb == addresses || op.name == "nop" {
		return 0, false
	}
	for i := range op.args() {
		if a := &op.list[i]; a.kind == memoryOperand && a.here {
			return addr + uint64(a.n), true
		}
	}
	return 0, false
}

// mayMove looks for the opcodes of a conditional move, behind a REX prefix: SDM volume 2, appendix A, table A-3.
func mayMove(code []byte) bool {
	if code[0]&0xf0 == 0x40 {
		code = code[1:]
	}
	return len(code) > 1 && code[0] == 0x0f && code[1]&0xf0 == 0x40
}
