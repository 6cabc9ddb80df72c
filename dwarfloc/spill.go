package dwarfloc

import (
	"fmt"

	"github.com/bpfprologue/bpfprologue/loc"
)

// GCC's debug information can name stack memory that holds nothing of the variable
// yet. No reader of it can tell from the debug information alone. Two kinds are known,
// and both become the reason NotStoredYet.
//
// A structure that is passed by value in a register has a slot in the frame for its
// whole scope (DW_OP_fbreg), as if it had been there from the start. At the function's
// first instruction that is below the stack pointer, where nobody keeps anything.
//
// A variable that is spilled is bound to its slot where the store was before GCC's
// second scheduling pass. That pass may move the store below the binding: a memory
// operand of a debug instruction gets no dependence on pending writes (GCC:
// gcc/sched-deps.cc, sched_analyze_2, case MEM). An inlined body that begins in
// between has its parameter in a slot that is written later. Tried in a live kernel:
// at __do_sys_fcntl inlined in __x64_sys_fcntl (Debian 6.12, GCC 12) the slot of arg
// held something else. What gives it away is the list entry's end, exactly behind the
// store: the pass that writes the lists takes the store for a new value of the slot.
//
// A store that writes back what the slot holds anyway looks the same. Then the slot is
// mostly another variable's from before the site on, but that is no proof: in the
// example it is __se_sys_fcntl's arg, which is as wrong. To except such slots would take
// a search through all variables of the out-of-line function, and give back 24 right
// locations of 430,000 in a Debian 6.1 vmlinux with 2 wrong ones (6.12: 27 of 557,000
// with 2). A location that is right becomes a reason there, which is the safe side.

// maxSpillGap is how many bytes of code are looked at. Stores move within a basic block:
// of the 271 in the two kernels the last begins 55 bytes behind its site.
const maxSpillGap = 64

// slot is memory at a fixed distance from a register.
type slot struct {
	base uint64 // DWARF number
	off  int64
	size int64 // bytes that are read
}

// slotEffect is what an instruction does to a slot.
type slotEffect uint8

const (
	slotLost   slotEffect = iota // it reads or changes the slot, or what happens next is not known
	slotKept                     // nothing
	slotStored                   // it writes all of the slot and nothing else
)

// slotDecoder knows an architecture's instructions.
type slotDecoder struct {
	// next says how long the first instruction of some code is, and what it does to a slot.
	next func(code []byte, m slot) (size int, did slotEffect)
	// ends is a cheap test that code without a store of the slot at its end seldom passes.
	ends func(code []byte, m slot) bool
	// frame is the DWARF number of the register that points into a frame besides the
	// stack pointer, in functions that have it so.
	frame uint64
}

// slotDecoders are there by architecture. Without one late stores are not looked for.
var slotDecoders = map[string]*slotDecoder{
	"amd64": {slotX86, endsX86, 6},
}

// notStored returns the reason of a location that reads a slot which is not written
// yet at the site, or the zero Reason.
func (ev *evaluator) notStored(l *loc.Location, t *Type, c *chosen) loc.Reason {
	if l.Kind != loc.KindMemory && l.Kind != loc.KindValue && l.Kind != loc.KindPieces {
		return loc.Reason{} // most are in registers
	}
	s := ev.site
	late := s.Kind == Inline && c.hi > s.Addr && c.hi-s.Addr <= maxSpillGap
	if !late && (s.Kind != Entry || s.Addr != s.fun.start) {
		return loc.Reason{}
	}
	var few [4]slot
	for _, m := range slotsOf(few[:0], l, t) {
		if !late {
			if m.base == uint64(s.u.img.Arch().SP) && m.off < 0 {
				return loc.Reason{Code: loc.ReasonNotStoredYet, Detail: "it is below the stack pointer at the function's entry"}
			}
			continue
		}
		if at, ok := ev.storedLate(m, c.hi); ok {
			return loc.Reason{Code: loc.ReasonNotStoredYet, Detail: fmt.Sprintf("stored at %#x", at)}
		}
	}
	return loc.Reason{}
}

// storedLate returns the address of the instruction that stores a slot for the first
// time and ends at hi. The code from the site to there runs straight on and has no
// other access to the slot. A module's is looked at without its relocations: memory at
// these registers has none.
func (ev *evaluator) storedLate(m slot, hi uint64) (at uint64, ok bool) {
	img := ev.site.u.img
	d := img.decoder
	sp := uint64(img.Arch().SP)
	if d == nil || m.base != sp && m.base != d.frame {
		return 0, false
	}
	code, err := img.Bytes(ev.site.Addr, hi-ev.site.Addr)
	if err != nil || !d.ends(code, m) {
		return 0, false // no code: debug information apart from it
	}
	off, ok := d.storedLast(code, m)
	return ev.site.Addr + uint64(off), ok && (m.base == sp || ev.framedBy(m.base))
}

// storedLast returns where the last instruction of some code begins, when that is the
// first to access a slot, and stores it.
func (d *slotDecoder) storedLast(code []byte, m slot) (at int, ok bool) {
	for at < len(code) {
		n, did := d.next(code[at:], m)
		if did != slotKept {
			return at, did == slotStored && at+n == len(code)
		}
		at += n
	}
	return 0, false
}

// framedBy reports whether the canonical frame address is relative to a register at the
// site. In another function the register may point to an object; the entry of a list
// that has a variable in there ends where it is written to, and is right up to then.
func (ev *evaluator) framedBy(base uint64) bool {
	cfa, r, err := ev.CallFrame()
	if err != nil || r.Code != loc.ReasonNone {
		return false
	}
	in := false
	cfa.Walk(func(e *loc.Expr) { in = in || e.Op == loc.OpReg && e.K == base })
	return in
}

// slotsOf appends the slots that a location of an object of a type reads.
func slotsOf(out []slot, l *loc.Location, t *Type) []slot {
	if l.Kind == loc.KindMemory {
		size, err := t.ByteSize()
		if err != nil {
			size = -1
		}
		out = slotAt(out, l.Expr, size)
	}
	if l.Expr != nil {
		out = slotsIn(out, l.Expr)
	}
	for i := range l.Pieces {
		p := &l.Pieces[i]
		if p.Loc.Kind == loc.KindMemory {
			out = slotAt(out, p.Loc.Expr, int64(p.BitOffset+p.BitSize+7)/8)
		}
		if p.Loc.Expr != nil {
			out = slotsIn(out, p.Loc.Expr)
		}
	}
	return out
}

// slotsIn appends the slots that an expression reads.
func slotsIn(out []slot, e *loc.Expr) []slot {
	if e.Op == loc.OpDeref {
		out = slotAt(out, e.A, int64(e.Size))
	}
	for _, x := range [...]*loc.Expr{e.A, e.B, e.C} {
		if x != nil && x.Op != loc.OpReg && x.Op != loc.OpConst {
			out = slotsIn(out, x)
		}
	}
	return out
}

// slotAt appends the memory at an address that is a register plus a constant.
func slotAt(out []slot, e *loc.Expr, size int64) []slot {
	switch {
	case e.Op == loc.OpReg:
		return append(out, slot{base: e.K, size: size})
	case e.Op == loc.OpAdd && e.A.Op == loc.OpReg && e.B.Op == loc.OpConst:
		return append(out, slot{e.A.K, int64(e.B.K), size})
	}
	return out
}
