package insn

import (
	"encoding/binary"
	"strings"
	"sync"

	"golang.org/x/arch/arm/armasm"

	"github.com/bpfprologue/bpfprologue/internal/symbolic"
)

// What functions do not preserve: Procedure Call Standard for the Arm Architecture, section 6.1.1. The frame is at
// r13 and r11.
var armOperations = &operations{
	steps: true,
	named: decodeARM, effects: armEffects, bits: 32, frame: 1<<13 | 1<<11, pointer: 11,
	lost: 15 | 1<<12 | 1<<14, results: 3,
	condition: conditionARM, leads: leadsARM, before: beforeARM,
}

var armEffects = effectsOf([]effectGroup{
	{effect{verb: moves}, "MOV MOVW"},
	{effect{verb: adds}, "ADD"},
	{effect{verb: subtracts}, "SUB"},
	{effect{verb: subtracts, flags: inverted}, "RSB"},
	{effect{verb: masks}, "AND"},
	{effect{verb: flips}, "EOR"},
	{effect{verb: shiftsLeft}, "LSL"},
	{effect{verb: shiftsRight}, "LSR"},
	{effect{verb: shiftsRight, flags: signedBits}, "ASR"},
	{effect{verb: computes}, `ADC SBC RSC BIC ORR MVN MUL MLA MLS ROR RRX CLZ UBFX SBFX RBIT REV REV16 REVSH UXTAB UXTAH SXTAB SXTAH SDIV UDIV
		SMULBB SMULBT SMULTB SMULTT SMLABB SMMUL USAT SSAT MRS`},
	{effect{verb: computes, flags: firstToo}, "MOVT BFI BFC"},
	{effect{verb: extends, bits: 8}, "UXTB"},
	{effect{verb: extends, bits: 16}, "UXTH"},
	{effect{verb: extends, bits: 8, flags: signedBits}, "SXTB"},
	{effect{verb: extends, bits: 16, flags: signedBits}, "SXTH"},
	{effect{verb: compares, bits: 32}, "CMP"},
	{effect{verb: nothing}, "CMN TST TEQ DMB DSB ISB PLD PLDW PLI NOP YIELD"},
	{effect{verb: loads, bits: 8}, "LDRB"},
	{effect{verb: loads, bits: 16}, "LDRH"},
	{effect{verb: loads, bits: 8, flags: signedBits}, "LDRSB"},
	{effect{verb: loads, bits: 16, flags: signedBits}, "LDRSH"},
	{effect{verb: loads, bits: 32}, "LDR"},
	{effect{verb: stores, bits: 8}, "STRB"},
	{effect{verb: stores, bits: 16}, "STRH"},
	{effect{verb: stores, bits: 32}, "STR"},
})

// armDecoding serializes armasm.Decode, which writes to a package variable.
var armDecoding sync.Mutex

func decodeARM(code []byte) (op operation, ok bool) {
	armDecoding.Lock()
	inst, err := armasm.Decode(code, armasm.ModeARM)
	armDecoding.Unlock()
	if err != nil || inst.Op == 0 {
		return op, false
	}
	word := binary.LittleEndian.Uint32(code)
	name, rest, _ := strings.Cut(inst.Op.String(), ".")
	op.name, op.maybe = name, word>>28 < 14
	op.flags = rest == "S" || strings.HasPrefix(rest, "S.") || strings.HasSuffix(rest, ".S")
	switch name {
	case "TST", "TEQ", "CMN":
		op.flags = true
	case "PUSH", "POP":
		op.add(operand{kind: memoryOperand, reg: 13, plus: -1, moves: true})
	}
	for _, a := range inst.Args {
		x := operand{reg: -1, plus: -1}
		switch a := a.(type) {
		case nil:
			continue
		case armasm.Reg:
			if a <= armasm.R15 {
				x.kind, x.reg = registerOperand, int8(a)
			}
		case armasm.RegShift:
			x.kind, x.reg, x.scale = registerOperand, int8(a.Reg), a.Count&31
			x.odd = a.Shift != armasm.ShiftLeft
		case armasm.RegShiftReg:
			x.kind, x.reg, x.odd = registerOperand, int8(a.Reg), true
			op.add(operand{kind: registerOperand, reg: int8(a.RegCount), plus: -1})
		case armasm.Imm:
			x.kind, x.n = numberOperand, int64(a)
		case armasm.ImmAlt:
			x.kind, x.n = numberOperand, int64(a.Imm())
		case armasm.RegList:
			op.reads, op.writes = Registers(a), Registers(a) // loaded or stored
			continue
		case armasm.Mem:
			x.kind, x.reg, x.n = memoryOperand, int8(a.Base), int64(a.Offset)
			x.moves = a.Mode == armasm.AddrPreIndex || a.Mode == armasm.AddrPostIndex || a.Mode == armasm.AddrLDM_WB
			if x.after = a.Mode == armasm.AddrPostIndex || a.Mode == armasm.AddrLDM_WB; x.after {
				x.n = 0
			}
			if a.Sign != 0 && !x.after {
				x.plus, x.scale, x.odd = int8(a.Index), a.Count&31, a.Sign < 0 || a.Shift != armasm.ShiftLeft
			}
		}
		op.add(x)
	}
	if e := armEffects()[name]; (e.verb == loads || e.verb == stores) && (int(op.count) < 2 || op.list[1].kind != memoryOperand) {
		op.name = "" // of a literal, or not of one register
	}
	return op, true
}

// beforeARM: the program counter reads as the instruction's address and eight.
func beforeARM(t *symbolic.Trace, addr uint64) { t.Regs[15] = symbolic.Constant(addr + 8) }

// conditionARM: the numbers of conditions are those of arm64.
func conditionARM(t *symbolic.Trace, code []byte) symbolic.Condition {
	t.Branch = t.Flags
	c := binary.LittleEndian.Uint32(code) >> 28
	if c > 13 {
		return symbolic.Always
	}
	return arm64Conditions[c]
}

// leadsARM is BX, or LDR or ADD to the program counter, which switches have under a condition.
func leadsARM(o *operations, t *symbolic.Trace, code []byte, addr uint64) symbolic.Value {
	beforeARM(t, addr)
	word := binary.LittleEndian.Uint32(code)
	if word>>28 != 14 {
		t.Assume(conditionARM(t, code))
	}
	if word&0x0ffffff0 == 0x012fff10 {
		return t.Regs[word&15]
	}
	op, ok := decodeARM(code)
	switch {
	case ok && op.name == "LDR" && !op.list[1].moves:
		return t.Load(o.address(t, &op.list[1], addr), 32)
	case ok && op.name == "ADD" && int(op.count) == 3:
		return t.Low(t.Plus(o.value(t, &op.list[1]), o.value(t, &op.list[2]), 1), 32)
	}
	return t.Unknown()
}
