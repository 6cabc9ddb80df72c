package insn

import (
	"encoding/binary"
	"strings"
	"sync"

	"golang.org/x/arch/loong64/loong64asm"

	"github.com/bpfprologue/bpfprologue/internal/symbolic"
)

// What functions do not preserve: LoongArch ABIs 2.30, "Procedure Call Standard", register conventions. The frame is at sp and fp.
var loongOperations = &operations{
	named: decodeLoong, effects: loongEffects, bits: 64, frame: 1<<3 | 1<<22, pointer: 22,
	lost: 1<<1 | 0x1ffff<<4, results: 3 << 4,
	condition: conditionLoong, bitsOf: bitsLoong, leads: leadsLoong, global: globalLoong,
}

// loongEffects is what compilers make for LA64 (LoongArch Reference Manual, volume 1, chapters 2 and 3). MOVE and LI are what decodeLoong
// calls OR and ORI with zero.
var loongEffects = effectsOf([]effectGroup{
	{effect{verb: moves}, "MOVE LI"},
	{effect{verb: adds}, "ADD.D ADDI.D ADDU16I.D ALSL.D"},
	{effect{verb: adds, bits: 32, flags: signedBits}, "ADD.W ADDI.W ALSL.W"},
	{effect{verb: adds, bits: 32}, "ALSL.WU"},
	{effect{verb: subtracts}, "SUB.D"},
	{effect{verb: subtracts, bits: 32, flags: signedBits}, "SUB.W"},
	{effect{verb: masks}, "AND ANDI"},
	{effect{verb: flips}, "XOR XORI"},
	{effect{verb: shiftsLeft}, "SLL.D SLLI.D"},
	{effect{verb: shiftsLeft, bits: 32, flags: signedBits}, "SLLI.W"},
	{effect{verb: shiftsRight}, "SRL.D SRLI.D"},
	{effect{verb: shiftsRight, bits: 32, flags: signedBits}, "SRAI.W"},
	{effect{verb: shiftsRight, flags: signedBits}, "SRA.D SRAI.D"},
	{effect{verb: extends, bits: 8, flags: signedBits}, "EXT.W.B"},
	{effect{verb: extends, bits: 16, flags: signedBits}, "EXT.W.H"},
	{effect{verb: computes}, `OR NOR ANDN ORN SLT SLTI SLTU SLTUI MASKEQZ MASKNEZ SLL.W SRL.W SRLI.W SRA.W ROTR.D ROTRI.D ROTR.W ROTRI.W
		MUL.D MULH.D MULH.DU MUL.W MULH.W MULH.WU MULW.D.W MULW.D.WU DIV.D DIV.DU DIV.W DIV.WU MOD.D MOD.DU MOD.W MOD.WU
		CLO.D CLO.W CLZ.D CLZ.W CTO.D CTO.W CTZ.D CTZ.W REVB.2H REVB.4H REVB.2W REVB.D REVH.2W REVH.D BITREV.4B BITREV.8B BITREV.W BITREV.D
		BYTEPICK.W BYTEPICK.D CPUCFG CSRRD MOVFR2GR.D MOVFR2GR.S MOVFRH2GR.S MOVCF2GR MOVFCSR2GR
		CRC.W.B.W CRC.W.H.W CRC.W.W.W CRC.W.D.W CRCC.W.B.W CRCC.W.H.W CRCC.W.W.W CRCC.W.D.W`},
	{effect{verb: computes, flags: firstToo}, "BSTRINS.D BSTRINS.W CSRWR CSRXCHG"},
	{effect{verb: selects}, "LU12I.W ORI LU52I.D BSTRPICK.D BSTRPICK.W"},
	{effect{verb: selects, flags: firstToo}, "LU32I.D"},
	{effect{verb: addresses}, "PCADDI PCADDU12I PCADDU18I PCALAU12I"},
	{effect{verb: nothing}, "DBAR IBAR PRELD PRELDX MOVGR2FR.D MOVGR2FR.W MOVGR2FRH.W MOVGR2CF MOVGR2FCSR ASRTLE.D ASRTGT.D"},
	{effect{verb: loads, bits: 8}, "LD.BU LDX.BU"},
	{effect{verb: loads, bits: 8, flags: signedBits}, "LD.B LDX.B"},
	{effect{verb: loads, bits: 16}, "LD.HU LDX.HU"},
	{effect{verb: loads, bits: 16, flags: signedBits}, "LD.H LDX.H"},
	{effect{verb: loads, bits: 32}, "LD.WU LDX.WU"},
	{effect{verb: loads, bits: 32, flags: signedBits}, "LD.W LDX.W LDPTR.W LL.W LLACQ.W"},
	{effect{verb: loads, bits: 64}, "LD.D LDX.D LDPTR.D LL.D LLACQ.D"},
	{effect{verb: loads, bits: 32, flags: elsewhere}, "FLD.S FLDX.S"},
	{effect{verb: loads, bits: 64, flags: elsewhere}, "FLD.D FLDX.D"},
	{effect{verb: stores, bits: 8}, "ST.B STX.B"},
	{effect{verb: stores, bits: 16}, "ST.H STX.H"},
	{effect{verb: stores, bits: 32}, "ST.W STX.W STPTR.W"},
	{effect{verb: stores, bits: 64}, "ST.D STX.D STPTR.D"},
	{effect{verb: stores, bits: 32, flags: elsewhere}, "FST.S FSTX.S"},
	{effect{verb: stores, bits: 64, flags: elsewhere}, "FST.D FSTX.D"},
})

// loongMemory are the operations on memory whose address is in the last operands, by how their names begin: how many operands these are.
// In those with two, the second is a distance or an index.
var loongMemory = []struct {
	prefix string
	count  int
}{
	{"AM", 1}, {"LLACQ.", 1}, {"SCREL.", 1}, {"SC.Q", 1},
	{"LDGT.", 2}, {"LDLE.", 2}, {"STGT.", 2}, {"STLE.", 2}, {"FLDGT.", 2}, {"FLDLE.", 2}, {"FSTGT.", 2}, {"FSTLE.", 2}, // and a bound
	{"LD.", 2}, {"LDX.", 2}, {"LDPTR.", 2}, {"ST.", 2}, {"STX.", 2}, {"STPTR.", 2}, {"FLD.", 2}, {"FLDX.", 2}, {"FST.", 2}, {"FSTX.", 2},
	{"LL.", 2}, {"SC.", 2}, {"PRELD", 2},
}

// loongShifts are the bits by which numbers in operations are shifted.
var loongShifts = map[string]uint8{
	"LU12I.W": 12, "ADDU16I.D": 16, "LU32I.D": 32, "LU52I.D": 52, "PCADDI": 2, "PCADDU12I": 12, "PCALAU12I": 12, "PCADDU18I": 18,
}

// loongDecoding serializes loong64asm.Decode, which writes to a package variable.
var loongDecoding sync.Mutex

func decodeLoong(code []byte) (op operation, ok bool) {
	loongDecoding.Lock()
	inst, err := loong64asm.Decode(code)
	loongDecoding.Unlock()
	if err != nil || inst.Op == 0 {
		return op, false
	}
	op.name = inst.Op.String()
	for _, a := range inst.Args {
		x := operand{reg: -1, plus: -1}
		switch a := a.(type) {
		case nil:
			continue
		case loong64asm.Reg:
			switch {
			case a == loong64asm.R0:
				x.kind = numberOperand // always 0
			case a <= loong64asm.R31:
				x.kind, x.reg = registerOperand, int8(a)
			}
		case loong64asm.Uimm:
			x.kind, x.n = numberOperand, int64(a.Imm)
		case loong64asm.Simm16:
			x.kind, x.n = numberOperand, int64(a.Imm)
		case loong64asm.Simm32:
			x.kind, x.n = numberOperand, int64(a.Imm)
		case loong64asm.SaSimm:
			x.kind, x.n = numberOperand, int64(a)
		}
		op.add(x)
	}
	op.shape()
	return op, true
}

// shape gives an operation the operands that the tables have.
func (op *operation) shape() {
	last := int(op.count) - 1
	if by := loongShifts[op.name]; by > 0 {
		op.list[last].n <<= by
	}
	zero := func(i int) bool { return op.list[i].kind == numberOperand && op.list[i].n == 0 }
	switch {
	case op.name == "OR" && zero(2):
		op.name, op.count = "MOVE", 2
	case op.name == "ORI" && zero(1):
		op.name, op.list[1], op.count = "LI", op.list[2], 2
	case strings.HasPrefix(op.name, "ALSL.") && op.list[1].kind == registerOperand:
		op.list[1].scale = uint8(op.list[3].n)
		op.count = 3
	}
	for _, m := range loongMemory {
		if !strings.HasPrefix(op.name, m.prefix) {
			continue
		}
		at := &op.list[last+1-m.count]
		x := operand{kind: memoryOperand, reg: at.reg, plus: -1}
		if m.count == 2 {
			x.n, x.plus = op.list[last].n, op.list[last].reg
		}
		*at, op.count = x, uint8(last+2-m.count)
		return
	}
}

// globalLoong returns the address that an operation computes from its own (volume 1, section 2.2.1.5).
func globalLoong(op *operation, addr uint64) (uint64, bool) {
	at := addr + uint64(op.list[1].n)
	if op.name == "PCALAU12I" {
		at &^= 1<<12 - 1
	}
	return at, true
}

// conditionLoong follows a branch, which compares two registers, or one with zero, or looks at a floating-point flag.
func conditionLoong(t *symbolic.Trace, code []byte) symbolic.Condition {
	word := binary.LittleEndian.Uint32(code)
	register := func(n uint32) symbolic.Value {
		if n &= 31; n != 0 {
			return t.Regs[n]
		}
		return symbolic.Constant(0)
	}
	const beqz, bnez, bceqz, beq = 0x10, 0x11, 0x12, 0x16
	switch op := word >> 26; op {
	case bceqz:
		t.Branch.Valid = false
		return symbolic.Always
	case beqz, bnez:
		t.Branch = t.Compared(register(word>>5), symbolic.Constant(0), 64, true)
		return [2]symbolic.Condition{symbolic.Equal, symbolic.Different}[op-beqz]
	default:
		t.Branch = t.Compared(register(word>>5), register(word), 64, true)
		return [6]symbolic.Condition{symbolic.Equal, symbolic.Different, symbolic.Less, symbolic.NotLess, symbolic.Below, symbolic.AtLeast}[op-beq]
	}
}

// bitsLoong carries out operations that select bits (volume 1, sections 2.2.1.3, 2.2.1.4, 2.2.1.7 and 2.2.3.9).
func bitsLoong(t *symbolic.Trace, op *operation, _ effect) symbolic.Value {
	n := uint64(op.list[int(op.count)-1].n)
	of := op.list[0] // what LU32I.D changes
	if int(op.count) > 2 {
		of = op.list[1]
	}
	v := symbolic.Constant(0)
	if of.kind == registerOperand {
		v = t.Regs[of.reg]
	}
	switch op.name {
	case "LU12I.W":
		return symbolic.Constant(n)
	case "BSTRPICK.D", "BSTRPICK.W":
		from, to := uint8(n), uint8(op.list[2].n)
		if from > to {
			break
		}
		if v = t.Low(v, to+1); from > 0 {
			v = t.ShiftRight(v, from, to+1)
		}
		if op.name == "BSTRPICK.W" {
			v = t.LowSigned(v, 32)
		}
		return v
	}
	if !v.IsConstant() {
		return t.Unknown()
	}
	switch op.name {
	case "ORI":
		return symbolic.Constant(v.Const | n)
	case "LU32I.D":
		return symbolic.Constant(v.Const&symbolic.Mask(32) | n)
	case "LU52I.D":
		return symbolic.Constant(v.Const&symbolic.Mask(52) | n)
	}
	return t.Unknown()
}

func leadsLoong(_ *operations, t *symbolic.Trace, code []byte, _ uint64) symbolic.Value {
	word := uint64(binary.LittleEndian.Uint32(code))
	return t.Plus(t.Regs[word>>5&31], symbolic.Constant(uint64(loongI16.of(word))), 1)
}
