package insn

import (
	"golang.org/x/arch/x86/x86asm"
)

// Registers is a set of registers by their DWARF numbers, which are less than 64.
type Registers uint64

// Has reports whether a register is in the set.
func (r Registers) Has(number uint64) bool { return number < 64 && r>>number&1 != 0 }

// Code is machine code at an address.
type Code struct {
	Addr  uint64
	Bytes []byte
}

// Loop is what LoopUpdates looks for.
type Loop struct {
	Body   []Code
	Around uint64 // an address in the body
	Lowest uint64 // where the function begins: a branch to less leaves it
	Lo, Hi uint64 // which instructions may update a register
}

// LoopUpdates returns the general registers that a body computes from themselves, as "n--" does,
// in loops around an address: those whose last instruction is in the body, at the address or
// after it, and branches to the address or before it. Loops that the body does not close, such
// as one in which it is inlined, do not count.
func (a *Arch) LoopUpdates(l *Loop) (updated Registers) {
	first, last := l.Around, uint64(0)
	each := func(visit func(at uint64, code []byte, in Insn)) {
		for _, part := range l.Body {
			for at := 0; at < len(part.Bytes); {
				in, ok := a.Next(part.Bytes[at:])
				if !ok || in.Size <= 0 {
					break
				}
				visit(part.Addr+uint64(at), part.Bytes[at:], in)
				at += in.Size
			}
		}
	}
	each(func(at uint64, _ []byte, in Insn) {
		if to := at + uint64(in.Target); in.Branches && at >= l.Around && to <= l.Around && to >= l.Lowest {
			first, last = min(first, to), max(last, at)
		}
	})
	if last == 0 {
		return 0
	}
	each(func(at uint64, code []byte, _ Insn) {
		if at >= max(first, l.Lo) && at <= last && at < l.Hi {
			updated |= a.updates(code)
		}
	})
	return updated
}

// x86Updates has the operations that compute their first operand from what it was. XOR and SUB
// of a register and itself clear it.
var x86Updates = x86Set(
	x86asm.ADD, x86asm.ADC, x86asm.SUB, x86asm.SBB, x86asm.INC, x86asm.DEC, x86asm.NEG, x86asm.NOT, x86asm.XADD,
	x86asm.AND, x86asm.OR, x86asm.XOR, x86asm.SHL, x86asm.SHR, x86asm.SAR, x86asm.ROL, x86asm.ROR, x86asm.SHLD, x86asm.SHRD,
	x86asm.BSWAP, x86asm.BTC, x86asm.BTR, x86asm.BTS,
)

func (m *x86) updates(code []byte) Registers {
	if m.vexSize(code) > 0 {
		return 0
	}
	inst, err := m.decode(code)
	if err != nil || inst.Op == 0 {
		return 0
	}
	r, is := inst.Args[0].(x86asm.Reg)
	if !is || m.number[r] < 0 {
		return 0
	}
	n := m.number[r]
	same := func(r x86asm.Reg) bool { return r != 0 && m.number[r] == n }
	is = x86Updates[inst.Op] && !sameX86(inst)
	switch inst.Op {
	case x86asm.LEA:
		at := inst.Args[1].(x86asm.Mem)
		is = same(at.Base) || same(at.Index)
	case x86asm.IMUL:
		from := inst.Args[1]
		if inst.Args[2] == nil {
			from = inst.Args[0] // with two operands
		}
		r, reg := from.(x86asm.Reg)
		is = inst.Args[1] != nil && reg && same(r)
	}
	if !is {
		return 0
	}
	return 1 << n
}
