package instances

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cilium/ebpf/asm"
)

// TestChoose: each number leads through its prologue, and through no other, to the end.
func TestChoose(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 8, 100, 3001} {
		var prologues []asm.Instructions
		for i := range n {
			p := asm.Instructions{asm.Mov.Imm(asm.R4, int32(i))}
			if i%3 == 1 {
				p = append(p, asm.LoadImm(asm.R5, int64(i)<<32, asm.DWord)) // of two times 8 bytes
			}
			for range i % 4 {
				p = append(p, asm.Add.Imm(asm.R4, int32(i)))
			}
			prologues = append(prologues, p)
		}
		before := choose(prologues, "switch", 0)
		for i := 0; i < n; i += max(1, n/50) {
			want := fmt.Sprint(prologues[i])
			if got := fmt.Sprint(path(t, before, uint64(i))); got != want {
				t.Fatalf("%d of %d runs\n%s, want\n%s", i, n, got, want)
			}
		}
	}
}

// path returns the instructions that run for a number in R0, without the jumps.
func path(t *testing.T, insns asm.Instructions, number uint64) (out asm.Instructions) {
	t.Helper()
	at := make(map[int]int) // index by offset
	offsets := make([]int, len(insns)+1)
	for i, off := 0, 0; i < len(insns); i++ {
		at[off], offsets[i] = i, off
		off += int(insns[i].Size() / asm.InstructionSize)
		offsets[i+1] = off
	}
	at[offsets[len(insns)]] = len(insns)
	const head = 13
	for i := head; i < len(insns); {
		ins := insns[i]
		taken := false
		switch op := ins.OpCode; {
		case op.Class() != asm.JumpClass:
			out = append(out, ins)
		case op.JumpOp() == asm.Ja:
			taken = true
		case op.JumpOp() == asm.JGE:
			taken = number >= uint64(ins.Constant)
		default:
			t.Fatalf("%v", ins)
		}
		if !taken {
			i++
			continue
		}
		to, ok := at[offsets[i+1]+int(ins.Offset)]
		if !ok || ins.Offset < 0 {
			t.Fatalf("%v leads nowhere", ins)
		}
		i = to
	}
	return slices.Clip(out)
}
