package resolve

import (
	"fmt"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/madeof"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// GCC's debug information can name stack memory that does not hold the variable yet.
// The debug information alone does not show that. Two cases are known, and both get
// the reason reasons.NotStoredYet.
//
// First, a structure passed by value in a register has a slot in the frame for its
// whole scope (DW_OP_fbreg), as if it were there from the start. At the function's first
// instruction that slot is below the stack pointer and holds nothing.
//
// Second, a spilled variable is bound to its slot where the store was before GCC's
// second scheduling pass. That pass may move the store below the binding, because a
// memory operand of a debug instruction gets no dependence on pending writes (GCC:
// gcc/sched-deps.cc, sched_analyze_2, case MEM). If an inlined body begins in between,
// its parameter is in a slot that is written later. Tried in a live kernel: at
// __do_sys_fcntl inlined in __x64_sys_fcntl (Debian 6.12, GCC 12) the slot of arg held
// something else. The sign of this is a list entry that ends right after the store: the
// pass that writes the lists takes the store for a new value of the slot. Stores move
// within a basic block.
//
// A store that writes back what the slot already holds looks the same. Mostly another
// variable then has the slot before the site, but that proves nothing: in the example
// that is __se_sys_fcntl's arg, which is wrong too. To make an exception for such slots,
// all variables of the out-of-line function would have to be searched. In a Debian 6.1
// vmlinux that would recover 24 right locations of 430,000 and 2 wrong ones (6.12: 27 of
// 557,000 and 2). So a right location becomes a reason there, which is the safe choice.

// Third, clang 22 without optimization ends the prologue of a function with variable arguments before it
// stores what is passed to it: DW_LNS_set_prologue_end is at the branch around the stores of vector
// registers (x86-64), which come first.

// notStored returns the reason if a location reads a slot that is not written yet at
// the site, or else the zero Reason.
func (ev *Evaluator) notStored(l *loc.Location, t *types.Type, x *entries.Var, c *entries.Chosen) loc.Reason {
	if l.Kind != loc.KindMemory && l.Kind != loc.KindValue && l.Kind != loc.KindPieces {
		return loc.Reason{} // most are in registers
	}
	s := ev.spot
	late := s.Kind == entries.Inline && c.Hi > s.At.Addr
	if !late && s.Kind != entries.Entry {
		return loc.Reason{}
	}
	var few [4]body.Slot
	for _, m := range slotsOf(few[:0], l, t) {
		if !late && s.At.Addr != s.Fun.Start {
			if x.Tag != dw.TagFormalParameter {
				continue
			}
			if _, only := ev.storedOnly(s.Fun.Start, m); only {
				return loc.Reason{Code: reasons.NotStoredYet, Detail: "it is stored after what the debug information says is the function's prologue"}
			}
			continue
		}
		if !late {
			if m.Base == uint64(s.U.Img.Arch().SP) && m.Off < 0 {
				return loc.Reason{Code: reasons.NotStoredYet, Detail: "it is below the stack pointer at the function's entry"}
			}
			continue
		}
		if at, ok := ev.storedLate(m, c.Hi); ok {
			return loc.Reason{Code: reasons.NotStoredYet, Detail: fmt.Sprintf("stored at %#x", at)}
		}
	}
	return loc.Reason{}
}

// storedNext reports whether a location has, or is computed from, a slot of the frame in which the code behind the site stores a register before it reads the slot, where the list's entry covers
// no code: it ends with the inlined body, which has none, so the sign of the second case cannot be there. What nobody reads any more may be in the slot all the same.
func (ev *Evaluator) storedNext(l *loc.Location, t *types.Type, c *entries.Chosen) bool {
	s := ev.spot
	if s.Kind != entries.Inline || !c.Viewed || c.Lo != s.At.Addr || c.Hi != s.At.Addr {
		return false
	}
	var few [4]body.Slot
	for _, m := range slotsOf(few[:0], l, t) {
		if register, only := ev.storedOnly(s.Addr, m); only && register {
			return true
		}
	}
	return false
}

// storedLate returns the link-time address of the instruction that ends at hi and is the
// first to store the slot. The code from the site to there has no branches and no other
// access to the slot. A register is stored as wide as what was computed in it, and the variable may be its
// lower part; what stores a constant that is wider may clear an object.
func (ev *Evaluator) storedLate(m body.Slot, hi uint64) (at uint64, ok bool) {
	img := ev.spot.U.Img
	frame, ok := img.Code.FramePointer()
	sp := uint64(img.Arch().SP)
	if !ok || m.Base != sp && m.Base != frame {
		return 0, false
	}
	at, _, ok = img.Code.StoredLast(ev.spot.At.Addr, hi, m)
	for !ok && m.Size > 0 && m.Size*2 <= int64(ev.Arch.WordSize) {
		if ev.Arch.BigEndian {
			m.Off -= m.Size
		}
		m.Size *= 2
		var register bool
		at, register, ok = img.Code.StoredLast(ev.spot.At.Addr, hi, m)
		ok = ok && register
	}
	return at, ok && (m.Base == sp || ev.framedBy(m.Base))
}

// storedOnly reports whether a slot of the frame is not stored from an address to the site, and behind that before it is read. register is set if it is what a
// register holds.
func (ev *Evaluator) storedOnly(from uint64, m body.Slot) (register, ok bool) {
	img := ev.spot.U.Img
	frame, ok := img.Code.FramePointer()
	if !ok || m.Base != uint64(img.Arch().SP) && (m.Base != frame || !ev.framedBy(m.Base)) {
		return false, false
	}
	return img.Code.StoredLater(from, ev.spot.Addr, m)
}

// framedBy reports whether the canonical frame address is relative to a register at the
// site. Otherwise the register may point to an object. A list entry for a variable in
// that object also ends where the variable is written, but is right until then.
func (ev *Evaluator) framedBy(base uint64) bool {
	cfa, r, err := ev.CallFrame()
	if err != nil || r.Code != reasons.None {
		return false
	}
	in := false
	cfa.Walk(func(e *loc.Expr) { in = in || e.Op == ops.Reg && e.K == base })
	return in
}

// slotsOf appends the slots that are read to get an object with type t at a location.
func slotsOf(out []body.Slot, l *loc.Location, t *types.Type) []body.Slot {
	out = slotsAt(out, l, t)
	l.Exprs(func(e *loc.Expr) { out = slotsIn(out, e) })
	return out
}

// slotsAt appends those of the object itself.
func slotsAt(out []body.Slot, l *loc.Location, t *types.Type) []body.Slot {
	if l.Kind == loc.KindMemory {
		size, err := t.ByteSize()
		if err != nil {
			size = -1
		}
		out = madeof.SlotAt(out, l.Expr, size)
	}
	for i := range l.Pieces {
		if p := &l.Pieces[i]; p.Loc.Kind == loc.KindMemory {
			out = madeof.SlotAt(out, p.Loc.Expr, int64(p.BitOffset+p.BitSize+7)/8)
		}
	}
	return out
}

// slotsIn appends the slots that an expression reads.
func slotsIn(out []body.Slot, e *loc.Expr) []body.Slot {
	if e.Op == ops.Deref {
		out = madeof.SlotAt(out, e.A, int64(e.Size))
	}
	for _, x := range [...]*loc.Expr{e.A, e.B, e.C} {
		if x != nil && x.Op != ops.Reg && x.Op != ops.Const {
			out = slotsIn(out, x)
		}
	}
	return out
}
