package body

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/held"
	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/symbolic"
)

// What a function's code has stored in its frame. Compilers remove stores that nobody reads, and move others behind what does not need them: an
// object whose address the code gives to nobody then lacks members that its source has set.

// Followed is how many registers are followed, by their DWARF numbers.
const Followed = held.Followed

// frame is what the code does with its frame: offsets are from the stack pointer where the function begins.
type frame struct {
	bases  [][Followed]distance // where blocks begin
	stores []store
	loads  []store // and what else does not only store; of LLVM's code
	takes  []store // addresses that are in registers
}

// distance is that of a number from the stack pointer where the function begins, if it is one.
type distance struct {
	bytes int64
	known bool
}

// store is that an instruction stores so many bytes at an offset, or anywhere in the frame if that is not known.
type store struct {
	insn      int32
	off, size int64
	anywhere  bool
}

// Has reports whether a store may be one of a byte.
func (x *store) has(off int64) bool {
	return x.anywhere || x.off <= off && off < x.off+x.size
}

// maxObject bounds the objects that are looked at, in bytes.
const maxObject = 4096

// Stale returns the parts, each from one byte to another, of an object of so many bytes at a register plus an offset, that need not hold at a link-time address what
// the source says: no instruction of the function stores them on any path to there. The object may be a part of one that begins so many bytes before it. ok is false if
// that is not known: it is not in the frame, or its address may be known to others.
func (c *Code) Stale(at, register uint64, off, size, before int64) (parts [][2]int64, ok bool) {
	f, site, off, ok := c.objectAt(at, Slot{Base: register, Off: off, Size: size})
	if !ok {
		return nil, false
	}
	earlier := c.comesTo(site)
	for _, x := range f.takes {
		if x.off < off+size && x.off >= off-before && earlier(x.insn) {
			return nil, false
		}
	}
	has := make([]bool, size)
	for i := range f.stores {
		if x := &f.stores[i]; (x.anywhere || x.off < off+size && off < x.off+x.size) && earlier(x.insn) {
			for k := range has {
				has[k] = has[k] || x.has(off+int64(k))
			}
		}
	}
	for i := range size {
		if has[i] {
			continue
		}
		if k := len(parts); k > 0 && parts[k-1][1] == i {
			parts[k-1][1]++
		} else {
			parts = append(parts, [2]int64{i, i + 1})
		}
	}
	return parts, true
}

// objectAt returns the instruction at a link-time address, and where an object is in the frame then. ok is false if that is not known, or it is not there: above is
// what the caller has stored.
func (c *Code) objectAt(at uint64, m Slot) (f *frame, site int32, off int64, ok bool) {
	if c.Graph == nil || c.Why != "" || m.Base >= Followed || m.Size <= 0 || m.Size > maxObject {
		return nil, 0, 0, false
	}
	n, found := c.Graph.At(at)
	if !found {
		return nil, 0, 0, false
	}
	base := c.distanceAt(int32(n), m.Base) // of no frame none is known
	off = m.Off + base.bytes
	return c.frame, int32(n), off, base.known && off < 0
}

// StoresAll reports whether instructions of the function that a record is, or is inlined into, store all of some memory at a register plus an offset,
// before a link-time address. computes is set if they, in GCC's code, compute an address from the register: then others may store there too, which LLVM's say by object.
// It reads the code as it stands, which is fast.
func (u *Unit) StoresAll(rec int32, before uint64, m Slot) (all, computes bool, err error) {
	arch := insn.For(u.Image.Instructions())
	if arch == nil || m.Size <= 0 || m.Size > maxObject {
		return true, false, nil
	}
	ranges, err := u.OutermostRanges(rec)
	if err != nil {
		return false, false, err
	}
	base, sp := Registers(1)<<m.Base, Registers(1)<<u.Image.Arch().SP
	has := make([]bool, m.Size)
	left, gnu := m.Size, u.GNU()
	for _, r := range ranges {
		_, err := u.Image.each(r, func(at uint64, in insn.Insn, code []byte) bool {
			switch writes, touches := arch.Touching(code); {
			case !touches && gnu:
				reads, w, ok := arch.Accesses(code)
				// What sets the stack pointer too takes what is there from the stack: POP.
				computes = ok && reads&base != 0 && w.Registers&^(base|sp) != 0 && w.Registers&sp == 0 && !w.Memory && !in.Call
			case writes && touches && at < before:
				if x, _, ok := arch.Operand(code); ok && x.Base == m.Base {
					for i := max(x.Off, m.Off); i < min(x.Off+x.Size, m.Off+m.Size); i++ {
						if !has[i-m.Off] {
							has[i-m.Off] = true
							left--
						}
					}
				}
			}
			return left > 0 && !computes
		})
		if err != nil {
			return true, false, nil //nolint:nilerr // the file has no code
		}
		if left == 0 || computes {
			break
		}
	}
	return left == 0, computes, nil
}

// Precedes reports whether an instruction at a link-time address is of a statement that comes before the call of a record's body, in the text of the innermost function
// that has both: what is inlined there is at its call. own is set if the instruction is that function's own.
func (c *Code) Precedes(rec int32, addr uint64) (before, own bool) {
	i, ok := c.BodyOf(rec)
	if !ok || c.Why != "" {
		return false, false
	}
	n, ok := c.Graph.At(addr)
	if !ok {
		return false, false
	}
	mine := int32(i)
	for in := c.Bodies[mine].Parent; in >= 0; mine, in = in, c.Bodies[in].Parent {
		at := c.Bodies[mine].Call
		for k := c.Owner[n]; k >= 0 && k != mine; k = c.Bodies[k].Parent {
			if k == in {
				r := c.RowAt(int32(n))
				return r != nil && r.Line != 0 && r.File == at.File && (r.Line < at.Line || r.Line == at.Line && r.Column != 0 && r.Column < at.Column), mine == int32(i)
			}
			if x := c.Bodies[k].Call; c.Bodies[k].Parent == in {
				return x.Line != 0 && (x.Line < at.Line || x.Line == at.Line && x.Column <= at.Column), false
			}
		}
	}
	return false, false
}

// comesTo returns what reports whether execution may come from an instruction to another one.
func (c *Code) comesTo(site int32) func(from int32) bool {
	own := c.Graph.Block(site)
	reaches := make([]bool, len(c.Graph.Blocks))
	for work := []int32{own}; len(work) > 0; {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		c.Graph.OnlyBehind(b, func(last int32) bool {
			if p := c.Graph.Block(last); !reaches[p] {
				reaches[p] = true
				work = append(work, p)
			}
			return true
		})
	}
	return func(from int32) bool {
		b := c.Graph.Block(from)
		return reaches[b] || b == own && from < site
	}
}

// framed returns what the code does with its frame, which is found once, or nil if an instruction is not known.
func (c *Code) framed() *frame {
	if c.frameRead {
		return c.frame
	}
	c.frameRead = true
	entry := c.Graph.Entry()
	if entry < 0 {
		return nil
	}
	f := &frame{bases: make([][Followed]distance, len(c.Graph.Blocks))}
	seen := make([]bool, len(c.Graph.Blocks))
	f.bases[entry][c.Unit.Image.Arch().SP].known = true
	seen[entry] = true
	t := c.Arch.Begin()
	for work := []int32{entry}; len(work) > 0; {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		block := &c.Graph.Blocks[b]
		s := c.addresses(t, &f.bases[b])
		for n := block.First; n < block.Last; n++ {
			s.follow(n)
		}
		var out [Followed]distance
		for r := range out {
			out[r] = s.distance(t.Regs[r])
		}
		for _, to := range block.Succs {
			in, changed := &f.bases[to], !seen[to]
			if changed {
				*in = out
			}
			for r := range in {
				if in[r].known && in[r] != out[r] {
					in[r], changed = distance{}, true
				}
			}
			if seen[to] = true; changed {
				work = append(work, to)
			}
		}
	}
	for b := range c.Graph.Blocks {
		if seen[b] && !c.accessesOf(f, int32(b), t) {
			return nil
		}
	}
	c.frame = f
	return f
}

// loads reports whether an instruction that accesses memory does not only store.
func (c *Code) loads(code []byte) bool {
	_, only, _ := c.Arch.Operand(code)
	return !only
}

// accessesOf notes what the instructions of a block do with the frame. It returns false if one is not known.
func (c *Code) accessesOf(f *frame, b int32, t *symbolic.Trace) bool {
	s, block := c.addresses(t, &f.bases[b]), &c.Graph.Blocks[b]
	sp, fp := uint64(c.Unit.Image.Arch().SP), c.Arch.Slots.Frame
	for n := block.First; n < block.Last; n++ {
		code, addr := c.Graph.Bytes(n), c.Graph.Insns[n].Addr
		next, _ := c.Arch.Next(code)
		w, ok := c.Arch.Writes(code)
		if !ok && !next.Call && c.Graph.Insns[n].Kind == flow.Plain {
			return false
		}
		touch, known := c.Arch.Touches(t, code, addr)
		if known && !c.Unit.GNU() && c.loads(code) {
			if d := s.distance(touch.At); d.known {
				f.loads = append(f.loads, store{insn: n, off: d.bytes, size: touch.Size})
			} else if s.mayBe(touch.At) {
				f.loads = append(f.loads, store{insn: n, anywhere: true})
			}
		}
		switch {
		case known && touch.Writes:
			if d := s.distance(touch.At); d.known {
				f.stores = append(f.stores, store{insn: n, off: d.bytes, size: touch.Size})
			} else if s.mayBe(touch.At) {
				f.stores = append(f.stores, store{insn: n, anywhere: true})
			}
		case !known && ok && w.Memory && !next.Call && !w.Registers.Has(sp): // what is pushed is no object
			f.stores = append(f.stores, store{insn: n, anywhere: true})
		}
		s.follow(n)
		if next.Call {
			continue // what it leaves is none of these
		}
		for r := uint64(0); r < Followed; r++ {
			if r == sp || r == fp || !w.Registers.Has(r) {
				continue
			}
			if d := s.distance(t.Regs[r]); d.known {
				f.takes = append(f.takes, store{insn: n, off: d.bytes})
			} else if s.mayBe(t.Regs[r]) {
				f.stores = append(f.stores, store{insn: n, anywhere: true})
			}
		}
	}
	return true
}

// addresses tells in a block which numbers are addresses in the frame.
type addresses struct {
	c       *Code
	t       *symbolic.Trace
	in      *[Followed]distance // what registers held where the block begins
	aligned int32               // the stack pointer's number where lower bits of it were cleared in the block, or 0
}

// belowAligned is what stands for the distance of a stack pointer whose lower bits were cleared: how far it moved is not known, but what is below it is in
// nothing that was there before.
const belowAligned = -1 << 40

func (c *Code) addresses(t *symbolic.Trace, in *[Followed]distance) addresses {
	t.Restart()
	return addresses{c: c, t: t, in: in}
}

// follow follows the block's next instruction.
func (a *addresses) follow(n int32) {
	code := a.c.Graph.Bytes(n)
	a.c.Arch.Follow(a.t, code, a.c.Graph.Insns[n].Addr)
	if sp := a.c.Unit.Image.Arch().SP; a.c.Arch.Aligns(code, uint64(sp)) {
		a.aligned = a.t.Regs[sp].Single()
	}
}

// distance returns the distance of a number.
func (a *addresses) distance(v symbolic.Value) (d distance) {
	x := v.Terms[0]
	switch {
	case x.Scale != 1 || v.Terms[1].Symbol != 0 || x.Symbol < 1:
		return distance{}
	case x.Symbol <= Followed:
		d = a.in[x.Symbol-1]
	case x.Symbol == a.aligned:
		d = distance{belowAligned, true}
	}
	if d.known {
		d.bytes += int64(v.Const)
	}
	return d
}

// mayBe reports whether a number is one of the frame's addresses plus another number.
func (a *addresses) mayBe(v symbolic.Value) bool {
	return v.Terms[1].Symbol != 0 && slices.ContainsFunc(v.Terms[:], func(x symbolic.Term) bool {
		return x.Symbol >= 1 && (x.Symbol == a.aligned || x.Symbol <= Followed && a.in[x.Symbol-1].known)
	})
}

// distanceAt returns the distance of what a register holds before an instruction.
func (c *Code) distanceAt(site int32, register uint64) distance {
	f := c.framed()
	if f == nil {
		return distance{}
	}
	b := c.Graph.Block(site)
	s := c.addresses(c.Arch.Begin(), &f.bases[b])
	for n := c.Graph.Blocks[b].First; n < site; n++ {
		s.follow(n)
	}
	return s.distance(s.t.Regs[register])
}

// inFrame reports whether an instruction accesses memory at an offset from the frame pointer, where that is an address in the frame.
func (c *Code) inFrame(n int32) bool {
	m, _, ok := c.Arch.Operand(c.Graph.Bytes(n))
	return ok && m.Base == c.Arch.Slots.Frame && c.distanceAt(n, m.Base).known
}
