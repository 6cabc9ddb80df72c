package motion

import (
	"slices"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// Compilers keep the position of what they make again, make once for several, or make sooner: a comparison where its result is used, a constant before all that
// need it, a load in front of a loop. A run of a body that only computes looks the same, so that what an instruction reads and who needs it has to tell.

// comparesKept reports whether a piece of a body that begins at an instruction does nothing but compare, and what else cannot be seen, and reads only what has not been written since the
// other ways in behind which execution comes to it. LLVM repeats a comparison in each block that uses its result. What a run in an unrolled loop compares is written for it, and
// what is the same in all turns is compared ahead of a loop.
func (c *Rules) comparesKept(i, first int32, in []flow.Way) bool {
	end := c.Graph.Blocks[c.Graph.Block(first)].Last
	if c.Unit.GNU() || c.Unit.IsGo() || !c.idle(i, first) {
		return false
	}
	var read kept
	var made insn.Registers
	compares := false
	for at := first; at < end && c.Bodies[i].Has(c.Owner[at]); at++ {
		if row := c.RowAt(at); row != nil && row.Line == 0 || c.Graph.Insns[at].Kind == flow.Jump {
			continue // merged from several, or nobody's; or it only leads on
		}
		code := c.Graph.Bytes(at)
		r, w, ok := c.Arch.Accesses(code)
		if _, accesses := c.Arch.Touching(code); accesses {
			m, stores, fixed := c.Arch.Operand(code)
			if !fixed || m.Base != uint64(c.Unit.Image.Arch().SP) || !stores && !read.add(m) {
				return false
			}
			r &^= 1 << m.Base
		}
		if !ok {
			return false
		}
		compares = compares || w == (insn.Writes{})
		read.registers |= r &^ made
		made |= w.Registers
	}
	return compares && c.unwritten(first, read, in)
}

// maxKept is how many slots of the frame are followed, and maxFollowed through how many blocks.
const (
	maxKept     = 2
	maxFollowed = 256
)

// kept are registers, and slots of the frame, in which something is.
type kept struct {
	registers insn.Registers
	slots     [maxKept]insn.Slot
}

// add adds a slot. It is false if there are too many.
func (k *kept) add(s insn.Slot) bool {
	for i := range k.slots {
		if k.slots[i] == s || k.slots[i] == (insn.Slot{}) {
			k.slots[i] = s
			return true
		}
	}
	return false
}

// before replaces what an instruction writes by where that was before it: a register that is loaded from the frame, a slot that is stored to. It is false if something else may be written, or changed by a
// call. Slots have the stack pointer as their base. lends says whether the function makes addresses of its frame.
func (c *Rules) before(n int32, k *kept, lends func() bool) bool {
	code := c.Graph.Bytes(n)
	if c.Graph.Insns[n].Kind != flow.Plain {
		return true
	}
	if in, ok := c.Arch.Next(code); ok && in.Call {
		return k.registers&^c.Preserved() == 0 && (k.slots == [maxKept]insn.Slot{} || !lends())
	}
	w, ok := c.Arch.Writes(code)
	if !ok {
		return false
	}
	reads, _, read := c.Arch.Accesses(code)
	sp := c.Unit.Image.Arch().SP
	m, stores, fixed := c.Arch.Operand(code)
	inFrame := fixed && m.Base == uint64(sp)
	if changed := w.Registers & k.registers; changed != 0 {
		if !read || !inFrame || stores || w.Memory || w.Registers != changed || !changed.One() || reads != 1<<sp {
			return false
		}
		k.registers &^= changed
		return k.add(m)
	}
	if !w.Memory || !inFrame {
		return true
	}
	for i := range k.slots {
		s := &k.slots[i]
		switch from := reads &^ (1 << sp); {
		case s.Size == 0 || m.Off >= s.Off+s.Size || s.Off >= m.Off+m.Size:
		case *s != m || !read || !stores || !from.One():
			return false
		default:
			*s = insn.Slot{}
			k.registers |= from
		}
	}
	return true
}

// unwritten reports whether execution comes to an instruction only behind one of other ways in, since which something that is read there was not changed, but moved between registers and the frame.
func (c *Rules) unwritten(first int32, k kept, in []flow.Way) bool {
	type place struct {
		block, from int32 // from is the instruction behind the last one that is looked at
		kept
	}
	seen := make(map[place]bool)
	lends := sync.OnceValue(c.lendsFrame)
	found := false
paths:
	for work := []place{{c.Graph.Block(first), first, k}}; len(work) > 0; {
		p := work[len(work)-1]
		work = work[:len(work)-1]
		for n := p.from - 1; n >= c.Graph.Blocks[p.block].First; n-- {
			if slices.ContainsFunc(in, func(w flow.Way) bool { return w.Insn == n && n != first }) {
				found = true
				continue paths
			}
			if !c.before(n, &p.kept, lends) {
				return false
			}
		}
		if c.Graph.Paths(p.block) == 0 || p.block == c.Graph.Entry() || len(seen) > maxFollowed {
			return false
		}
		c.Graph.OnlyBehind(p.block, func(last int32) bool {
			if to := (place{c.Graph.Block(last), last + 1, p.kept}); !seen[to] {
				seen[to] = true
				work = append(work, to)
			}
			return true
		})
	}
	return found
}

// lendsFrame reports whether an instruction of the function makes an address of the frame: calls may change what is there.
func (c *Rules) lendsFrame() bool {
	sp := insn.Registers(1) << c.Unit.Image.Arch().SP
	for n := range int32(len(c.Graph.Insns)) {
		code := c.Graph.Bytes(n)
		_, accesses := c.Arch.Touching(code)
		if r, w, ok := c.Arch.Accesses(code); !accesses && ok && r&sp != 0 && w.Registers != 0 && w.Registers&sp == 0 {
			return true
		}
	}
	return false
}

// constantsFor reports whether a piece of a body that begins at an instruction only makes constants, and the body needs one of them elsewhere: LLVM, and GCC too, makes a constant that several parts
// need in a block before all of these, with the position of one. A run that begins with a constant goes on.
func (c *Rules) constantsFor(i, first int32) bool {
	end := c.Graph.Blocks[c.Graph.Block(first)].Last
	own := func(n int32) bool { return c.Bodies[i].Has(c.Owner[n]) }
	if c.Unit.IsGo() || own(end-1) {
		return false
	}
	var made insn.Registers
	at := first
	for ; own(at); at++ {
		code := c.Graph.Bytes(at)
		_, accesses := c.Arch.Touching(code)
		reads, w, ok := c.Arch.Accesses(code)
		if k := c.Graph.Insns[at].Kind; k != flow.Plain && k != flow.Nop || !ok || accesses || reads != 0 {
			if compares := ok && w == (insn.Writes{}); at == first || !compares || at != end-2 || c.Graph.Insns[end-1].Kind != flow.Branch {
				return false
			}
			at++
			break // it is for the branch, which is another's
		}
		made |= w.Registers
	}
	if slices.ContainsFunc(c.Owner[at:end], c.Bodies[i].Has) {
		return false // it goes on in any case
	}
	rest := func(n int32) bool { return (n < first || n >= at) && own(n) && c.Graph.Insns[n].Kind != flow.Nop }
	uses := func(n int32) bool {
		reads, _, ok := c.Arch.Accesses(c.Graph.Bytes(n))
		return rest(n) && ok && reads&made != 0
	}
	return c.HasSuch(i, uses) && !c.goesOnAlways(c.Graph.Block(first), func(n int32) (is, on bool) { return own(n), rest(n) })
}

// goesOnAlways reports whether on all paths from a block the first instruction that is of a body goes on with it.
func (c *Rules) goesOnAlways(block int32, of func(n int32) (is, on bool)) bool {
	succs := c.Graph.Blocks[block].Succs
	return len(succs) > 0 && !slices.ContainsFunc(succs, func(to int32) bool {
		return !c.Graph.AllPaths(to, func(block int32) (settled, ok bool) {
			for at := c.Graph.Blocks[block].First; at < c.Graph.Blocks[block].Last; at++ {
				if is, on := of(at); is {
					return true, on
				}
			}
			return false, false
		})
	})
}

// loadsAhead reports whether a piece of a body that begins at an instruction only loads and computes, where the body does what can be seen, and on all paths from there the body goes on, behind
// code of the caller's, at an earlier line of the function: LLVM loads ahead of a loop what each turn has in a register. A run goes back in its text only in a loop.
func (c *Rules) loadsAhead(i, first int32, marks []flow.Mark) bool {
	row := c.RowAt(first)
	if c.Unit.GNU() || c.Unit.IsGo() || row == nil || row.Line == 0 || !c.actsAtAll(i) {
		return false
	}
	own := func(n int32) bool { return c.Bodies[i].Has(c.Owner[n]) && c.Graph.Insns[n].Kind != flow.Nop }
	earlier := func(n int32) bool {
		r := c.RowAt(n)
		return r != nil && r.Line != 0 && r.Line < row.Line && r.File == row.File && c.Owner[n] == c.Owner[first] &&
			c.Graph.OnlyBehind(c.Graph.Block(n), func(last int32) bool { return !own(last) }) &&
			slices.ContainsFunc(marks, func(m flow.Mark) bool { return m.Insn == n && (m.Kind == flow.MarkEnter || m.Kind == flow.MarkInside) })
	}
	block := c.Graph.Block(first)
	left := false
	for at := first; at < c.Graph.Blocks[block].Last; at++ {
		switch is := own(at); {
		case c.Graph.Insns[at].Kind == flow.Nop:
		case left && is:
			return earlier(at)
		case !is:
			left = true
		case c.Acts(at), c.Graph.Insns[at].Kind != flow.Plain:
			return false
		}
	}
	return left && c.goesOnAlways(block, func(n int32) (is, on bool) { return own(n), own(n) && earlier(n) })
}
