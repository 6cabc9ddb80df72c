package held

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/symbolic"
)

// A loop's counter has no more than the number that it is compared with: "xor %eax,%eax; loop: ...; add $8,%rax; cmp $0x28,%rax; jne loop". GCC notes the variable
// of the source as such a counter, divided by its step.

// counter is what is known of a register's number where a block begins: it comes from constants, is moved, and is increased before branches that are only taken
// while it is less than a constant. By induction over the turns it then is one of these numbers.
type counter struct {
	least, most uint64 // of the constants
	turns       []turn
}

// turn is that a number is increased, and execution goes on only if the sum is not, or is less than, a constant.
type turn struct {
	by, limit uint64
	differs   bool
}

// maxStep and maxLimit bound what is added to a counter, and what it is compared with: no sum of them has a sign.
const maxStep, maxLimit = 1 << 16, 1 << 30

// maxFlowing bounds in how many blocks a counter is looked for.
const maxFlowing = 64

// Counted returns the least and the greatest number that a register can hold at a link-time address, if it is a loop's counter there. An increase without a
// comparison, another computation, or a number that the function is given, refutes that.
func (h *Registers) Counted(register, at uint64) (least, most uint64, ok bool) {
	s, block, ok := h.stateAt(at)
	if !ok || register >= Followed || h.graph.Why != "" {
		return 0, 0, false
	}
	v, _ := s.Register(register)
	of, more, ok := s.Offset(v)
	if !ok || of >= Followed {
		return 0, 0, false
	}
	c, ok := h.counterIn(of, block)
	if !ok {
		return 0, 0, false
	}
	least, most, ok = c.limits()
	if least += more; least > most+more || most+more > maxLimit {
		return 0, 0, false
	}
	return least, most + more, ok
}

// limits returns the least and the greatest of a counter's numbers.
func (c *counter) limits() (least, most uint64, ok bool) {
	most = c.most
	for _, t := range c.turns {
		if t.differs {
			most = max(most, t.limit-t.by)
		} else {
			most = max(most, t.limit-1)
		}
	}
	for _, t := range c.turns {
		// What is compared for equality must be met.
		if t.differs && (most+t.by > t.limit || !c.meets(t)) {
			return 0, 0, false
		}
	}
	return c.least, most, len(c.turns) > 0 && c.least <= c.most
}

// meets reports whether all steps from the constants are multiples of one that leads to its limit.
func (c *counter) meets(t turn) bool {
	return t.by == 1 || c.least == c.most && (t.limit-c.least)%t.by == 0 && !slices.ContainsFunc(c.turns, func(other turn) bool { return other.by%t.by != 0 })
}

// counterIn follows a register's number back to where it comes from.
func (h *Registers) counterIn(register uint64, block int32) (c counter, ok bool) {
	type place struct {
		block    int32
		register uint64
	}
	seen := map[place]bool{{block, register}: true}
	c.least = maxLimit
	t := h.arch.Begin()
	for work := []place{{block, register}}; len(work) > 0; {
		p := work[len(work)-1]
		work = work[:len(work)-1]
		if len(seen) > maxFlowing {
			return c, false
		}
		if !h.graph.OnlyBehind(p.block, func(last int32) bool {
			from := h.graph.Block(last)
			holds := h.behind(t, from)
			v := t.Regs[p.register]
			if v.IsConstant() {
				c.least, c.most = min(c.least, v.Const), max(c.most, v.Const)
				return v.Const < maxLimit
			}
			of, by, ok := t.Offset(v)
			if !ok || of >= Followed || by > 0 && !c.turned(t, v, by, h.conditionTo(last, p.block, holds)) {
				return false
			}
			if next := (place{from, of}); !seen[next] {
				seen[next] = true
				work = append(work, next)
			}
			return true
		}) {
			return c, false
		}
	}
	return c, true
}

// behind follows a block, and returns the condition under which the branch at its end is taken.
func (h *Registers) behind(t *symbolic.Trace, b int32) (holds symbolic.Condition) {
	t.Restart()
	block := &h.graph.Blocks[b]
	for n := block.First; n < block.Last; n++ {
		holds = h.arch.Follow(t, h.graph.Bytes(n), h.graph.Insns[n].Addr)
	}
	return holds
}

// conditionTo returns the condition under which execution goes from the last instruction of a block, which branches if another one holds, to a block.
func (h *Registers) conditionTo(last, to int32, holds symbolic.Condition) symbolic.Condition {
	insn := &h.graph.Insns[last]
	in, ok := h.arch.Next(h.graph.Bytes(last))
	if !ok || insn.Kind != flow.Branch || holds == symbolic.Always {
		return symbolic.Always
	}
	target, next := insn.Addr+uint64(in.Target), insn.Addr+uint64(insn.Size)
	switch h.graph.Insns[h.graph.Blocks[to].First].Addr {
	case next:
		if target != next {
			return holds.Opposite()
		}
	case target:
		return holds
	}
	return symbolic.Always
}

// turned notes that a number was increased to v, if the condition of the last branch limits that.
func (c *counter) turned(t *symbolic.Trace, v symbolic.Value, by uint64, holds symbolic.Condition) bool {
	a, b := t.Branch.A, t.Branch.B
	if !t.Branch.Valid || by > maxStep || t.Branch.Bits < 32 || a != v && a != t.Low(v, t.Branch.Bits) || !b.IsConstant() || b.Const > maxLimit {
		return false
	}
	next := turn{by: by, limit: b.Const}
	switch holds.UnsignedOf() {
	case symbolic.Different:
		next.differs = true
	case symbolic.Below:
	case symbolic.AtMost:
		next.limit++
	default:
		return false
	}
	c.turns = append(c.turns, next)
	return next.limit > by
}
