package prologue

import (
	"encoding/binary"
	"math"

	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/internal/references"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
)

// assembler collects instructions as the kernel's 8-byte words, little-endian on
// all machines: an asm.Instruction is ten times as large, and whole images have hundreds of
// thousands of prologues, most of which are only compared. A 64-bit
// immediate takes two words. One that is an address of the image has addrMark in
// its source register, where other immediates have 0.
//
// Jumps are resolved to distances here, because the asm package's labels are names, which
// could be names of the program after the prologue too.
type assembler struct {
	code    []byte
	count   int // instructions in code
	rare    int // of these, that run only if a read faults or a load gives 0
	notes   []note
	pending note // for the next instruction
}

// note is the subject of the comment of the instruction at an offset in code. The text is
// made only if it is wanted: that takes longer than writing the instruction.
type note struct {
	kind noteKind
	at   int
	of   *fetch
	unit *unit
}

const (
	wordSize = asm.InstructionSize
	// No source registers and none of the kernel's BPF_PSEUDO_ values.
	addrMark    = 0xf
	counterMark = 0xe // the value of references.MissingCounter
	recordsMark = 0xd // that of references.RecordMap

	atomicXchg = 0xe1 // BPF_XCHG in an atomic operation
)

// The numbers of an instruction's operation code (linux/bpf.h). The asm package's
// constructors are checked to give the same ones by TestEncoding.
const (
	opLoadImm = uint8(asm.LdClass) | uint8(asm.ImmMode) | uint8(asm.DWord)
	opLoad    = uint8(asm.LdXClass) | uint8(asm.MemMode)
	opLoadSX  = uint8(asm.LdXClass) | uint8(asm.MemSXMode)
	opStore   = uint8(asm.StXClass) | uint8(asm.MemMode)
	opStoreK  = uint8(asm.StClass) | uint8(asm.MemMode)
	opALU     = uint8(asm.ALU64Class)
	opALU32   = uint8(asm.ALUClass)
	opJump    = uint8(asm.JumpClass)
	srcReg    = uint8(asm.RegSource)
	opMove    = opALU | uint8(asm.Mov) | srcReg
	opAdd     = uint8(asm.StXClass) | uint8(asm.AtomicMode) | uint8(asm.DWord)
)

// signMoves are the moves that extend signs, by the number of bits that they move.
var signMoves = map[int16]asm.ALUOp{8: asm.MovSX8, 16: asm.MovSX16, 32: asm.MovSX32}

// reset drops all instructions and keeps their memory.
func (a *assembler) reset() { *a = assembler{code: a.code[:0], notes: a.notes[:0]} }

func (a *assembler) add(op uint8, dst, src asm.Register, off int16, k int32) {
	if a.pending.kind != noNote {
		a.pending.at = len(a.code)
		a.notes = append(a.notes, a.pending)
		a.pending.kind = noNote
	}
	a.count++
	a.word(op, dst, src, off, k)
}

func (a *assembler) word(op uint8, dst, src asm.Register, off int16, k int32) {
	w := uint64(op) | uint64(dst&0xf)<<8 | uint64(src&0xf)<<12 | uint64(uint16(off))<<16 | uint64(uint32(k))<<32
	a.code = binary.LittleEndian.AppendUint64(a.code, w)
}

// label is a point further on that jumps lead to.
type label struct {
	from []int // offsets of the jumps
}

// bind sets the label to the next instruction.
func (a *assembler) bind(l *label) {
	for _, at := range l.from {
		words := (len(a.code)-at)/wordSize - 1
		binary.LittleEndian.PutUint16(a.code[at+2:], uint16(words))
	}
	l.from = l.from[:0]
}

// jump goes to the label without a condition.
func (a *assembler) jump(l *label) {
	l.from = append(l.from, len(a.code))
	a.add(opJump|uint8(asm.Ja), 0, 0, 0, 0)
}

// jumpImm goes to the label if op holds for dst and a number.
func (a *assembler) jumpImm(op asm.JumpOp, dst asm.Register, k int32, l *label) {
	l.from = append(l.from, len(a.code))
	a.add(opJump|uint8(op), dst, 0, 0, k)
}

// jumpReg goes to the label if op holds for dst and src.
func (a *assembler) jumpReg(op asm.JumpOp, dst, src asm.Register, l *label) {
	l.from = append(l.from, len(a.code))
	a.add(opJump|uint8(op)|srcReg, dst, src, 0, 0)
}

func (a *assembler) imm(op asm.ALUOp, dst asm.Register, k int32) {
	a.add(opALU|uint8(op), dst, 0, 0, k)
}

func (a *assembler) reg(op asm.ALUOp, dst, src asm.Register) {
	a.add(opALU|uint8(op)|srcReg, dst, src, 0, 0)
}

// load sets dst to size bytes of memory, which BPF can load at once.
func (a *assembler) load(dst, base asm.Register, off, size int) {
	a.add(opLoad|uint8(memSize(size)), dst, base, int16(off), 0)
}

// loadSigned is load for fewer than 8 bytes, whose sign it extends.
func (a *assembler) loadSigned(dst, base asm.Register, off, size int) {
	a.add(opLoadSX|uint8(memSize(size)), dst, base, int16(off), 0)
}

// store writes 8 bytes of the stack.
func (a *assembler) store(slot int, src asm.Register) { a.storePart(slot, src, 8) }

// storePart writes the low bytes of a register to the stack, as many as BPF can store at once.
func (a *assembler) storePart(slot int, src asm.Register, size int) {
	base, off := slotAt(slot)
	a.add(opStore|uint8(memSize(size)), base, src, int16(off), 0)
}

// clearSlot sets 8 bytes of the stack to 0.
func (a *assembler) clearSlot(slot int) { a.storeImm(slot, 0) }

// storeImm writes 8 bytes of the stack.
func (a *assembler) storeImm(slot int, k int32) {
	base, off := slotAt(slot)
	a.add(opStoreK|uint8(asm.DWord), base, 0, int16(off), k)
}

func (a *assembler) call(f asm.BuiltinFunc) {
	a.add(opJump|uint8(asm.Call), 0, 0, 0, int32(f))
}

// cast calls references.CastFunction. Its number is the running kernel's.
func (a *assembler) cast() {
	a.add(opJump|uint8(asm.Call), 0, asm.PseudoKfuncCall, 0, 0)
}

// move copies a register, unless both are the same.
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
		a.add(opALU32|uint8(asm.Mov), dst, 0, 0, int32(uint32(k))) // clears the upper half
	default:
		a.wide(dst, 0, k)
	}
}

// address sets a register to a link-time address of the image. It always takes a 64-bit
// immediate: the address after moving is not known.
func (a *assembler) address(dst asm.Register, addr uint64) { a.wide(dst, addrMark, addr) }

// wide sets a register to a 64-bit immediate.
func (a *assembler) wide(dst, src asm.Register, k uint64) {
	a.add(opLoadImm, dst, src, 0, int32(uint32(k)))
	a.word(0, 0, 0, 0, int32(uint32(k>>32)))
}

// zeroExtend clears all but the low size bytes.
func (a *assembler) zeroExtend(dst asm.Register, size int) {
	switch {
	case size >= 8:
	case size == 4:
		a.add(opALU32|uint8(asm.Mov)|srcReg, dst, dst, 0, 0)
	case size < 4:
		a.imm(asm.And, dst, 1<<(8*size)-1)
	default:
		a.imm(asm.LSh, dst, int32(64-8*size))
		a.imm(asm.RSh, dst, int32(64-8*size))
	}
}

// signExtend extends the sign of the low size bytes: by a move if moves is set, else, as on
// Linux before 6.6 and for sizes that no move has, by two shifts.
func (a *assembler) signExtend(dst asm.Register, size int, moves bool) {
	switch {
	case size >= 8:
	case moves && loadable(size):
		a.add(opMove, dst, dst, int16(8*size), 0)
	default:
		a.imm(asm.LSh, dst, int32(64-8*size))
		a.imm(asm.ArSh, dst, int32(64-8*size))
	}
}

// instructions returns the code as asm.Instructions with comments, and the indices of those
// that hold an address of the image. A comment is on one line, whatever the names in it: the verifier's
// log and listings have a line for each.
func (a *assembler) instructions(text func(note) string) (insns asm.Instructions, addrs []int) {
	insns = make(asm.Instructions, 0, a.count)
	notes := a.notes
	for at := 0; at < len(a.code); at += wordSize {
		w := binary.LittleEndian.Uint64(a.code[at:])
		ins := asm.Instruction{
			OpCode:   asm.OpCode(uint8(w)),
			Dst:      asm.Register(w >> 8 & 0xf),
			Src:      asm.Register(w >> 12 & 0xf),
			Offset:   int16(w >> 16),
			Constant: int64(int32(w >> 32)),
		}
		if len(notes) > 0 && notes[0].at == at {
			ins = ins.WithSource(asm.Comment(terminal.Text(text(notes[0]))))
			notes = notes[1:]
		}
		switch {
		case ins.IsKfuncCall():
			ins = ins.WithReference(references.CastFunction)
		case uint8(w) == opAdd && ins.Constant == atomicXchg:
			// The constant stays: without it cilium/ebpf 0.22 writes an addition.
			ins.OpCode = ins.OpCode.SetAtomicOp(asm.Xchg)
		case uint8(w) == opMove && ins.Offset > 0:
			// The asm package has the width in the operation.
			ins.OpCode, ins.Offset = ins.OpCode.SetALUOp(signMoves[ins.Offset]), 0
		}
		if uint8(w) == opLoadImm {
			switch ins.Src {
			case addrMark:
				ins.Src = 0
				addrs = append(addrs, len(insns))
			case counterMark:
				ins.Src = asm.PseudoMapValue
				ins = ins.WithReference(references.MissingCounter)
			case recordsMark:
				ins.Src = asm.PseudoMapValue
				ins = ins.WithReference(references.RecordMap)
			}
			at += wordSize
			ins.Constant = int64(w>>32 | binary.LittleEndian.Uint64(a.code[at:])>>32<<32)
		}
		insns = append(insns, ins)
	}
	return insns, addrs
}

// fitsImm reports whether a number is the sign extension of its low 32 bits, as
// the immediate of a 64-bit operation is.
func fitsImm(k uint64) bool { return uint64(int64(int32(k))) == k }

// memSize returns the size of a load or store of 1, 2, 4 or 8 bytes.
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

// loadable reports whether one load fetches size bytes.
func loadable(size int) bool { return size == 1 || size == 2 || size == 4 || size == 8 }
