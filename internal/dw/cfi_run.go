package dw

import (
	"maps"

	"github.com/bpfprologue/bpfprologue/internal/bin"
)

// A cfaOp is a call frame instruction (DWARF 5, table 7.29). The first three have an
// operand in their lower 6 bits.
type cfaOp uint8

const (
	cfaAdvanceLoc cfaOp = 0x40
	cfaOffset     cfaOp = 0x80
	cfaRestore    cfaOp = 0xc0
	cfaPrimary    cfaOp = 0xc0 // the bits that tell these three

	cfaNop                  cfaOp = 0x00
	cfaSetLoc               cfaOp = 0x01
	cfaAdvanceLoc1          cfaOp = 0x02
	cfaAdvanceLoc2          cfaOp = 0x03
	cfaAdvanceLoc4          cfaOp = 0x04
	cfaOffsetExtended       cfaOp = 0x05
	cfaRestoreExtended      cfaOp = 0x06
	cfaUndefined            cfaOp = 0x07
	cfaSameValue            cfaOp = 0x08
	cfaRegister             cfaOp = 0x09
	cfaRememberState        cfaOp = 0x0a
	cfaRestoreState         cfaOp = 0x0b
	cfaDefCFA               cfaOp = 0x0c
	cfaDefCFARegister       cfaOp = 0x0d
	cfaDefCFAOffset         cfaOp = 0x0e
	cfaDefCFAExpression     cfaOp = 0x0f
	cfaExpression           cfaOp = 0x10
	cfaOffsetExtendedSF     cfaOp = 0x11
	cfaDefCFASF             cfaOp = 0x12
	cfaDefCFAOffsetSF       cfaOp = 0x13
	cfaValOffset            cfaOp = 0x14
	cfaValOffsetSF          cfaOp = 0x15
	cfaValExpression        cfaOp = 0x16
	cfaNegateRAState        cfaOp = 0x2d // DW_CFA_AARCH64_negate_ra_state, DW_CFA_GNU_window_save
	cfaGNUArgsSize          cfaOp = 0x2e
	cfaGNUNegOffsetExtended cfaOp = 0x2f
)

// cfaIgnored lists the instructions that say where registers were saved, with the
// kinds of the operands to skip: u for ULEB128, s for SLEB128, b for a block.
var cfaIgnored = map[cfaOp]string{
	cfaOffset: "u", cfaRestore: "", cfaNop: "",
	cfaOffsetExtended: "uu", cfaValOffset: "uu", cfaRegister: "uu", cfaGNUNegOffsetExtended: "uu",
	cfaOffsetExtendedSF: "us", cfaValOffsetSF: "us",
	cfaRestoreExtended: "u", cfaUndefined: "u", cfaSameValue: "u", cfaGNUArgsSize: "u",
	cfaExpression: "ub", cfaValExpression: "ub",
	cfaNegateRAState: "",
}

// cfaSkips is cfaIgnored indexed by instruction; ok marks those that are in it.
var cfaSkips = func() (out [256]struct {
	ok       bool
	operands string
}) {
	for op, operands := range cfaIgnored {
		out[op].ok, out[op].operands = true, operands
	}
	return out
}()

// maxFrameStates bounds the stack of DW_CFA_remember_state.
const maxFrameStates = 256

// frameRun runs the instructions of one frame description.
type frameRun struct {
	d     *Data
	f     *FDE
	b     bin.Reader
	rule  CFARule
	loc   uint64 // the address that the rule holds from
	stack []frameState
	// saved is nil unless where registers are saved is asked for.
	saved *savedRegisters
}

// frameState is what DW_CFA_remember_state remembers.
type frameState struct {
	rule   CFARule
	rules  map[uint64]RegisterRule
	signed bool
}

// runFrame runs the instructions of a frame description up to an address and
// returns the rule for the canonical frame address. each, unless nil, is called
// with the rule of each stretch of code on the way.
func (d *Data) runFrame(f *FDE, addr uint64, each func(CFARule)) (CFARule, error) {
	return d.runSaving(f, addr, nil, each)
}

// runSaving is runFrame, and notes in saved, unless that is nil, where registers are saved.
func (d *Data) runSaving(f *FDE, addr uint64, saved *savedRegisters, each func(CFARule)) (CFARule, error) {
	r := frameRun{d: d, f: f, loc: f.lo, saved: saved, b: bin.Reader{D: f.cie.instr, BigEndian: d.BigEndian}}
	// The CIE's instructions hold from the start, even if they advance the address.
	for r.b.P < len(r.b.D) {
		if _, err := r.step(); err != nil {
			return r.rule, err
		}
	}
	if r.saved != nil {
		r.saved.first, r.saved.firstCFA = maps.Clone(r.saved.rules), r.rule
	}
	r.loc = f.lo
	r.b = bin.Reader{D: f.instr, BigEndian: d.BigEndian}
	for r.b.P < len(r.b.D) {
		before := r.rule
		next, err := r.step()
		if err != nil {
			return r.rule, err
		}
		if next == r.loc {
			continue
		}
		if each != nil {
			each(before)
		}
		if r.loc = next; next > addr {
			return r.rule, nil
		}
	}
	if each != nil {
		each(r.rule)
	}
	return r.rule, nil
}

func (r *frameRun) errorf(format string, args ...any) error {
	return r.d.Errorf(r.f.cie.sec, r.f.off, format, args...)
}

// step runs one instruction. It returns the address from which the rule then holds.
func (r *frameRun) step() (loc uint64, err error) {
	b := &r.b
	op := cfaOp(b.U8())
	delta := uint64(0)
	if primary := op & cfaPrimary; primary != 0 {
		delta = uint64(op &^ cfaPrimary)
		op = primary
	}
	loc = r.loc
	switch op {
	case cfaAdvanceLoc:
	case cfaAdvanceLoc1:
		delta = uint64(b.U8())
	case cfaAdvanceLoc2:
		delta = uint64(b.U16())
	case cfaAdvanceLoc4:
		delta = uint64(b.U32())
	case cfaSetLoc:
		if r.f.cie.fdeEnc != 0 {
			return loc, r.errorf("unsupported DW_CFA_set_loc")
		}
		loc = b.Uint(r.f.cie.addrSize)
	case cfaRememberState:
		if len(r.stack) >= maxFrameStates {
			return loc, r.errorf("more than %d remembered states", maxFrameStates)
		}
		now := frameState{rule: r.rule}
		if r.saved != nil {
			now.rules, now.signed = maps.Clone(r.saved.rules), r.saved.signed
		}
		r.stack = append(r.stack, now)
	case cfaRestoreState:
		if len(r.stack) == 0 {
			return loc, r.errorf("DW_CFA_restore_state without a remembered state")
		}
		was := r.stack[len(r.stack)-1]
		if r.rule = was.rule; r.saved != nil {
			r.saved.rules, r.saved.signed = was.rules, was.signed
		}
		r.stack = r.stack[:len(r.stack)-1]
	case cfaDefCFA:
		r.rule = CFARule{Reg: b.ULEB(), Off: int64(b.ULEB()), defined: true}
	case cfaDefCFASF:
		r.rule = CFARule{Reg: b.ULEB(), defined: true}
		r.rule.Off = b.SLEB() * r.f.cie.dataAlign
	case cfaDefCFAExpression:
		r.rule = CFARule{Expr: b.Bytes(b.ULEB()), defined: true}
	case cfaDefCFARegister, cfaDefCFAOffset, cfaDefCFAOffsetSF:
		if op == cfaDefCFARegister && !r.rule.defined {
			// GNU as begins frames of MIPS so, and means the offset 0 (mips_cfi_frame_initial_instructions
			// in gas/config/tc-mips.c).
			r.rule.defined = true
		}
		if !r.rule.defined || r.rule.Expr != nil {
			return loc, r.errorf("call frame instruction %#02x without a register rule to change", uint8(op))
		}
		switch op {
		case cfaDefCFARegister:
			r.rule.Reg = b.ULEB()
		case cfaDefCFAOffset:
			r.rule.Off = int64(b.ULEB())
		case cfaDefCFAOffsetSF:
			r.rule.Off = b.SLEB() * r.f.cie.dataAlign
		}
	default:
		skip := &cfaSkips[op]
		if !skip.ok {
			return loc, r.errorf("unknown call frame instruction %#02x", uint8(op))
		}
		if r.saved != nil {
			r.save(op, delta)
			delta = 0
			break
		}
		for _, kind := range skip.operands {
			switch kind {
			case 'u':
				b.ULEB()
			case 's':
				b.SLEB()
			case 'b':
				b.Skip(b.ULEB())
			}
		}
		delta = 0
	}
	if b.Bad {
		return loc, r.errorf("a call frame instruction is cut short")
	}
	return loc + delta*r.f.cie.codeAlign, nil
}
