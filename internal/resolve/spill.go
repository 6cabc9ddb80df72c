package resolve

import (
	"fmt"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
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
func (ev *Evaluator) notStored(l *loc.Location, t *types.Type, x *Var, c *Chosen) loc.Reason {
	if l.Kind != loc.KindMemory && l.Kind != loc.KindValue && l.Kind != loc.KindPieces {
		return loc.Reason{} // most are in registers
	}
	s := ev.spot
	late := s.Kind == Inline && c.Hi > s.At.Addr
	if !late && s.Kind != Entry {
		return loc.Reason{}
	}
	var few [4]body.Slot
	for _, m := range slotsOf(few[:0], l, t) {
		if !late && s.At.Addr != s.Fun.Start {
			if x.Tag == dw.TagFormalParameter && ev.storedInBody(m) {
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

// storedLate returns the link-time address of the instruction that ends at hi and is the
// first to store the slot. The code from the site to there has no branches and no other
// access to the slot.
func (ev *Evaluator) storedLate(m body.Slot, hi uint64) (at uint64, ok bool) {
	img := ev.spot.U.Img
	frame, ok := img.Code.FramePointer()
	sp := uint64(img.Arch().SP)
	if !ok || m.Base != sp && m.Base != frame {
		return 0, false
	}
	at, ok = img.Code.StoredLast(ev.spot.At.Addr, hi, m)
	return at, ok && (m.Base == sp || ev.framedBy(m.Base))
}

// pointeeStoredLate reports whether a value is the address of an object into which an instruction of the caller's stores in the straight code behind
// the site, of a statement that comes before the call: what is read there is what was there before. GCC's second scheduling pass moves such stores too. And it makes one
// store of several that are next to each other, where the last one was.
func (ev *Evaluator) pointeeStoredLate(l *loc.Location, t *types.Type) (late bool, err error) {
	s := ev.spot
	register := l.Kind == loc.KindRegister
	if s.Kind != Inline || s.PCs.Ranges.Form == 0 || !register && l.Kind != loc.KindValue {
		return false, nil
	}
	r, err := t.Resolve()
	if err != nil || r.Kind != types.Pointer {
		return false, nil //nolint:nilerr // the type is asked for elsewhere
	}
	to, err := r.Elem()
	if err != nil {
		return false, nil //nolint:nilerr // likewise
	}
	size, err := to.ByteSize()
	if err != nil || size <= 0 {
		return false, nil //nolint:nilerr // nothing is read there
	}
	var few [1]body.Slot
	at, fixed := fixedAddress(l.Expr)
	switch {
	case register:
		few[0] = body.Slot{Base: l.Expr.K, Size: size}
	case fixed:
		few[0] = body.Slot{Base: body.Absolute, Off: int64(at), Size: size}
	case len(slotAt(few[:0], l.Expr, size)) != 1:
		return false, nil
	}
	// Elsewhere than in the frame only a constant object is known to be set before: one whose members are stored next to each other.
	constant := to.IsConst()
	whole, err := to.Resolve()
	if err != nil {
		return false, nil //nolint:nilerr // likewise
	}
	kernel, err := s.U.Img.Code.IsKernel()
	if err != nil {
		return false, err
	}
	// A kernel has no registers that hold several members.
	if constant && whole.IsRecord() && (fixed || !kernel) || !register && !fixed && ev.frameAddress(l.Expr) {
		if late, err = ev.storedBehind(few[0], constant); late || err != nil {
			return late, err
		}
	}
	if !register {
		return false, nil
	}
	ranges, end, err := ev.bodyEnd()
	if err != nil {
		return false, err
	}
	inFrame := false
	s.U.Img.Code.StoredBehind(s.At.Addr, uint64(ev.Arch.SP), func(addr uint64, _ body.Slot) {
		inFrame = inFrame || addr < end && !dw.Covers(ranges, addr)
	})
	if !inFrame {
		return false, nil
	}
	off, ok, err := s.U.Body.Distance(uint64(ev.Arch.SP), l.Expr.K, s.At.Addr)
	if !ok || err != nil {
		return false, err
	}
	return ev.storedBehind(body.Slot{Base: uint64(ev.Arch.SP), Off: off, Size: size}, constant)
}

// fixedAddress returns the link-time address that an expression is, if it is one.
func fixedAddress(e *loc.Expr) (addr uint64, ok bool) {
	switch {
	case e == nil:
	case e.Op == ops.Addr:
		return e.K, true
	case e.Op == ops.Add && e.A.Op == ops.Addr && e.B.Op == ops.Const:
		return e.A.K + e.B.K, true
	}
	return 0, false
}

// storedBehind reports whether an instruction of the caller's stores into an object in the straight code behind the site, for a statement before the call. constant is
// set for one that the body does not change.
func (ev *Evaluator) storedBehind(o body.Slot, constant bool) (bool, error) {
	s := ev.spot
	type store struct {
		addr uint64
		at   body.Slot
	}
	var stores []store
	s.U.Img.Code.StoredBehind(s.At.Addr, o.Base, func(addr uint64, m body.Slot) {
		if m.Off < o.Off+o.Size && o.Off < m.Off+m.Size {
			stores = append(stores, store{addr, m})
		}
	})
	if len(stores) == 0 {
		return false, nil
	}
	ranges, end, err := ev.bodyEnd()
	if err != nil {
		return false, err
	}
	rows, err := s.U.Body.Rows()
	if err != nil {
		return false, err
	}
	framed := o.Base == uint64(ev.Arch.SP) || o.Base == body.Absolute
	for _, x := range stores {
		row := dw.RowAt(rows, x.addr)
		here := row != nil && row.Line != 0 && uint64(row.File) == s.CallFile && !dw.Covers(ranges, x.addr)
		merged := here && constant && x.at.Size >= 16 && (x.at.Off < o.Off || x.at.Off+x.at.Size > o.Off+o.Size)
		earlier := here && framed && x.addr < end && int(row.Line) <= s.CallLine
		if !merged && !earlier && (!framed || !constant) {
			continue
		}
		c, err := ev.codeOf(s)
		if err != nil {
			return false, err
		}
		if before, own := c.Precedes(s.Rec, x.addr); before && framed && constant || own && (merged || earlier) {
			return true, nil
		}
	}
	return false, nil
}

// bodyEnd returns where the body is, and where its last part begins: what is stored behind that, it does not read.
func (ev *Evaluator) bodyEnd() (ranges []dw.Range, end uint64, err error) {
	s := ev.spot
	if ranges, err = s.U.Extent(&s.PCs); err != nil {
		return nil, 0, err
	}
	for _, r := range ranges {
		end = max(end, r.Lo)
	}
	return ranges, end, nil
}

// stale reports whether a location is an object in the frame, or a pointer to one that the body may not set, of which some bytes need not be there: compilers remove
// stores of members that nobody reads, and GCC moves others behind the body. Padding is no part of an object.
func (ev *Evaluator) stale(l *loc.Location, t *types.Type) (bool, error) {
	if ev.spot.Kind != Inline || l.Kind != loc.KindPieces && (l.Expr == nil || !ev.frameAddress(l.Expr)) {
		return false, nil
	}
	r, err := t.Resolve()
	if err != nil {
		return false, nil //nolint:nilerr // the type is asked for elsewhere
	}
	var few [1]body.Slot
	switch {
	case l.Kind == loc.KindMemory:
		size, err := r.ByteSize()
		if err != nil {
			return false, nil //nolint:nilerr // likewise
		}
		return ev.lacks(slotAt(few[:0], l.Expr, size), r, 0, 0, false)
	case l.Kind == loc.KindPieces:
		at := uint64(0)
		for i := range l.Pieces {
			p := &l.Pieces[i]
			if p.Loc.Kind == loc.KindMemory && p.BitOffset == 0 {
				if is, err := ev.lacks(slotAt(few[:0], p.Loc.Expr, int64(p.BitSize+7)/8), r, at, int64(at/8), false); is || err != nil {
					return is, err
				}
			}
			at += p.BitSize
		}
		return false, nil
	case r.Kind != types.Pointer || l.Kind != loc.KindValue && l.Kind != loc.KindRegister:
		return false, nil
	}
	to, err := r.Elem()
	if err != nil {
		return false, nil //nolint:nilerr // likewise
	}
	// What the body may set need not be there before, as in a constructor: in LLVM's C, one that sets all of it.
	part := !to.IsConst()
	if part && (dw.IsCPlusPlus(ev.spot.U.Lang) || ev.spot.U.Body.GNU()) {
		return false, nil
	}
	if r, err = to.Resolve(); err != nil || !r.IsRecord() {
		return false, nil //nolint:nilerr // of an array it is not known how much is pointed to
	}
	size, err := r.ByteSize()
	if err != nil {
		return false, nil //nolint:nilerr // likewise
	}
	const around = 1 << 12 // the object may be a member
	return ev.lacks(slotAt(few[:0], l.Expr, size), r, 0, around, part)
}

// lacks reports whether bytes of an object with a type, which is at a bit of that and may begin so many bytes before the memory, need not be there; with part, others
// are.
func (ev *Evaluator) lacks(m []body.Slot, t *types.Type, bit uint64, before int64, part bool) (bool, error) {
	if len(m) != 1 || m[0].Base != uint64(ev.Arch.SP) && !ev.framedBy(m[0].Base) {
		return false, nil
	}
	k, of := ev.memory(), markedOf{ev.spot.U, ev.spot.U.Body.Outermost(ev.spot.Rec)}
	if k.computing == of && k.computingFrom == m[0].Base {
		return false, nil
	}
	all, computes, err := ev.spot.U.Body.StoresAll(ev.spot.Rec, ev.spot.At.Addr, m[0])
	if computes {
		k.computing, k.computingFrom = of, m[0].Base
	}
	if all || computes || err != nil {
		return false, err
	}
	c, err := ev.instructionsOf(ev.spot)
	if err != nil {
		return false, err
	}
	parts, _ := c.Stale(ev.spot.At.Addr, m[0].Base, m[0].Off, m[0].Size, before)
	if part && len(parts) == 1 && parts[0] == [2]int64{0, m[0].Size} {
		return false, nil
	}
	for _, p := range parts {
		if padding, err := t.Padding(bit+uint64(p[0])*8, bit+uint64(p[1])*8); err != nil || !padding {
			return true, err
		}
	}
	return false, nil
}

// storedInBody reports whether a slot of the frame is stored only after the end of the prologue, where
// the site is.
func (ev *Evaluator) storedInBody(m body.Slot) bool {
	s, img := ev.spot, ev.spot.U.Img
	frame, ok := img.Code.FramePointer()
	if !ok || m.Base != uint64(img.Arch().SP) && (m.Base != frame || !ev.framedBy(m.Base)) {
		return false
	}
	return img.Code.StoredLater(s.Fun.Start, s.Addr, m)
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
func slotsIn(out []body.Slot, e *loc.Expr) []body.Slot {
	if e.Op == ops.Deref {
		out = slotAt(out, e.A, int64(e.Size))
	}
	for _, x := range [...]*loc.Expr{e.A, e.B, e.C} {
		if x != nil && x.Op != ops.Reg && x.Op != ops.Const {
			out = slotsIn(out, x)
		}
	}
	return out
}

// slotAt appends the memory at an address if that is a register plus a constant.
func slotAt(out []body.Slot, e *loc.Expr, size int64) []body.Slot {
	switch {
	case e.Op == ops.Reg:
		return append(out, body.Slot{Base: e.K, Size: size})
	case e.Op == ops.Add && e.A.Op == ops.Reg && e.B.Op == ops.Const:
		return append(out, body.Slot{Base: e.A.K, Off: int64(e.B.K), Size: size})
	}
	return out
}
