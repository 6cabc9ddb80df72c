package resolve

import (
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/loc"
)

// MovedOut asks the code about a note in a register that covers no code: the compiler has found nothing there that uses the register. A register that the loop leaves, and a body that has
// instructions in the loop, refute it.
func (e *evidence) MovedOut() (bool, error) {
	s, c := e.s, e.c
	if s.Kind != entries.Inline || s.Own || s.Addr != s.At.Addr || c.Lo != s.Addr || c.Hi != s.Addr || e.v.Loc.Kind != loc.KindRegister || s.PCs.Ranges.Form == 0 {
		return false, nil
	}
	ranges, err := s.U.Extent(&s.PCs)
	if err != nil {
		return false, err
	}
	code, err := e.ev.codeOf(s)
	return err == nil && code.MovedOut(ranges, e.v.Loc.Expr.K, s.Addr), err
}
