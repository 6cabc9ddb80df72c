package insn

import (
	"encoding/binary"
	"strings"
	"sync"

	"golang.org/x/arch/ppc64/ppc64asm"

	"github.com/bpfprologue/bpfprologue/internal/symbolic"
)

// ppc64Lost are the registers that functions do not preserve, ppc64Results those with results (64-Bit ELF V2
// ABI, section 2.2.1). The frame is at r1 and r31.
var ppc64Operations = &operations{
	steps: true,
	named: decodePPC64, effects: ppc64Effects, bits: 64, frame: 1<<1 | 1<<31, pointer: 31,
	lost: (1<<13 - 1) &^ (1<<1 | 1<<2), results: 1<<3 | 1<<4,
	self: selfPPC64, condition: conditionPPC64, bitsOf: bitsPPC64, leads: leadsPPC64,
}

// ppc64Effects is Power ISA 3.0B, book I, chapter 3. What a record form computes (with a dot) is the same.
var ppc64Effects = effectsOf([]effectGroup{
	{effect{verb: adds}, "add addi addis addic add. addic."},
	{effect{verb: subtracts, flags: inverted}, "subf subf. subfic"},
	{effect{verb: computes}, `addc adde addme addze subfc subfe subfme subfze neg mulli mulld mullw mulhd mulhdu mulhw mulhwu
		divd divdu divw divwu divde divdeu divwe divweu modsd modud modsw moduw maddhd maddhdu maddld addpcis
		andc orc nand nor eqv xoris oris andis. cntlzw cntlzd cnttzw cnttzd popcntb popcntw popcntd prtyw prtyd
		bpermd cmpb slw srw sraw srad srawi sradi rlwnm rldcl rldcr isel mfspr mfcr mfocrf mfmsr setb darn mftb
		cdtbcd cbcdtd addg6s mfvsrd mfvsrwz mfvsrld paste. brh brw brd`},
	{effect{verb: masks}, "andi."},
	{effect{verb: flips}, "xor xori"},
	{effect{verb: selects}, "and or ori rldicl rldicr rldic rlwinm sld srd"},
	{effect{verb: computes, flags: firstToo}, "rlwimi rldimi"},
	{effect{verb: extends, bits: 8, flags: signedBits}, "extsb"},
	{effect{verb: extends, bits: 16, flags: signedBits}, "extsh"},
	{effect{verb: extends, bits: 32, flags: signedBits}, "extsw"},
	{effect{verb: compares, bits: 32}, "cmplw cmplwi"},
	{effect{verb: compares, bits: 32, flags: signedBits}, "cmpw cmpwi"},
	{effect{verb: compares, bits: 64}, "cmpld cmpldi"},
	{effect{verb: compares, bits: 64, flags: signedBits}, "cmpd cmpdi"},
	{effect{verb: nothing}, `cmprb cmpeqb mtcrf mtocrf mcrf crand cror crxor crnand crnor creqv crandc crorc sync isync lwsync eieio
		dcbt dcbtst dcbf dcbst icbi tw twi td tdi mtfsf mtfsb0 mtfsb1`},
	{effect{verb: movesFar}, "mtspr"},
	{effect{verb: loads, bits: 8}, "lbz lbzx lbzu lbzux"},
	{effect{verb: loads, bits: 16}, "lhz lhzx lhzu lhzux"},
	{effect{verb: loads, bits: 16, flags: signedBits}, "lha lhax lhau lhaux"},
	{effect{verb: loads, bits: 32}, "lwz lwzx lwzu lwzux"},
	{effect{verb: loads, bits: 32, flags: signedBits}, "lwa lwax lwaux"},
	{effect{verb: loads, bits: 64}, "ld ldx ldu ldux"},
	{effect{verb: loads, bits: 64, flags: elsewhere}, "lfd lfdx lfs lfsx lfdu lfsu"},
	{effect{verb: stores, bits: 8}, "stb stbx stbu stbux"},
	{effect{verb: stores, bits: 16}, "sth sthx sthu sthux"},
	{effect{verb: stores, bits: 32}, "stw stwx stwu stwux"},
	{effect{verb: stores, bits: 64}, "std stdx stdu stdux"},
	{effect{verb: stores, bits: 64, flags: elsewhere}, "stfd stfdx stfdu"},
	{effect{verb: stores, bits: 32, flags: elsewhere}, "stfs stfsx stfsu"},
})

// ppc64Decoding serializes ppc64asm.Decode, which writes to a package variable.
var ppc64Decoding sync.Mutex

func decodePPC64(code []byte) (op operation, ok bool) {
	ppc64Decoding.Lock()
	inst, err := ppc64asm.Decode(code, binary.LittleEndian)
	ppc64Decoding.Unlock()
	if err != nil || inst.Op == 0 {
		return op, false
	}
	op.name = inst.Op.String()
	op.flags = strings.HasSuffix(op.name, ".")
	e, known := ppc64Effects()[op.name]
	if !known {
		op.name = strings.TrimSuffix(op.name, ".")
		e = ppc64Effects()[op.name]
	}
	for _, a := range inst.Args {
		x := operand{reg: -1, plus: -1}
		switch a := a.(type) {
		case nil:
			continue
		case ppc64asm.Reg:
			if a >= ppc64asm.R0 && a <= ppc64asm.R31 {
				x.kind, x.reg = registerOperand, int8(a-ppc64asm.R0)
			}
		case ppc64asm.Offset:
			x.kind, x.n = numberOperand, int64(a)
		case ppc64asm.Imm:
			x.kind, x.n = numberOperand, int64(a)
		case ppc64asm.CondReg:
			x.n = int64(a-ppc64asm.CR0) & 7
		}
		op.add(x)
	}
	ppc64Memory(&op, e)
	if op.name == "addis" && int(op.count) == 3 {
		op.list[2].n <<= 16
	}
	// Register 0 stands for the number 0 there (section 3.3.9).
	if (op.name == "addi" || op.name == "addis") && int(op.count) == 3 && op.list[1].reg == 0 {
		op.list[1] = operand{kind: numberOperand, reg: -1, plus: -1}
	}
	return op, true
}

// ppc64Memory makes one operand of the last two of an operation on memory: a distance and a register, or two
// registers. Register 0 stands for no address.
func ppc64Memory(op *operation, e effect) {
	n := op.count
	if e.verb != loads && e.verb != stores || n != 3 {
		return
	}
	a, b := op.list[1], op.list[2]
	m := operand{kind: memoryOperand, reg: -1, plus: -1}
	if a.kind == numberOperand {
		m.n, m.reg = a.n, b.reg
	} else {
		m.reg, m.plus = a.reg, b.reg
	}
	if m.reg == 0 {
		m.reg = -1
	}
	m.moves = strings.HasSuffix(op.name, "u") || strings.HasSuffix(op.name, "ux")
	op.list[1], op.count = m, 2
}

// selfPPC64: a function that sets its table of contents has its address in r12 (section 2.3.2.1), and begins
// with ADDIS r2, r12.
func selfPPC64(code []byte) (reg uint8, ok bool) {
	return 12, len(code) >= 4 && binary.LittleEndian.Uint32(code)>>16 == 0x3c4c
}

// conditionPPC64 follows a BC: a bit of one of eight fields of flags, and whether it must be set.
func conditionPPC64(t *symbolic.Trace, code []byte) symbolic.Condition {
	word := binary.LittleEndian.Uint32(code)
	bo, bi := word>>21&31, word>>16&31
	if bo&0b10100 != 0b00100 {
		return symbolic.Always // also counts
	}
	t.Branch = t.Fields[bi>>2]
	c := [4]symbolic.Condition{symbolic.Less, symbolic.Greater, symbolic.Equal, symbolic.Always}[bi&3]
	if t.Branch.Unsigned {
		c = c.UnsignedOf()
	}
	if bo&0b01000 == 0 {
		c = c.Opposite()
	}
	return c
}

// bitsPPC64 carries out rotations with masks (section 3.3.14) and moves that are written as OR.
func bitsPPC64(t *symbolic.Trace, op *operation, _ effect) symbolic.Value {
	n := func(i int) uint8 { return uint8(op.list[i].n) }
	reg := func(i int) symbolic.Value { return t.Regs[op.list[i].reg] }
	args := op.args()
	if len(args) < 3 || args[1].kind != registerOperand {
		return t.Unknown()
	}
	switch {
	case op.name == "or" && args[1].reg == args[2].reg && args[2].kind == registerOperand:
		return reg(1)
	case op.name == "ori" && args[2].n == 0:
		return reg(1)
	case op.name == "rldicr" && len(args) == 4 && n(3) == 63-n(2): // SLDI
		return t.Plus(symbolic.Constant(0), reg(1), 1<<n(2))
	case op.name == "rldicl" && len(args) == 4 && n(2) == 0: // CLRLDI
		return t.Low(reg(1), 64-n(3))
	case op.name == "rldicl" && len(args) == 4 && n(3) == 64-n(2): // SRDI
		return t.ShiftRight(reg(1), n(3), 64)
	case op.name == "rldicl" && len(args) == 4:
		return t.UpTo(symbolic.Mask(64 - n(3)))
	case op.name == "rldic" && len(args) == 4 && n(2)+n(3) < 64:
		return t.Plus(symbolic.Constant(0), t.Low(reg(1), 64-n(2)-n(3)), 1<<n(2))
	case op.name == "rlwinm" && len(args) == 5 && n(3) <= n(4):
		switch {
		case n(2) == 31-n(4): // bits shifted to the left
			return t.Plus(symbolic.Constant(0), t.Low(reg(1), 32-n(3)-n(2)), 1<<n(2))
		case n(4) == 31:
			return t.UpTo(symbolic.Mask(32 - n(3)))
		}
	}
	return t.Unknown()
}

func leadsPPC64(_ *operations, t *symbolic.Trace, code []byte, _ uint64) symbolic.Value {
	if word := binary.LittleEndian.Uint32(code); word&0xfe8007fe != 0x4e800420 {
		return t.Unknown()
	}
	return t.Far
}
