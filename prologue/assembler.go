package prologue

import (
	"math"

	"github.com/cilium/ebpf/asm"
)

// assembler collects instructions. Jumps are resolved to distances here, because
// the asm package's labels are names, which could meet a name of the program
// behind the prologue.
type assembler struct {
	insns   asm.Instructions
	at      []int // raw offset of each instruction; a 64-bit immediate takes two
	end     int   // raw offset of the next instruction
	addrs   []int
	comment string // of the next instruction
}

// label is a point further on that jumps lead to.
type label struct {
	from []int // indices of the jumps
}

func (a *assembler) add(ins asm.Instruction) {
	if a.comment != "" {
		ins = ins.WithSource(asm.Comment(a.comment))
		a.comment = ""
	}
	a.at = append(a.at, a.end)
	a.end += int(ins.Width())
	a.insns = append(a.insns, ins)
}

// bind sets the label to the next instruction.
func (a *assembler) bind(l *label) {
	for _, i := range l.from {
		a.insns[i].Offset = int16(a.end - a.at[i] - 1)
	}
}

// jump goes to the label without a condition.
func (a *assembler) jump(l *label) {
	l.from = append(l.from, len(a.insns))
	a.add(asm.Instruction{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Ja)})
}

// jumpImm goes to the label if dst compares with a number as op says.
func (a *assembler) jumpImm(op asm.JumpOp, dst asm.Register, k int32, l *label) {
	l.from = append(l.from, len(a.insns))
	a.add(asm.Instruction{OpCode: op.Op(asm.ImmSource), Dst: dst, Constant: int64(k)})
}

// jumpReg goes to the label if dst compares with src as op says.
func (a *assembler) jumpReg(op asm.JumpOp, dst, src asm.Register, l *label) {
	l.from = append(l.from, len(a.insns))
	a.add(asm.Instruction{OpCode: op.Op(asm.RegSource), Dst: dst, Src: src})
}

func (a *assembler) imm(op asm.ALUOp, dst asm.Register, k int32) { a.add(op.Imm(dst, k)) }
func (a *assembler) reg(op asm.ALUOp, dst, src asm.Register)     { a.add(op.Reg(dst, src)) }

// move copies a register, or does nothing when it is there already.
func (a *assembler) move(dst, src asm.Register) {
	if dst != src {
		a.reg(asm.Mov, dst, src)
	}
}

// constant sets a register in the fewest instructions.
func (a *assembler) constant(dst asm.Register, k uint64) {
	switch {
	case fitsImm(k):
		a.imm(asm.Mov, dst, int32(k))
	case k <= math.MaxUint32:
		a.add(asm.Mov.Imm32(dst, int32(uint32(k)))) // clears the upper half
	default:
		a.add(asm.LoadImm(dst, int64(k), asm.DWord))
	}
}

// address sets a register to a link-time address of the image. It takes a 64-bit
// immediate whatever the address is: what it becomes when moved is not known.
func (a *assembler) address(dst asm.Register, addr uint64) {
	a.addrs = append(a.addrs, len(a.insns))
	a.add(asm.LoadImm(dst, int64(addr), asm.DWord))
}

// zeroExtend clears all but the low size bytes.
func (a *assembler) zeroExtend(dst asm.Register, size int) {
	switch {
	case size >= 8:
	case size == 4:
		a.add(asm.Mov.Reg32(dst, dst))
	case size < 4:
		a.imm(asm.And, dst, 1<<(8*size)-1)
	default:
		a.imm(asm.LSh, dst, int32(64-8*size))
		a.imm(asm.RSh, dst, int32(64-8*size))
	}
}

// signExtend copies the sign of the low size bytes upwards. Moves that do so came
// with Linux 6.6; two shifts have always been there.
func (a *assembler) signExtend(dst asm.Register, size int) {
	if size < 8 {
		a.imm(asm.LSh, dst, int32(64-8*size))
		a.imm(asm.ArSh, dst, int32(64-8*size))
	}
}

// fitsImm reports whether a number is the sign extension of its low 32 bits, as
// the immediate of a 64-bit operation is.
func fitsImm(k uint64) bool { return uint64(int64(int32(k))) == k }

// memSize is the size of a load or store of 1, 2, 4 or 8 bytes.
func memSize(size int) asm.Size {
	switch size {
	case 1:
		return asm.Byte
	case 2:
		return asm.Half
	case 4:
		return asm.Word
	}
	return asm.DWord
}

// loadable reports whether one load fetches that many bytes.
func loadable(size int) bool { return size == 1 || size == 2 || size == 4 || size == 8 }
