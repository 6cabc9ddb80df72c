package instances

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/plan"
)

// Around returns a program that runs some instructions before and after the user's, which is not
// changed: for example, to report hits by what the program returned. before leaves R1 to R5 as they
// are, with the program's arguments; after finds its result in R0, and R6 to R9 as before left them,
// and returns from the program. Both are a function of their own, with a stack frame.
//
// The error wraps ErrProgramMismatch if the user's program has more parameters than the plan fills, or
// ErrNotDispatched if it makes tail calls, after which nothing runs.
func Around(p *plan.Plan, user *ebpf.ProgramSpec, before, after asm.Instructions) (*ebpf.ProgramSpec, error) {
	if len(before) == 0 || len(after) == 0 {
		return nil, fmt.Errorf("%s: no instructions to run before it, or after it", user.Name)
	}
	if err := callable(p, user); err != nil {
		return nil, err
	}
	out := user.Copy()
	own := len(before) + 1 + len(after)
	before = append(asm.Instructions(nil), before...)
	before[0] = before[0].WithSource(asm.Comment("before " + user.Name))
	out.Instructions = surround(0, before, after, out.Instructions, "_around_", "its arguments")
	return out, numberLines(out.Instructions[:own])
}
