package insn

import (
	"encoding/binary"
	"sync"

	"golang.org/x/arch/riscv64/riscv64asm"

	"github.com/bpfprologue/bpfprologue/internal/symbolic"
)

// What functions do not preserve: RISC-V ABIs Specification 1.0, chapter 1. The frame is at sp and s0.
var riscvOperations = &operations{
	named: decodeRISCV, effects: riscvEffects, bits: 64, frame: 1<<2 | 1<<8, pointer: 8,
	lost: 1<<1 | 7<<5 | 255<<10 | 15<<28, results: 3 << 10,
	condition: conditionRISCV, bitsOf: bitsRISCV, leads: leadsRISCV,
	global: func(op *operation, addr uint64) (uint64, bool) {
		return addr + uint64(op.list[1].n), op.name == "AUIPC"
	},
}

// riscvEffects is RV64GC with the bit manipulations that kernels use. Names of compressed instructions are those
// of what they stand for.
var riscvEffects = effectsOf([]effectGroup{
	{effect{verb: adds}, "ADD ADDI"},
	{effect{verb: adds, bits: 32, flags: signedBits}, "ADDW ADDIW"},
	{effect{verb: subtracts}, "SUB"},
	{effect{verb: subtracts, bits: 32, flags: signedBits}, "SUBW"},
	{effect{verb: masks}, "AND ANDI"},
	{effect{verb: flips}, "XOR XORI"},
	{effect{verb: shiftsLeft}, "SLL SLLI"},
	{effect{verb: shiftsRight}, "SRL SRLI"},
	{effect{verb: shiftsRight, flags: signedBits}, "SRA SRAI"},
	{effect{verb: computes}, `OR ORI SLT SLTI SLTU SLTIU SLLW SLLIW SRLW SRLIW SRAW SRAIW MUL MULH MULHU MULHSU MULW
		DIV DIVU DIVW DIVUW REM REMU REMW REMUW ANDN ORN XNOR CLZ CLZW CTZ CTZW CPOP CPOPW MAX MAXU MIN MINU SEXT.B SEXT.H ZEXT.H
		REV8 ORC.B ROL ROLW ROR RORI RORIW RORW SH1ADD SH2ADD SH3ADD ADD.UW SLLI.UW`},
	{effect{verb: selects}, "LUI"},
	{effect{verb: addresses}, "AUIPC"},
	{effect{verb: nothing}, "FENCE FENCE.I"},
	{effect{verb: loads, bits: 8}, "LBU"},
	{effect{verb: loads, bits: 8, flags: signedBits}, "LB"},
	{effect{verb: loads, bits: 16}, "LHU"},
	{effect{verb: loads, bits: 16, flags: signedBits}, "LH"},
	{effect{verb: loads, bits: 32}, "LWU"},
	{effect{verb: loads, bits: 32, flags: signedBits}, "LW"},
	{effect{verb: loads, bits: 64}, "LD"},
	{effect{verb: loads, bits: 64, flags: elsewhere}, "FLD"},
	{effect{verb: loads, bits: 32, flags: elsewhere}, "FLW"},
	{effect{verb: stores, bits: 8}, "SB"},
	{effect{verb: stores, bits: 16}, "SH"},
	{effect{verb: stores, bits: 32}, "SW"},
	{effect{verb: stores, bits: 64}, "SD"},
	{effect{verb: stores, bits: 64, flags: elsewhere}, "FSD"},
	{effect{verb: stores, bits: 32, flags: elsewhere}, "FSW"},
})

// riscvDecoding serializes riscv64asm.Decode, which writes to a package variable.
var riscvDecoding sync.Mutex

func decodeRISCV(code []byte) (op operation, ok bool) {
	riscvDecoding.Lock()
	inst, err := riscv64asm.Decode(code)
	riscvDecoding.Unlock()
	if err != nil || inst.Op == 0 {
		return op, false
	}
	op.name = inst.Op.String()
	register := func(r riscv64asm.Reg) int8 {
		if r == riscv64asm.X0 || r > riscv64asm.X31 {
			return -1
		}
		return int8(r)
	}
	for _, a := range inst.Args {
		x := operand{reg: -1, plus: -1}
		switch a := a.(type) {
		case nil:
			continue
		case riscv64asm.Reg:
			switch {
			case a == riscv64asm.X0:
				x.kind = numberOperand // always 0
			case a <= riscv64asm.X31:
				x.kind, x.reg = registerOperand, int8(a)
			}
		case riscv64asm.Simm:
			x.kind, x.n = numberOperand, int64(a.Imm)
		case riscv64asm.Uimm:
			x.kind, x.n = numberOperand, int64(a.Imm)
		case riscv64asm.RegOffset:
			x.kind, x.reg, x.n = memoryOperand, register(a.OfsReg), int64(a.Ofs.Imm)
		case riscv64asm.RegPtr:
			x.kind, x.reg = memoryOperand, register(riscv64asm.Reg(inst.Enc>>15&31)) // it exports no register
		}
		op.add(x)
	}
	if (op.name == "LUI" || op.name == "AUIPC") && int(op.count) == 2 {
		op.list[1].n = int64(int32(op.list[1].n << 12))
	}
	return op, true
}

// conditionRISCV follows a branch, which compares two registers, or one with zero.
func conditionRISCV(t *symbolic.Trace, code []byte) symbolic.Condition {
	word, size, _ := wordRISCV(code)
	register := func(n uint64) symbolic.Value {
		if n == 0 {
			return symbolic.Constant(0)
		}
		return t.Regs[n]
	}
	if size == 2 {
		t.Branch = t.Compared(register(8+word>>7&7), symbolic.Constant(0), 64, true)
		return [2]symbolic.Condition{symbolic.Equal, symbolic.Different}[word>>13&1]
	}
	t.Branch = t.Compared(register(word>>15&31), register(word>>20&31), 64, true)
	return [8]symbolic.Condition{symbolic.Equal, symbolic.Different, symbolic.Always, symbolic.Always, symbolic.Less, symbolic.NotLess, symbolic.Below, symbolic.AtLeast}[word>>12&7]
}

func bitsRISCV(t *symbolic.Trace, op *operation, _ effect) symbolic.Value {
	if int(op.count) == 2 && op.list[1].kind == numberOperand {
		return symbolic.Constant(uint64(op.list[1].n)) // LUI
	}
	return t.Unknown()
}

func leadsRISCV(_ *operations, t *symbolic.Trace, code []byte, _ uint64) symbolic.Value {
	if word, size, _ := wordRISCV(code); size == 2 {
		return t.Regs[word>>7&31]
	} else if off := int64(int32(binary.LittleEndian.Uint32(code))) >> 20; off == 0 {
		return t.Regs[word>>15&31]
	}
	return t.Unknown()
}
