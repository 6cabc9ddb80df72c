package export

import (
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/internal/choice"
)

// addresses are link-time addresses of a kernel. They are a table of the object, which who loads that changes to those of the running
// kernel.
type addresses []uint64

// addressTable is what loads of variables of the table refer to, until the object has it.
const addressTable = "addresses"

// loads replaces a prologue's loads of addresses, at some indices, by loads of variables. Such a load is two instructions of 8 bytes long,
// and becomes three: jumps over it reach further.
func (a *addresses) loads(insns asm.Instructions, indices []int) asm.Instructions {
	if len(indices) == 0 {
		return insns
	}
	// In instructions of 8 bytes: where each begins, and before which ones another is added.
	begins := make([]int, len(insns))
	var added []int
	for i, slot := 0, 0; i < len(insns); i++ {
		begins[i] = slot
		slot += choice.Size(insns[i : i+1])
		if slices.Contains(indices, i) {
			added = append(added, slot)
		}
	}
	between := func(lo, hi int) (n int) {
		for _, at := range added {
			if at > lo && at <= hi {
				n++
			}
		}
		return n
	}
	var out asm.Instructions
	for i, in := range insns {
		op := in.OpCode.JumpOp()
		switch {
		case slices.Contains(indices, i):
			k := slices.Index(*a, uint64(in.Constant))
			if k < 0 {
				k = len(*a)
				*a = append(*a, uint64(in.Constant))
			}
			load := asm.LoadImm(in.Dst, int64(8*k), asm.DWord).WithMetadata(in.Metadata).WithReference(addressTable)
			out = append(out, load, asm.LoadMem(in.Dst, in.Dst, 0, asm.DWord))
			continue
		case !in.OpCode.Class().IsJump() || op == asm.Call || op == asm.Exit:
		case in.Offset >= 0:
			in.Offset += int16(between(begins[i], begins[i]+1+int(in.Offset)))
		default:
			in.Offset -= int16(between(begins[i]+1+int(in.Offset), begins[i]))
		}
		out = append(out, in)
	}
	return out
}
