package insn

import (
	"sync"

	"golang.org/x/arch/s390x/s390xasm"

	"github.com/bpfprologue/bpfprologue/internal/symbolic"
)

// What functions do not preserve: ELF Application Binary Interface, s390x Supplement 1.6, table 1.4. The frame is
// at r15 and r11.
var s390Operations = &operations{
	named: decodeS390, effects: s390Effects, bits: 64, frame: 1<<15 | 1<<11, pointer: 11,
	lost: 63 | 1<<14, results: 1 << 2,
	condition: conditionS390, bitsOf: bitsS390, leads: leadsS390,
	global: func(op *operation, addr uint64) (uint64, bool) {
		return addr + uint64(op.list[1].n), op.name == "larl"
	},
}

// s390Effects is chapter 7 of the Principles of Operation. Operations on 32 bits leave the upper half of a
// register as it is, where their names do not begin with LG or LL.
var s390Effects = effectsOf([]effectGroup{
	{effect{verb: moves}, "lgr lghi lgfi ltgr llihh llihl llilh llill llilf llihf"},
	{effect{verb: moves, bits: 32, to: 32, flags: keepsUpper}, "lr lhi ltr"},
	{effect{verb: extends, bits: 8}, "llgcr"},
	{effect{verb: extends, bits: 16}, "llghr"},
	{effect{verb: extends, bits: 32}, "llgfr"},
	{effect{verb: extends, bits: 31}, "llgtr"},
	{effect{verb: extends, bits: 8, flags: signedBits}, "lgbr"},
	{effect{verb: extends, bits: 16, flags: signedBits}, "lghr"},
	{effect{verb: extends, bits: 32, flags: signedBits}, "lgfr ltgfr"},
	{effect{verb: extends, bits: 8, to: 32, flags: keepsUpper}, "llcr"},
	{effect{verb: extends, bits: 16, to: 32, flags: keepsUpper}, "llhr"},
	{effect{verb: extends, bits: 8, to: 32, flags: keepsUpper | signedBits}, "lbr"},
	{effect{verb: extends, bits: 16, to: 32, flags: keepsUpper | signedBits}, "lhr"},
	{effect{verb: addresses}, "la lay larl"},
	{effect{verb: adds, flags: firstToo}, "agr aghi agfi ag algr alg algfi"},
	{effect{verb: adds}, "agrk aghik algrk"},
	{effect{verb: adds, bits: 32, to: 32, flags: firstToo | keepsUpper}, "ar ahi afi a ay alr al aly alfi"},
	{effect{verb: adds, bits: 32, to: 32, flags: keepsUpper}, "ark ahik alrk"},
	{effect{verb: subtracts, flags: firstToo}, "sgr sg slgr slg"},
	{effect{verb: subtracts}, "sgrk slgrk"},
	{effect{verb: subtracts, bits: 32, to: 32, flags: firstToo | keepsUpper}, "sr s sy slr sl sly"},
	{effect{verb: subtracts, bits: 32, to: 32, flags: keepsUpper}, "srk slrk"},
	{effect{verb: masks, bits: 32, to: 32, flags: firstToo | keepsUpper}, "nilf"},
	{effect{verb: shiftsLeft}, "sllg"},
	{effect{verb: shiftsRight}, "srlg"},
	{effect{verb: shiftsLeft, bits: 32, to: 32, flags: firstToo | keepsUpper}, "sll"},
	{effect{verb: shiftsRight, bits: 32, to: 32, flags: firstToo | keepsUpper}, "srl"},
	{effect{verb: selects}, "risbg risbgn risbgz"},
	{effect{verb: computes, flags: firstToo}, `agfr agf ah ahy algfr algf alc alcr alcgr alcg sgfr sgf sh shy slgfr slgf slfi slgfi slb slbr slbgr slbg
		msr msgr msgfr ms msy msg msgf msfi msgfi mhi mghi mh mhy nr ngr n ng ny nihf nihh nihl nilh nill or ogr o og oy oihf oihh oihl oilf oilh
		oill xr xgr x xg xy xilf xihf sla sra ic icy iihf iihh iihl iilf iilh iill icm icmy icmh rosbg rxsbg rnsbg locr locgr loc locg lochi locghi`},
	{effect{verb: computes}, `slag srag rll rllg sllk srlk srak lcr lcgr lcgfr lpr lpgr lpgfr lnr lngr lngfr ngrk nrk ogrk ork xgrk xrk
		lrvr lrvgr ipm ear epsw popcnt`},
	{effect{verb: compares, bits: 32, flags: signedBits}, "cr c cy chi cfi crl"},
	{effect{verb: compares, bits: 64, flags: signedBits}, "cgr cg cghi cgfi"},
	{effect{verb: compares, bits: 32}, "clr cl cly clfi"},
	{effect{verb: compares, bits: 64}, "clgr clg clgfi"},
	{effect{verb: compares, bits: 32, flags: signedBits}, "chsi"},
	{effect{verb: compares, bits: 64, flags: signedBits}, "cghsi"},
	{effect{verb: compares, bits: 16}, "clhhsi"},
	{effect{verb: compares, bits: 32}, "clfhsi"},
	{effect{verb: compares, bits: 64}, "clghsi"},
	{effect{verb: compares, bits: 8}, "cli cliy"},
	{effect{verb: nothing}, `tm tmy tmll tmlh tmhl tmhh clc clm clmy clmh ch chy chhsi cgf cgfr clgf clgfr cgh chrl cghrl clhrl clghrl clrl clgrl
		cgfrl clgfrl cgrl pfd pfdrl spm sar stfpc cgxr`},
	{effect{verb: loads, bits: 64}, "lg lgrl ltg"},
	{effect{verb: loads, bits: 32}, "llgf llgfrl"},
	{effect{verb: loads, bits: 31}, "llgt"},
	{effect{verb: loads, bits: 16}, "llgh llghrl"},
	{effect{verb: loads, bits: 8}, "llgc"},
	{effect{verb: loads, bits: 32, flags: signedBits}, "lgf lgfrl ltgf"},
	{effect{verb: loads, bits: 16, flags: signedBits}, "lgh lghrl"},
	{effect{verb: loads, bits: 8, flags: signedBits}, "lgb"},
	{effect{verb: loads, bits: 32, to: 32, flags: keepsUpper}, "l ly lrl lt"},
	{effect{verb: loads, bits: 16, to: 32, flags: keepsUpper}, "llh llhrl"},
	{effect{verb: loads, bits: 8, to: 32, flags: keepsUpper}, "llc"},
	{effect{verb: loads, bits: 16, to: 32, flags: keepsUpper | signedBits}, "lh lhy lhrl"},
	{effect{verb: loads, bits: 8, to: 32, flags: keepsUpper | signedBits}, "lb"},
	{effect{verb: loads, bits: 64, flags: elsewhere}, "ld ldy"},
	{effect{verb: loads, bits: 32, flags: elsewhere}, "le ley"},
	{effect{verb: stores, bits: 8}, "stc stcy mvi mviy"},
	{effect{verb: stores, bits: 16}, "sth sthy mvhhi"},
	{effect{verb: stores, bits: 32}, "st sty mvhi"},
	{effect{verb: stores, bits: 64}, "stg mvghi"},
	{effect{verb: stores, bits: 32, flags: elsewhere}, "ste stey"},
	{effect{verb: stores, bits: 64, flags: elsewhere}, "std stdy"},
	{effect{verb: stores}, "mvc"},
	{effect{verb: storesMany}, "stmg"},
	{effect{verb: loadsMany}, "lmg"},
})

// s390Decoding serializes s390xasm.Decode.
var s390Decoding sync.Mutex

func decodeS390(code []byte) (op operation, ok bool) {
	s390Decoding.Lock()
	inst, err := s390xasm.Decode(code)
	s390Decoding.Unlock()
	if err != nil || inst.Op == 0 {
		return op, false
	}
	op.name = inst.Op.String()
	memory := -1 // the operand that is not complete
	for _, a := range inst.Args {
		x := operand{reg: -1, plus: -1}
		switch a := a.(type) {
		case nil:
			continue
		case s390xasm.Reg:
			if a <= s390xasm.R15 {
				x.kind, x.reg = registerOperand, int8(a)
			}
		case s390xasm.Disp12:
			memory, x.kind, x.n = int(op.count), memoryOperand, int64(a)
		case s390xasm.Disp20:
			memory, x.kind, x.n = int(op.count), memoryOperand, int64(int32(a<<12)>>12)
		case s390xasm.Index:
			if memory >= 0 && a != 0 {
				op.list[memory].plus = int8(a)
			}
			continue
		case s390xasm.Len:
			if memory >= 0 {
				op.list[memory].size = int32(a) + 1
			}
			continue
		case s390xasm.Base: // of the memory before it
			if memory >= 0 && a != 0 {
				op.list[memory].reg = int8(a)
			}
			memory = -1
			continue
		case s390xasm.Imm:
			x.kind, x.n = numberOperand, int64(a)
		case s390xasm.Sign8:
			x.kind, x.n = numberOperand, int64(a)
		case s390xasm.Sign16:
			x.kind, x.n = numberOperand, int64(a)
		case s390xasm.Sign32:
			x.kind, x.n = numberOperand, int64(a)
		case s390xasm.RegIm32:
			x.kind, x.n = numberOperand, 2*int64(int32(a))
		}
		op.add(x)
	}
	if int(op.count) == 0 {
		return op, true
	}
	e := s390Effects()[op.name]
	switch e.verb {
	case computes, adds, subtracts, masks, selects, unknownVerb:
		op.flags = true
	case shiftsLeft, shiftsRight:
		// The "address" is how far it is shifted.
		if last := &op.list[int(op.count)-1]; last.kind == memoryOperand && last.reg < 0 {
			last.kind = numberOperand
		}
	case stores:
		if int(op.count) == 2 && op.list[0].size > 0 && op.list[1].kind == memoryOperand {
			op.list[1].size = op.list[0].size // MVC
		}
	case loads:
		if int(op.count) == 2 && op.list[1].kind == numberOperand {
			op.list[1].kind = otherOperand // relative to the instruction
		}
	}
	switch op.name {
	case "ltr", "ltgr", "ltgfr", "lt", "ltg", "ltgf", "tm", "tmy", "tmll", "tmlh", "tmhl", "tmhh", "clc", "clm":
		op.flags = true
	case "llilh", "llihl", "llihh":
		op.list[int(op.count)-1].n <<= map[string]uint{"llilh": 16, "llihl": 32, "llihh": 48}[op.name]
	case "llihf":
		op.list[int(op.count)-1].n <<= 32
	}
	return op, true
}

// conditionS390 follows a branch on the condition code, or one that compares two registers, or one and a
// number, or that counts in one.
func conditionS390(t *symbolic.Trace, code []byte) symbolic.Condition {
	word, _, _ := wordS390(code)
	r1, low := t.Regs[word>>36&15], word>>32&15
	var m uint64
	switch op := word >> 40; {
	case (op == 0xa7 || op == 0xc0) && low == 4:
		t.Branch, m = t.Flags, word>>36&15
	case op != 0xec:
		if op == 0x84 || op == 0x85 || (op == 0xa7 || op == 0xcc) && low >= 6 {
			t.Lose(1 << (word >> 36 & 15)) // it counts: BRXH, BRXLE, BRCT, BRCTG, BRCTH
		}
		return symbolic.Always
	default:
		last := word & 0xff
		if last&^1 == 0x44 { // BRXHG, BRXLG
			t.Lose(1 << (word >> 36 & 15))
			return symbolic.Always
		}
		bits := uint8(32)
		if last == 0x64 || last == 0x65 || last == 0x7c || last == 0x7d {
			bits = 64
		}
		b := t.Regs[low]
		m = word >> 12 & 15
		switch {
		case last >= 0x7c && last <= 0x7f:
			m = low
			if last&1 == 0 {
				b = symbolic.Constant(uint64(int64(int8(word >> 8))))
			} else {
				b = symbolic.Constant(word >> 8 & 0xff)
			}
		case last != 0x64 && last != 0x65 && last != 0x76 && last != 0x77:
			return symbolic.Always
		}
		t.Branch = t.Compared(r1, b, bits, last&1 != 0)
	}
	c := [8]symbolic.Condition{symbolic.Always, symbolic.Greater, symbolic.Less, symbolic.Different, symbolic.Equal, symbolic.NotLess, symbolic.NotGreater, symbolic.Always}[m>>1&7]
	if t.Branch.Unsigned {
		c = c.UnsignedOf()
	}
	return c
}

// bitsS390 is RISBG with zeros elsewhere: bits i3 to i4 of the register that is rotated to the left.
func bitsS390(t *symbolic.Trace, op *operation, _ effect) symbolic.Value {
	if int(op.count) < 5 || op.list[1].kind != registerOperand || op.list[3].n&0x80 == 0 && op.name != "risbgz" {
		return t.Unknown()
	}
	from, to, by := uint8(op.list[2].n&63), uint8(op.list[3].n&63), uint8(op.list[4].n&63)
	v := t.Regs[op.list[1].reg]
	switch {
	case from > to:
	case by == 63-to: // bits that are shifted to the left
		return t.Plus(symbolic.Constant(0), t.Low(v, to-from+1), 1<<by)
	case by == 0 && to == 63:
		return t.Low(v, 64-from)
	case to == 63:
		return t.UpTo(symbolic.Mask(64 - from))
	}
	return t.Unknown()
}

// leadsS390 is BR, or B to an address.
func leadsS390(_ *operations, t *symbolic.Trace, code []byte, _ uint64) symbolic.Value {
	word, size, _ := wordS390(code)
	if size == 2 {
		return t.Regs[word>>32&15]
	}
	if word>>36 != 0x47f {
		return t.Unknown()
	}
	v := symbolic.Constant(word >> 16 & 0xfff)
	for _, r := range [...]uint64{word >> 32 & 15, word >> 28 & 15} {
		if r != 0 {
			v = t.Plus(v, t.Regs[r], 1)
		}
	}
	return v
}
