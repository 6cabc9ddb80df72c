package resolve

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/arithmetic"
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/convention"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// At a function's first instruction the calling convention says where arguments are. It is
// a second opinion for parameters whose location there is doubtful: those in lists without
// views, which tell the value that a parameter has after the body's first assignments
// (clang leaves out entries that cover no code), and those in a stack frame that the
// function has not set up yet.

// second replaces a parameter's location, or the reason why it has none, by the calling
// convention's if the debug information cannot be right at the site.
//
// decided is false if the convention has no opinion.
func (ev *Evaluator) second(v *Answer, x *entries.Var, c *entries.Chosen) (decided bool, err error) {
	s := ev.spot
	if s.Kind == entries.Entry && v.Reason.Code == reasons.NotStoredYet && x.Tag == dw.TagFormalParameter && s.At.Addr != s.Fun.Start {
		return ev.unstored(v, x)
	}
	if s.At.Addr != s.Fun.Start || x.Tag != dw.TagFormalParameter || !doubtful(v) {
		return false, nil
	}
	// At a line that begins there a parameter can have another value than was passed; but not one that has one place, in a frame that is not set up.
	if s.Kind != entries.Entry && (s.Kind != entries.Line || c.Rule != rule.Whole || v.Reason.Code != reasons.NotAtSite) {
		return false, nil
	}
	// Views tell the value, and so where it will be: of a structure that is passed in registers that can be its slot, before the function has stored it.
	unstored := c.Viewed && v.Reason.Code == reasons.NotStoredYet
	if c.Viewed && !unstored {
		return false, nil
	}
	l, r, k, err := ev.passed.Of(s, x)
	if err != nil || unstored && !s.Takes(&l) {
		return false, err
	}
	located := v.Located()
	same := located && k != convention.Changed && (arithmetic.EqualLocation(&v.Loc, &l) || Truth(v, &l))
	part := v.Reason.Code == reasons.MissingPiece // the parts that are there are asked for by their names
	late := (located || part && k == convention.Changed) && !same && c.Rule == rule.Whole && SetFirst(s, &v.Loc)
	anothers, noted := false, false
	if located && !same {
		if anothers, noted, err = ev.passed.ForAnother(s, x, &v.Loc); err != nil {
			return false, err
		}
	}
	exchanged := false
	if located && !same && !late && k != convention.Kept {
		if exchanged, err = convention.Exchanged(s, x); err != nil {
			return false, err
		}
	}
	switch {
	case same && k == convention.Local: // another parameter may be all that is still passed
		another, err := (&evidence{s: s, x: x, c: c, v: v}).shared()
		return !another, err
	case same:
		return true, nil
	// LLVM drops a part that the function does not use, and lets the callers in its unit pass anything there (DeadArgumentElimination).
	case part && !late && (k == convention.Changed || s.U.Body.GNU() || r.Code != reasons.None || !s.Takes(&l)):
		return false, nil
	case late && (k == convention.Changed || k == convention.Local && !arithmetic.SameRegister(&v.Loc, &l)):
		v.Loc, v.Reason = loc.Location{}, loc.Reason{Code: reasons.Contradictory, Detail: "in a register that the function sets first"}
		return true, nil
	case exchanged:
		v.Loc.Doubt, v.Because = reasons.Reassigned, "it is in an argument register behind that of a later parameter or part, or before that of an earlier one, and no convention passes them so"
		return true, nil
	case k == convention.Changed, k == convention.Local && located && !arithmetic.SameRegister(&v.Loc, &l):
		return false, nil
	case anothers && !noted:
		v.Loc.Doubt, v.Because = reasons.Reassigned, "it is where another parameter is passed by the calling convention, and a statement may have made it that"
		return true, nil
	case located && !late && !anothers && v.Loc.Kind == loc.KindRegister && !slices.Contains(s.U.Img.Arch().Preserved, uint16(v.Loc.Expr.K)):
		return false, nil // the function may have another convention, such as ms_abi
	case located && !s.U.Body.GNU() && !covers(&v.Loc, v.Type) && (k == convention.Local || r.Code != reasons.None || !s.Takes(&l)):
		return false, nil // it lacks the last part, and nothing shows that this is passed, and where
	case r.Code != reasons.None:
		v.Loc, v.Reason = loc.Location{}, r
		return true, nil
	}
	l.Rule = rule.ABI
	// What is a constant is what the body assigns first, or what all callers pass: then they need not set the register. Of an argument
	// without use LLVM has no note, and lets callers in the image pass anything (DeadArgumentElimination); not of one that the function's code reads.
	unset := located && v.Loc.Kind == loc.KindConstant
	if !s.U.Body.GNU() {
		unset = (unset || !located || anothers) && !s.Takes(&l) && s.U.Img.Code.Called(s.Fun.Start)
		if m, ok := ev.frameSlot(&l, v.Type); unset && ok {
			code, err := ev.codeOf(s)
			if err != nil {
				return false, err
			}
			unset = !code.ReadsArgument(m)
		}
	}
	if unset {
		l.Doubt = reasons.Contradictory
	}
	v.Loc, v.Reason = l, loc.Reason{}
	return true, nil
}

// unstored replaces the reason of a parameter that is stored only behind what its unoptimized function's prologue is said to be by the registers in which it was passed, if
// the prologue sets none of them.
func (ev *Evaluator) unstored(v *Answer, x *entries.Var) (decided bool, err error) {
	l, r, k, err := ev.passed.Of(ev.spot, x)
	if err != nil || k == convention.Changed || r.Code != reasons.None || !ev.spot.Unset(&l) {
		return false, err
	}
	l.Rule = rule.ABI
	v.Loc, v.Reason = l, loc.Reason{}
	return true, nil
}

// covers reports whether the parts of a location are as large as a type.
func covers(l *loc.Location, t *types.Type) bool {
	size, err := t.ByteSize()
	if l.Kind != loc.KindPieces || err != nil {
		return true
	}
	bits := uint64(0)
	for i := range l.Pieces {
		bits += l.Pieces[i].BitSize
	}
	return bits >= 8*uint64(size)
}

// SetFirst reports whether a function sets a register of a location that is one for its whole scope, before its first branch or call. LLVM writes such
// a location for an argument that the first instructions load from the stack: what they set holds the argument from then on, up to the end of the
// function, and at its first instruction does not (seen with clang 19 and 22). GCC does for the only note of a variable, wherever it begins: of a clone's parameter it can
// be that behind a move to another register (seen with gcc 11 and 12, without views). But its code may also extend an argument in its register, which
// reads that. Registers that point into the frame are not looked at: spill.go is about what is there.
func SetFirst(s *entries.Spot, l *loc.Location) bool {
	arch := s.U.Img.Arch()
	frame, framed := s.U.Img.Code.FramePointer()
	var of, unread body.Registers
	eachRegister(l, func(n uint64) {
		if n >= 64 || n == uint64(arch.SP) || framed && n == frame {
			return
		}
		of |= 1 << n
		// A register that functions preserve passes nothing: what reads it saves it.
		if s.U.Body.GNU() && !slices.Contains(arch.Preserved, uint16(n)) {
			unread |= 1 << n
		}
	})
	return s.U.Img.Code.SetsFirst(s.Fun.Start, of, unread)
}

// Truth reports whether a location is the low bit of another one, for a truth value.
func Truth(v *Answer, l *loc.Location) bool {
	if v.Loc.Kind != loc.KindValue {
		return false
	}
	e := arithmetic.Unextended(v.Loc.Expr)
	if e.Op != ops.And {
		return false
	}
	t, err := v.Type.Resolve()
	if err != nil || t.Kind != types.Bool {
		return false
	}
	is := loc.Location{Kind: loc.KindValue, Expr: e.A}
	if l.Kind == loc.KindMemory && e.A.Op == ops.Deref && e.A.Size == 1 {
		is = loc.Location{Kind: loc.KindMemory, Expr: e.A.A}
	}
	return e.B.Op == ops.Const && e.B.K == 1 && arithmetic.EqualLocation(&is, l)
}

// doubtful reports whether a location at a function's first instruction may be that of a
// value assigned later: most are the plain register in which the argument was passed. Of the
// reasons, those about a stack frame that is not set up are.
func doubtful(v *Answer) bool {
	switch v.Reason.Code {
	case reasons.None:
		return v.Loc.Kind != loc.KindImplicitPointer && v.Loc.Kind != loc.KindBytes
	case reasons.NotAtSite, reasons.NotStoredYet, reasons.Contradictory, reasons.EntryValueOnly, reasons.MissingPiece:
		return true
	}
	return false
}
