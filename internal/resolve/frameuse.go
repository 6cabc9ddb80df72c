package resolve

import (
	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/arithmetic"
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// LLVM can lose the read of a spilled value: it then describes "the slot's contents divided
// by 3" as the slot's address divided by 3 (seen with clang 14 to 16 at -O3; gdb prints
// that). Such a value makes no sense, which shows in two ways: only adding to an address
// gives an address, and a number is no address.

// misusesFrame reports whether a value is computed from the address of a stack slot in a way
// in which no program computes.
func (ev *Evaluator) misusesFrame(l *loc.Location, t *types.Type) bool {
	switch l.Kind {
	case loc.KindValue:
	case loc.KindPieces:
		for i := range l.Pieces {
			if p := &l.Pieces[i]; p.Loc.Kind == loc.KindValue && ev.frameArithmetic(p.Loc.Expr) {
				return true
			}
		}
		return false
	default:
		return false
	}
	if ev.frameArithmetic(l.Expr) {
		return true
	}
	r, err := t.Resolve()
	if err != nil {
		return false
	}
	switch r.Kind {
	case types.Int, types.Bool, types.Char, types.Enum:
		return ev.frameAddress(arithmetic.Unextended(l.Expr))
	}
	return false
}

// frameAddress reports whether an expression is a fixed place in the stack frame: the stack
// pointer, or the register that the canonical frame address is relative to, plus a number.
func (ev *Evaluator) frameAddress(e *loc.Expr) bool {
	if e != nil && e.Op == ops.Add && e.B.Op == ops.Const {
		e = e.A
	}
	if e == nil || e.Op != ops.Reg {
		return false
	}
	frame, ok := ev.spot.U.Img.Code.FramePointer()
	return e.K == uint64(ev.Arch.SP) || ok && e.K == frame && ev.framedBy(e.K)
}

// frameArithmetic reports whether an expression, without what it reads from memory, does
// other arithmetic on a frame address than adding and aligning.
func (ev *Evaluator) frameArithmetic(e *loc.Expr) bool {
	if e == nil || e.Op == ops.Deref || e.Op == ops.Reg || e.Op == ops.Const {
		return false
	}
	switch e.Op {
	case ops.Mul, ops.Div, ops.UDiv, ops.Mod, ops.UMod, ops.Or, ops.Xor, ops.Shl, ops.Shr, ops.Shra, ops.Neg, ops.Not, ops.Clz:
		if ev.frameAddress(arithmetic.Unextended(e.A)) || ev.frameAddress(arithmetic.Unextended(e.B)) {
			return true
		}
	case ops.ZExt, ops.SExt:
		if int(e.Size) < ev.Arch.WordSize && ev.frameAddress(arithmetic.Unextended(e.A)) {
			return true // a part of an address is none
		}
	case ops.And:
		if e.B.Op == ops.Const && int64(e.B.K) >= 0 && ev.frameAddress(arithmetic.Unextended(e.A)) && e.B.K != 0xffffffff {
			return true
		}
	}
	return ev.frameArithmetic(e.A) || ev.frameArithmetic(e.B) || ev.frameArithmetic(e.C)
}

// unread reports whether a pointer is a number more than the address of a slot of the frame in which a pointer of a caller's is, now or elsewhere: what is there was not read
// (seen with clang 14 at -O2, of a member of an object that the caller has a reference to).
func (ev *Evaluator) unread(c *entries.Chosen, l *loc.Location, t *types.Type) (bool, error) {
	s := ev.spot
	if s.Kind != entries.Inline || l.Kind != loc.KindValue || !ev.frameAddress(l.Expr) {
		return false, nil
	}
	first, err := eval.Decode(c.Expr, 0, ev.Encoding)
	if err != nil || first.Next >= len(c.Expr) || op.Opcode(c.Expr[first.Next]) != op.DW_OP_plus_uconst {
		return false, nil //nolint:nilerr // it was evaluated
	}
	if r, err := t.Resolve(); err != nil || r.Kind != types.Pointer {
		return false, nil //nolint:nilerr // the type is asked for elsewhere
	}
	var slot, its loc.Location
	at := func(expr []byte, sec string, off uint64, l *loc.Location) bool {
		*l = loc.Location{}
		r, err := ev.Locate(expr, sec, off, l)
		return err == nil && r.Code == reasons.None && l.Kind == loc.KindMemory
	}
	if !at(c.Expr[:first.Next], c.Sec, c.Off, &slot) {
		return false, nil
	}
	return s.OfCallers(func(x *entries.Scoped) (bool, error) {
		found := false
		switch {
		case x.Location.Form == 0:
		case x.Location.IsBlock():
			found = at(x.Location.Bytes(), ".debug_info", x.Off, &its) && arithmetic.Equal(its.Expr, slot.Expr)
		default:
			list := s.U.Locations(x.Location, x.Views)
			for v := (dw.LocEntry{}); !found && list.Next(&v); {
				found = at(v.Expr, ".debug_loclists", 0, &its) && arithmetic.Equal(its.Expr, slot.Expr)
			}
		}
		if !found {
			return false, nil
		}
		if err := x.Complete(); err != nil {
			return false, err
		}
		t, err := x.U.TypeOf(x.Type)
		if err != nil {
			return false, nil //nolint:nilerr // the type is asked for elsewhere
		}
		r, err := t.Resolve()
		return err == nil && r.Kind == types.Pointer, nil //nolint:nilerr // likewise
	})
}

// And it can lose the extension of a number: it describes a parameter of 64 bits as the slot to which it spilled the 32 of them that the caller has, from
// which each use extends them again (seen with clang 14 at -O1, -O2 and -Os). The code stores less to that slot than the type has.

// storedNarrow reports whether an object of an inlined body is in a slot of the frame to which the code stores fewer bytes alone.
func (ev *Evaluator) storedNarrow(l *loc.Location, t *types.Type) (bool, error) {
	if l.Kind != loc.KindMemory || ev.spot.Kind != entries.Inline {
		return false, nil
	}
	if r, err := t.Resolve(); err != nil || r.Kind != types.Int && r.Kind != types.Enum && r.Kind != types.Pointer {
		return false, nil //nolint:nilerr // the type is asked for elsewhere
	}
	var few [2]body.Slot
	slots := slotsOf(few[:0], l, t)
	if len(slots) != 1 || slots[0].Size < 2 || slots[0].Base != uint64(ev.Arch.SP) && !ev.framedBy(slots[0].Base) {
		return false, nil
	}
	c, err := ev.codeOf(ev.spot)
	return err == nil && c.StoredNarrow(slots[0]), err
}

// leftBehind reports whether a parameter of an inlined body is in a slot of the frame that no instruction reads any more, while the body uses a register that is the slot's on some
// paths alone.
func (ev *Evaluator) leftBehind(l *loc.Location, t *types.Type) (bool, error) {
	if l.Kind != loc.KindMemory || ev.spot.Kind != entries.Inline {
		return false, nil
	}
	m, ok := ev.frameSlot(l, t)
	if !ok || m.Size > int64(ev.Arch.WordSize) {
		return false, nil
	}
	c, err := ev.codeOf(ev.spot)
	return err == nil && c.LeftBehind(ev.spot.Rec, ev.spot.At.Addr, m), err
}
