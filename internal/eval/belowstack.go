package eval

import (
	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
)

// kernelRedZone has how many bytes below the stack pointer a kernel leaves alone when a probe interrupts its own code, by architecture: 0 for
// most. Registers are saved right below, so that what a function has left there when its frame ended is overwritten before a probe
// reads it. (KERNEL_REDZONE_SIZE in arch/powerpc/include/asm/ptrace.h. A program's stack is another one than that of the kernel
// which a probe enters.)
var kernelRedZone = map[string]int64{"ppc64el": 288}

// Overwritten is why there is nothing in a kernel's memory below the stack pointer.
var Overwritten = loc.Reason{Code: reasons.NotAtSite, Detail: "it is below the stack pointer, where the kernel saves what a probe interrupts"}

// BelowStack reports whether some memory at a location, or that is read to get there, is so far below the stack pointer that a kernel overwrites
// it when a probe interrupts its own code.
func BelowStack(l *loc.Location, a *arch.Arch) bool {
	if l.Kind != loc.KindMemory && l.Kind != loc.KindValue && l.Kind != loc.KindPieces {
		return false
	}
	below := func(e *loc.Expr) bool {
		off, ok := fromStack(e, uint64(a.SP))
		return ok && off < -kernelRedZone[a.Name]
	}
	in := l.Kind == loc.KindMemory && below(l.Expr)
	for i := range l.Pieces {
		in = in || l.Pieces[i].Loc.Kind == loc.KindMemory && below(l.Pieces[i].Loc.Expr)
	}
	l.Exprs(func(e *loc.Expr) {
		e.Walk(func(n *loc.Expr) { in = in || n.Op == ops.Deref && below(n.A) })
	})
	return in
}

// fromStack returns how far an address is from the stack pointer, at most. ok is false if it is not relative to that.
func fromStack(e *loc.Expr, sp uint64) (off int64, ok bool) {
	switch {
	case e.Op == ops.Reg:
		return 0, e.K == sp
	case e.Op == ops.Add && e.B.Op == ops.Const:
		off, ok = fromStack(e.A, sp)
		return off + int64(e.B.K), ok
	case e.Op == ops.And && e.B.Op == ops.Const && int64(e.B.K) < 0: // a frame that is aligned further
		return fromStack(e.A, sp)
	}
	return 0, false
}
