package resolve

import (
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// SteadyFrame returns what stays the same of a frame when its stack moves: how far it is from the
// stack's end, and the goroutine. Both are in the goroutine's structure, at the address in a
// register of Go's ABI (cmd/compile/abi-internal.md; stack.hi of type g in
// runtime/runtime2.go).
func (ev *Evaluator) SteadyFrame(cfa *loc.Expr) *loc.Expr {
	r, ok := goroutine[ev.Arch.Name]
	if !ok {
		return cfa
	}
	const stackHi = 8
	end := ev.Deref(ev.Register(r, stackHi), 8)
	// A stack has at most 1 GB (runtime.maxstacksize), and structures of goroutines are
	// hundreds of bytes apart.
	return ev.Binary(ops.Add, ev.Binary(ops.Shl, ev.Register(r, 0), ev.Const(22)), ev.Binary(ops.Sub, end, cfa))
}

// goroutine has the DWARF numbers of the registers that point to the current goroutine.
var goroutine = map[string]uint64{"amd64": 14, "arm64": 28}
