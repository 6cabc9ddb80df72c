package instances

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cilium/ebpf/asm"
)

// TestChoose: each number leads past the switch's slot of its plan, through its prologue, and through
// no other, to the end.
func TestChoose(t *testing.T) {
	for _, sizes := range [][]int{{1}, {2}, {3}, {7}, {8}, {100}, {3001}, {1, 1}, {5, 1, 9}, {100, 2000, 1, 1, 3, 300}} {
		x, n := &part{}, 0
		var groups []int // of each prologue
		for k, size := range sizes {
			x.groups = append(x.groups, group{plan: k, first: n, instances: make([]int, size)})
			groups = append(groups, slices.Repeat([]int{k}, size)...)
			n += size
		}
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
		x.prologues = prologues
		before := choose(x, "switch", 3)
		for i := 0; i < n; i += max(1, n/50) {
			slot := asm.Instructions{
				asm.LoadMapValue(asm.R2, 0, uint32(8*(3+groups[i]))).WithReference("switch"),
				asm.LoadMem(asm.R2, asm.R2, 0, asm.DWord),
			}
			want := fmt.Sprint(append(slot, prologues[i]...))
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
	const head = 5
	for i := head; i < len(insns); {
		ins := insns[i]
		taken := false
		switch op := ins.OpCode; {
		case op.Class() != asm.JumpClass:
			out = append(out, ins)
		case op.JumpOp() == asm.Ja, op.JumpOp() == asm.JEq: // the switch is on
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
