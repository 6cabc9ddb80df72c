package oracle

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/arch/x86/x86asm"
)

// ErrWitness is wrapped by Witness's error if an instruction on the way is none that it carries out.
var ErrWitness = errors.New("not carried out")

// Witness runs amd64 code from one address on, with a machine's registers and memory, up to the instruction at another one. It returns the address
// that this accesses, or, if it is a call, what a register holds. ok is false if memory that it depends on cannot be read. It is a second opinion
// on what instructions say, with another decoder, and numbers in the place of symbols.
func (m *Machine) Witness(code func(addr, n uint64) ([]byte, error), from, to, register uint64) (v uint64, ok bool, err error) {
	x := emulation{m: m, regs: make(map[int]number), stored: make(map[uint64]byte)}
	for n := range x86Registers {
		v, ok := m.Reg(uint64(x86Registers[n]))
		x.regs[n] = number{v, ok}
	}
	at := from
	for range 32 {
		b, err := code(at, 15)
		if err != nil {
			if b, err = code(at, 4); err != nil {
				return 0, false, err
			}
		}
		inst, err := x86asm.Decode(b, 64)
		if err != nil {
			return 0, false, fmt.Errorf("%#x: %w: %w", at, ErrWitness, err)
		}
		next := at + uint64(inst.Len)
		if at == to {
			return x.witness(&inst, next, register)
		}
		if rel, is := inst.Args[0].(x86asm.Rel); is {
			if inst.Op != x86asm.JMP {
				return 0, false, fmt.Errorf("%#x: %w: %v", at, ErrWitness, inst.Op)
			}
			at = next + uint64(int64(rel))
			continue
		}
		if err := x.step(&inst, next); err != nil {
			return 0, false, fmt.Errorf("%#x: %w", at, err)
		}
		at = next
	}
	return 0, false, fmt.Errorf("%#x: %w: too far", to, ErrWitness)
}

// Called returns the address of the function that an instruction of amd64 code calls.
func (m *Machine) Called(code func(addr, n uint64) ([]byte, error), at uint64) (v uint64, ok bool, err error) {
	b, err := code(at, 5)
	if err != nil {
		return 0, false, err
	}
	inst, err := x86asm.Decode(b, 64)
	if err != nil {
		return 0, false, fmt.Errorf("%#x: %w: %w", at, ErrWitness, err)
	}
	rel, is := inst.Args[0].(x86asm.Rel)
	if inst.Op != x86asm.CALL || !is {
		return 0, false, fmt.Errorf("%#x: %v is no call", at, inst)
	}
	return at + uint64(inst.Len) + uint64(int64(rel)) + m.Bias, true, nil
}

// x86Registers are the DWARF numbers of registers by their codes.
var x86Registers = [16]int{0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15}

// number is a number, if it is known.
type number struct {
	v  uint64
	ok bool
}

type emulation struct {
	m      *Machine
	regs   map[int]number // by code
	stored map[uint64]byte
}

// codeOf returns a register's code, and how many bytes it has; high registers of 8 bits have none.
func codeOf(r x86asm.Reg) (code, bytes int, ok bool) {
	switch {
	case r >= x86asm.RAX && r <= x86asm.R15:
		return int(r - x86asm.RAX), 8, true
	case r >= x86asm.EAX && r <= x86asm.R15L:
		return int(r - x86asm.EAX), 4, true
	case r >= x86asm.AX && r <= x86asm.R15W:
		return int(r - x86asm.AX), 2, true
	case r >= x86asm.AL && r <= x86asm.BL:
		return int(r - x86asm.AL), 1, true
	case r >= x86asm.SPB && r <= x86asm.R15B:
		return int(r-x86asm.SPB) + 4, 1, true
	}
	return 0, 0, false
}

func (x *emulation) witness(inst *x86asm.Inst, next, register uint64) (uint64, bool, error) {
	if inst.Op == x86asm.CALL {
		for code, n := range x86Registers {
			if uint64(n) == register {
				return x.regs[code].v, x.regs[code].ok, nil
			}
		}
	}
	for _, a := range inst.Args {
		if mem, is := a.(x86asm.Mem); is {
			n := x.address(mem, next)
			return n.v, n.ok, nil
		}
	}
	return 0, false, fmt.Errorf("%w: %v accesses nothing", ErrWitness, inst)
}

// lowest is the least number in instructions that is no address of a kernel, which moves.
const lowest = -1 << 20

func (x *emulation) address(a x86asm.Mem, next uint64) number {
	a.Disp = int64(int32(a.Disp)) // the decoder leaves out the sign of some
	out := number{uint64(a.Disp), a.Segment == 0}
	if a.Base == x86asm.RIP {
		out.v += next + x.m.Bias
	} else if a.Disp < lowest {
		out.v += x.m.Bias
	}
	if a.Base != 0 && a.Base != x86asm.RIP {
		out = x.plus(out, a.Base, 1)
	}
	if a.Index != 0 {
		out = x.plus(out, a.Index, uint64(a.Scale))
	}
	return out
}

func (x *emulation) plus(n number, r x86asm.Reg, scale uint64) number {
	code, bytes, ok := codeOf(r)
	reg := x.regs[code]
	return number{n.v + reg.v*scale, n.ok && reg.ok && ok && bytes == 8}
}

// read returns bytes of memory.
func (x *emulation) read(at number, bytes int) number {
	var b [8]byte
	if !at.ok || !x.m.Mem(at.v, b[:bytes]) {
		return number{}
	}
	for i := range bytes {
		if s, is := x.stored[at.v+uint64(i)]; is {
			b[i] = s
		}
	}
	return number{binary.LittleEndian.Uint64(b[:]), true}
}

func low(v uint64, bytes int) uint64 {
	if bytes >= 8 {
		return v
	}
	return v & (1<<(8*bytes) - 1)
}

// value returns an operand of so many bytes.
func (x *emulation) value(a x86asm.Arg, bytes int, next uint64) number {
	switch a := a.(type) {
	case x86asm.Imm:
		n := number{uint64(a), true}
		if bytes == 8 && int64(a) < lowest {
			n.v += x.m.Bias
		}
		return n
	case x86asm.Reg:
		code, _, ok := codeOf(a)
		n := x.regs[code]
		return number{low(n.v, bytes), n.ok && ok}
	case x86asm.Mem:
		return x.read(x.address(a, next), bytes)
	}
	return number{}
}

// sizeOf returns how many bytes an operand has.
func sizeOf(inst *x86asm.Inst, a x86asm.Arg) int {
	switch a := a.(type) {
	case x86asm.Reg:
		_, bytes, _ := codeOf(a)
		return bytes
	case x86asm.Mem:
		return inst.MemBytes
	}
	return 8
}

// step carries out an instruction that goes on at the next one.
func (x *emulation) step(inst *x86asm.Inst, next uint64) error {
	size := sizeOf(inst, inst.Args[0])
	a := func(i int) number { return x.value(inst.Args[i], size, next) }
	var n number
	switch inst.Op {
	case x86asm.NOP, x86asm.CMP, x86asm.TEST, x86asm.BT, x86asm.PAUSE, x86asm.LFENCE, x86asm.MFENCE, x86asm.SFENCE, x86asm.CLC, x86asm.CLD:
		return nil
	case x86asm.MOV:
		n = a(1)
	case x86asm.LEA:
		if mem, is := inst.Args[1].(x86asm.Mem); is {
			n = x.address(mem, next)
		}
	case x86asm.MOVZX:
		n = x.value(inst.Args[1], sizeOf(inst, inst.Args[1]), next)
	case x86asm.MOVSX, x86asm.MOVSXD:
		bytes := sizeOf(inst, inst.Args[1])
		n = x.value(inst.Args[1], bytes, next)
		n.v = uint64(int64(n.v<<(64-8*bytes)) >> (64 - 8*bytes))
	case x86asm.ADD, x86asm.SUB, x86asm.AND, x86asm.OR, x86asm.XOR:
		p, q := a(0), a(1)
		n.ok = p.ok && q.ok
		switch inst.Op {
		case x86asm.ADD:
			n.v = p.v + q.v
		case x86asm.SUB:
			n.v = p.v - q.v
		case x86asm.AND:
			n.v = p.v & q.v
		case x86asm.OR:
			n.v = p.v | q.v
		case x86asm.XOR:
			if n.v = p.v ^ q.v; inst.Args[0] == inst.Args[1] {
				n = number{0, true}
			}
		}
	case x86asm.SHL, x86asm.SHR:
		p, by := a(0), x.value(inst.Args[1], 1, next)
		n.ok = p.ok && by.ok
		if by.v &= 31; size == 8 {
			by = x.value(inst.Args[1], 1, next)
			by.v &= 63
		}
		if n.v = p.v << by.v; inst.Op == x86asm.SHR {
			n.v = p.v >> by.v
		}
	case x86asm.INC, x86asm.DEC:
		if n = a(0); inst.Op == x86asm.INC {
			n.v++
		} else {
			n.v--
		}
	case x86asm.NEG, x86asm.NOT, x86asm.SAR, x86asm.BTS, x86asm.BTR, x86asm.BTC, x86asm.ROL, x86asm.ROR, x86asm.SETE, x86asm.SETNE, x86asm.ADC, x86asm.SBB, x86asm.IMUL, x86asm.POPCNT:
		if inst.Op == x86asm.IMUL && inst.Args[1] == nil {
			return fmt.Errorf("%w: %v", ErrWitness, inst.Op)
		}
	default:
		return fmt.Errorf("%w: %v", ErrWitness, inst.Op)
	}
	x.set(inst, inst.Args[0], size, n, next)
	return nil
}

// set writes an operand.
func (x *emulation) set(inst *x86asm.Inst, a x86asm.Arg, size int, n number, next uint64) {
	switch a := a.(type) {
	case x86asm.Reg:
		code, bytes, ok := codeOf(a)
		if !ok {
			for i := range 4 { // AH to BH
				x.regs[i] = number{}
			}
			return
		}
		if n.v = low(n.v, bytes); bytes < 4 {
			was := x.regs[code]
			n = number{was.v&^low(^uint64(0), bytes) | n.v, was.ok && n.ok}
		}
		x.regs[code] = n
	case x86asm.Mem:
		at := x.address(a, next)
		for i := range size {
			if at.ok {
				x.stored[at.v+uint64(i)] = byte(n.v >> (8 * i))
			}
		}
	}
}
