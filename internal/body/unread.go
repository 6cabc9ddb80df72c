package body

import (
	"math/bits"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// LLVM keeps a variable in a slot of the frame or in a register, and puts the two together where paths meet. Where no path reads the slot any more, it does not store it either, and
// can say all the same that the variable is there.

// LeftBehind reports whether a record's body uses, at a link-time address, a register that on some paths to there has the number that a slot of the frame has, and on others not, while
// no instruction reads the slot from there on.
func (c *Code) LeftBehind(rec int32, at uint64, m Slot) bool {
	i, ok := c.BodyOf(rec)
	if !ok {
		return false
	}
	f, site, off, ok := c.objectAt(at, m)
	if !ok || f.known(off, m.Size) || !c.unread(site, off, m.Size) {
		return false
	}
	used := c.usedBy(int32(i), site)
	return used != 0 && c.sometimes(site, off, m.Size)&used != 0
}

// known reports whether others may know the address of an object in the frame, or what is loaded may be anywhere in it.
func (f *frame) known(off, size int64) bool {
	anywhere := func(x store) bool { return x.anywhere }
	taken := func(x store) bool { return x.off < off+size && x.off >= off-maxObject }
	return slices.ContainsFunc(f.loads, anywhere) || slices.ContainsFunc(f.takes, taken)
}

// covering returns the instructions among some that access a part of the frame, or all of it.
func covering(of []store, off, size int64, all bool) map[int32]bool {
	out := make(map[int32]bool)
	for _, x := range of {
		if whole := x.off <= off && x.off+x.size >= off+size; !x.anywhere && (whole || !all && x.off < off+size && off < x.off+x.size) {
			out[x.insn] = true
		}
	}
	return out
}

// unread reports whether no instruction reads a part of the frame from another one on before it is stored anew.
func (c *Code) unread(site int32, off, size int64) bool {
	f := c.framed()
	reads, stores := covering(f.loads, off, size, false), covering(f.stores, off, size, true)
	from := site
	return c.Graph.AllPaths(c.Graph.Block(site), func(n int32) (settled, ok bool) {
		b := &c.Graph.Blocks[n]
		at := max(from, b.First)
		for from = 0; at < b.Last; at++ { // a path that comes back begins with the block
			if reads[at] || stores[at] {
				return true, !reads[at]
			}
		}
		return len(b.Succs) == 0, true
	})
}

// usedBy returns the registers that instructions of a body read in the straight code from one on, before one writes them.
func (c *Code) usedBy(i, site int32) (used insn.Registers) {
	written := insn.Registers(0)
	for at, last := site, c.Graph.Blocks[c.Graph.Block(site)].Last; at < last && c.Bodies[i].Has(c.Owner[at]); at++ {
		reads, w, ok := c.Arch.Accesses(c.Graph.Bytes(at))
		if !ok {
			break
		}
		used |= reads &^ written
		written |= w.Registers
	}
	return used
}

// sometimes returns the registers that have the number of a slot where execution comes to an instruction on some paths, and one that the code computes on others.
func (c *Code) sometimes(site int32, off, size int64) insn.Registers {
	type state struct{ equal, other insn.Registers } // on some path; other is what an instruction has computed, or a constant
	f := c.framed()
	loads, stores := covering(f.loads, off, size, true), covering(f.stores, off, size, false)
	whole := covering(f.stores, off, size, true)
	blocks, entry := c.Graph.Blocks, c.Graph.Entry()
	in, seen := make([]state, len(blocks)), make([]bool, len(blocks))
	step := func(now state, at int32) state {
		code := c.Graph.Bytes(at)
		reads, w, ok := c.Arch.Accesses(code)
		next, _ := c.Arch.Next(code)
		set := func(r insn.Registers, equal, other bool) {
			now.equal, now.other = now.equal&^r, now.other&^r
			if equal {
				now.equal |= r
			}
			if other {
				now.other |= r
			}
		}
		switch {
		case next.Call:
			set(^c.Preserved(), false, false)
		case stores[at]:
			now.equal = 0
			if _, only, _ := c.Arch.Operand(code); whole[at] && only {
				set(c.alike(c.spilled(code, reads), at), true, false)
			}
		case loads[at]:
			set(w.Registers, true, false) // and those that had it already have it still
		case ok && reads.One() && w.Registers.One() && c.moves(code):
			set(w.Registers, now.equal&reads != 0, now.other&reads != 0)
		default:
			_, _, accesses := c.Arch.Operand(code)
			set(w.Registers, false, ok && !accesses)
		}
		return now
	}
	seen[entry] = true
	for work := []int32{entry}; len(work) > 0; {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		now := in[b]
		for at := blocks[b].First; at < blocks[b].Last; at++ {
			now = step(now, at)
		}
		for _, to := range blocks[b].Succs {
			both := state{in[to].equal | now.equal, in[to].other | now.other}
			if both != in[to] || !seen[to] {
				in[to], seen[to] = both, true
				work = append(work, to)
			}
		}
	}
	b := c.Graph.Block(site)
	now := in[b]
	for at := blocks[b].First; at < site; at++ {
		now = step(now, at)
	}
	return now.equal & now.other
}

// alike returns the registers that have what one has before an instruction.
func (c *Code) alike(register insn.Registers, at int32) insn.Registers {
	if register == 0 {
		return 0
	}
	return c.Held().Alike(uint64(bits.TrailingZeros64(uint64(register))), c.Graph.Insns[at].Addr)
}

// Preserved returns the registers that calls preserve.
func (c *Code) Preserved() (kept insn.Registers) {
	for _, r := range c.Unit.Image.Arch().Preserved {
		kept |= 1 << r
	}
	return kept
}

// Restores reports whether the instructions of a range of the function only put back what its callers want back, and leave it.
func (c *Code) Restores(r dw.Range) bool {
	a, g := c.Unit.Image.Arch(), c.Graph
	back := c.Preserved() | 1<<a.SP
	if a.Link != 0 {
		back |= 1 << a.Link
	}
	n, _ := g.At(r.Lo)
	for ; n < len(g.Insns) && g.Insns[n].Addr < r.Hi; n++ {
		switch g.Insns[n].Kind {
		case flow.Leave, flow.Nop:
		case flow.Plain:
			if w, ok := c.Arch.Writes(g.Bytes(int32(n))); !ok || w.Memory || w.Registers&^back != 0 {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// spilled returns the register that an instruction stores, of those that it reads.
func (c *Code) spilled(code []byte, reads insn.Registers) insn.Registers {
	m, _, _ := c.Arch.Operand(code)
	if m.Base < Followed {
		reads &^= 1 << m.Base
	}
	if !reads.One() {
		return 0
	}
	return reads
}

// moves reports whether an instruction moves a register to another one, or its lower half.
func (c *Code) moves(code []byte) bool {
	_, w, _ := c.Arch.Accesses(code)
	s := c.Arch.State()
	s.Restart()
	s.Step(code, 0)
	for r := range uint64(Followed) {
		if w.Registers.Has(r) {
			v, ok := s.Register(r)
			_, same, is := s.Input(v)
			return ok && is && same >= 32
		}
	}
	return false
}

// ReadsArgument reports whether an instruction of LLVM's code reads some of what a function's caller has stored for it, at the stack pointer plus an offset where it begins,
// and none stores there: then that has a use.
func (c *Code) ReadsArgument(m Slot) bool {
	if c.Graph == nil || c.Why != "" || m.Base != uint64(c.Unit.Image.Arch().SP) || m.Off < 0 || m.Size <= 0 {
		return false
	}
	f := c.framed()
	return f != nil && len(covering(f.loads, m.Off, m.Size, false)) > 0 && len(covering(f.stores, m.Off, m.Size, false)) == 0
}
