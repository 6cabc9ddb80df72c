package bpfexec

import (
	"fmt"
	"math/bits"

	"github.com/cilium/ebpf/asm"
)

// littleEndian is set if this machine is.
var littleEndian = native.Uint16([]byte{1, 0}) == 1

// reversed returns the instruction that reverses the bytes of a number in a register.
func reversed(r asm.Register, size asm.Size) asm.Instruction {
	if littleEndian {
		return asm.HostTo(asm.BE, r, size)
	}
	return asm.HostTo(asm.LE, r, size)
}

// turned returns instructions that do on a machine of the other byte order what the given ones do on this one: each
// number that they load from memory, or store there, has its bytes in reverse. Numbers in registers are the same. So a
// big-endian machine's prologues run on a little-endian one, over memory as the other machine has it.
//
// Only what prologues consist of is turned; another access to memory is an error. Pointers must not be stored: the
// verifier would not know them again.
func turned(insns asm.Instructions) (asm.Instructions, error) {
	out := make(asm.Instructions, 0, len(insns)+len(insns)/2)
	places := make(map[int]int) // places of instructions, in words, to those in out
	type jump struct{ index, from, to int }
	var jumps []jump
	at, to := 0, 0
	add := func(ins asm.Instruction) {
		out = append(out, ins)
		to += int(ins.Size() / asm.InstructionSize)
	}
	for _, ins := range insns {
		places[at] = to
		op := ins.OpCode
		switch class := op.Class(); {
		case class == asm.LdXClass && op.Mode() == asm.MemMode:
			add(ins)
			if size := op.Size(); size != asm.Byte {
				add(reversed(ins.Dst, size))
			}
		case class == asm.StXClass && op.Mode() == asm.MemMode && (op.Size() == asm.DWord || op.Size() == asm.Byte) && ins.Src != ins.Dst:
			if op.Size() == asm.Byte {
				add(ins)
				break
			}
			add(reversed(ins.Src, asm.DWord))
			add(ins)
			add(reversed(ins.Src, asm.DWord))
		case class == asm.StClass && op.Mode() == asm.MemMode && op.Size() == asm.DWord:
			high, low := ins.Constant>>63, int64(int32(bits.ReverseBytes32(uint32(ins.Constant))))
			if !littleEndian {
				high, low = low, high
			}
			add(asm.StoreImm(ins.Dst, ins.Offset, high, asm.Word))
			add(asm.StoreImm(ins.Dst, ins.Offset+4, low, asm.Word))
		case class == asm.LdXClass || class == asm.StXClass || class == asm.StClass || class == asm.LdClass && !op.IsDWordLoad():
			return nil, fmt.Errorf("%v: not known on a machine of the other byte order", ins)
		case class == asm.JumpClass || class == asm.Jump32Class:
			if op.JumpOp() != asm.Call && op.JumpOp() != asm.Exit {
				jumps = append(jumps, jump{len(out), to + 1, at + 1 + int(ins.Offset)})
			}
			add(ins)
		default:
			add(ins)
		}
		at += int(ins.Size() / asm.InstructionSize)
	}
	places[at] = to
	for _, j := range jumps {
		end, ok := places[j.to]
		if !ok {
			return nil, fmt.Errorf("%v: a jump into an instruction", out[j.index])
		}
		out[j.index].Offset = int16(end - j.from)
	}
	return out, nil
}
