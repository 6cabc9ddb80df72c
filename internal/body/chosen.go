package body

import (
	"math/bits"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// ChosenCopy reports whether an instruction before a link-time address, in code that only goes on at the next one, and in none of some ranges, has chosen between another value
// and what a register has, in a second register that had the same, and none reads the first one any more: it is the second one that the code goes on with. What a call reads is
// not known.
func (c *Code) ChosenCopy(register, at uint64, without []dw.Range) bool {
	if c.Graph == nil || c.Why != "" {
		return false
	}
	n, ok := c.Graph.At(at)
	if !ok {
		return false
	}
	var since Registers
	for i := int32(n) - 1; i >= c.Graph.Blocks[c.Graph.Block(int32(n))].First; i-- {
		code, addr := c.Graph.Bytes(i), c.Graph.Insns[i].Addr
		w, ok := c.Arch.Writes(code)
		if !ok || w.Registers.Has(register) {
			return false
		}
		for r := range uint64(Followed) {
			if w.Registers.Has(r) && !since.Has(r) && c.Arch.Chooses(code, r) && !dw.Covers(without, addr) && c.Held().Alike(register, addr).Has(r) {
				return c.idle(register, int32(n))
			}
		}
		since |= w.Registers
	}
	return false
}

// idle reports whether no instruction reads a register on any path from one on, before it is set. A call sets those that it need not preserve.
func (c *Code) idle(register uint64, from int32) bool {
	g := c.Graph
	kept, result := c.Preserved().Has(register), slices.Contains(c.Unit.Image.Arch().Results, uint16(register))
	return g.AllPaths(g.Block(from), func(b int32) (settled, ok bool) {
		at := max(from, g.Blocks[b].First)
		for from = 0; at < g.Blocks[b].Last; at++ { // a path that comes back begins with the block
			code, kind := g.Bytes(at), g.Insns[at].Kind
			if in, known := c.Arch.Next(code); !known || in.Call && !kept {
				return true, known
			}
			if kind == flow.Leave || kind == flow.Quit {
				return true, !result
			}
			reads, w, known := c.Arch.Accesses(code)
			if known && reads.Has(register) || !known && kind == flow.Plain {
				return true, false
			}
			if w.Registers.Has(register) {
				return true, true
			}
		}
		return len(g.Blocks[b].Succs) == 0, true
	})
}

// Choice is an instruction that gives a register one of two numbers.
type Choice struct {
	Addr, Register uint64
	Passed         Registers // see ChoiceBefore
}

// ChoiceBefore returns the last choice in the straight code before a link-time address that is in none of some ranges, and before another choice or that address, and the registers that have
// there what it has made, or what others have made of that: if an instruction in the ranges reads one of them, on the path on which no branch is taken. If that reads the number itself, it is
// the one register that has it.
func (c *Code) ChoiceBefore(at, before uint64, ranges []dw.Range) (out Choice) {
	if c.Graph == nil {
		return out
	}
	n, ok := c.Graph.At(before)
	for next := before; ok && n > 0; {
		n--
		i := &c.Graph.Insns[n]
		if i.Addr+near < at || i.Addr+uint64(i.Size) != next || i.Kind != flow.Plain && i.Kind != flow.Nop {
			break
		}
		next = i.Addr
		code := c.Graph.Bytes(int32(n))
		w, known := c.Arch.Writes(code)
		r := uint64(bits.TrailingZeros64(uint64(w.Registers)))
		if known && w.Registers.One() && c.Arch.Chooses(code, r) && !dw.Covers(ranges, i.Addr) {
			out.Addr, out.Register = i.Addr, r
			out.Passed = c.Unit.Image.passed(&out, at, ranges)
			break
		}
	}
	return out
}

// MayChoose returns which registers ChoiceBefore can say that what was chosen is passed in, and whether these are all that it says if it finds a choice. At most addresses there are none,
// and where instructions begin need not be known then.
func (img *Image) MayChoose(at uint64, ranges []dw.Range) (of Registers, alone bool) {
	arch, sec := insn.For(img.Instructions()), img.SectionAt(at)
	if arch == nil || arch.MayChoose == nil || sec == nil {
		return 0, true
	}
	alone = true
	step, far := uint64(max(1, arch.Fixed)), min(near, at-sec.Addr)
	err := img.View(at-far, far, func(code []byte) {
		for from := at - far; uint64(len(code)) > step; code, from = code[step:], from+step {
			if !arch.MayChoose(code) || !img.Straight(from, at) {
				continue
			}
			if w, ok := arch.Writes(code); ok && w.Registers.One() && !dw.Covers(ranges, from) {
				p := img.passed(&Choice{Addr: from, Register: uint64(bits.TrailingZeros64(uint64(w.Registers)))}, at, ranges)
				alone = alone && (of == 0 || of == p)
				of |= p
			}
		}
	})
	return of, alone && err == nil
}

// passed returns Choice.Passed.
func (img *Image) passed(c *Choice, at uint64, ranges []dw.Range) Registers {
	sec := img.SectionAt(c.Addr)
	if sec == nil {
		return 0
	}
	arch, of, there, itself, read := insn.For(img.Instructions()), Registers(0), Registers(0), Registers(1)<<c.Register, false
	_, _ = img.each(dw.Range{Lo: c.Addr, Hi: min(c.Addr+maxFirst, sec.Addr+sec.Size)}, func(addr uint64, in insn.Insn, code []byte) bool {
		if addr <= at {
			there = of
		}
		switch reads, w, known := arch.Accesses(code); {
		case addr == c.Addr:
			of = 1 << c.Register
		case !in.Onward || in.Call || in.Trap:
			return false
		case in.Branches || in.Nop:
		case !known:
			return false
		case reads&of == 0:
			of, itself = of&^w.Registers, itself&^w.Registers
		case dw.Covers(ranges, addr):
			if read = true; reads&itself != 0 {
				there = itself
			}
			return false
		default:
			of |= w.Registers
			itself &^= w.Registers
		}
		return of != 0
	})
	if !read {
		return 0
	}
	return there
}
