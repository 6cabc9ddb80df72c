package flow

import "github.com/bpfprologue/bpfprologue/internal/insn"

// Loop is what LoopUpdates looks for.
type Loop struct {
	Body   []insn.Code
	Around uint64 // an address in the body
	Lowest uint64 // where the function begins: a branch to less leaves it
	Lo, Hi uint64 // which instructions may update a register
}

// LoopUpdates returns the general registers that a body computes from themselves, as "n--" does,
// in loops around an address: those whose last instruction is in the body, at the address or
// after it, and branches to the address or before it. Loops that the body does not close, such
// as one in which it is inlined, do not count.
func LoopUpdates(a *insn.Arch, l *Loop) (updated insn.Registers) {
	first, last := l.Around, uint64(0)
	each := func(visit func(at uint64, code []byte, in insn.Insn)) {
		for _, part := range l.Body {
			for at := 0; at < len(part.Bytes); {
				in, ok := a.Next(part.Bytes[at:])
				if !ok || in.Size <= 0 {
					break
				}
				visit(part.Addr+uint64(at), part.Bytes[at:], in)
				at += in.Size
			}
		}
	}
	each(func(at uint64, _ []byte, in insn.Insn) {
		if to := at + uint64(in.Target); in.Branches && at >= l.Around && to <= l.Around && to >= l.Lowest {
			first, last = min(first, to), max(last, at)
		}
	})
	if last == 0 {
		return 0
	}
	each(func(at uint64, code []byte, _ insn.Insn) {
		if at >= max(first, l.Lo) && at <= last && at < l.Hi {
			updated |= a.Updates(code)
		}
	})
	return updated
}
