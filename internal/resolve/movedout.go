package resolve

import (
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/loc"
)

// MovedOut asks the code about a note in a register that covers no code: the compiler has found nothing there that uses the register. A register that the loop leaves, and a body that has
// instructions in the loop, refute it. So does a body that has made what it made of others alone: of "i != *p * 3" in a loop it makes the number in front of it, and the comparison is the
// caller's branch. At the only way that is so too, where the body reads in front of the loop, once, what others have left in the register, and no other parameter is noted there.
func (e *evidence) MovedOut() (bool, error) {
	s, c := e.s, e.c
	if s.Kind != entries.Inline || s.Addr != s.At.Addr || c.Lo != s.Addr || c.Hi != s.Addr || e.v.Loc.Kind != loc.KindRegister || s.PCs.Ranges.Form == 0 {
		return false, nil
	}
	ranges, err := s.U.Extent(&s.PCs)
	if err != nil || dw.Covers(ranges, s.Addr) { // the loop has an instruction of it
		return false, err
	}
	// What takes little first: at the only way there are many more of such notes.
	shared, err := e.shared()
	if err != nil || s.Own && (shared || !s.U.Body.Image.MayRead(ranges, e.v.Loc.Expr.K)) {
		return false, err
	}
	code, err := e.ev.instructionsOf(s)
	if err != nil {
		return false, err
	}
	out, read := code.MovedOut(ranges, e.v.Loc.Expr.K, s.Addr)
	return out && (read && !shared || !s.Own && e.mayRead(code, ranges)), nil
}

// mayRead reports whether an instruction in some ranges may read what the list of the variable says that it is there: one reads the register, or the list has more than registers and numbers.
func (e *evidence) mayRead(code *body.Code, ranges []dw.Range) bool {
	l := e.s.U.Locations(e.x.Location, e.x.Views)
	for v := (dw.LocEntry{}); l.Next(&v); {
		n, in := eval.RegisterOf(v.Expr)
		switch {
		case in && code.ReadsIn(ranges, dw.Range{Lo: v.Lo, Hi: v.Hi}, n), !in && !signOf(e.s.U, v.Expr).constant:
			return true
		}
	}
	return l.Err != nil
}
