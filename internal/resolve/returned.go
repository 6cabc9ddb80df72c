package resolve

import (
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/entries"
)

// Returned looks at the code for which a note holds. An instruction of the body's can also compute what is passed, where nothing else needs that: but the note of such an
// argument does not begin behind the body's statements.
func (e *evidence) Returned() (bool, error) {
	s := e.s
	var from body.Registers
	eachRegister(&e.v.Loc, func(n uint64) {
		if n < body.Followed {
			from |= 1 << n
		}
	})
	if s.Kind != entries.Inline || from == 0 || e.c.Hi <= s.At.Addr || !s.U.Img.Code.WritesBetween(s.At.Addr, e.c.Hi, from, nil) {
		return false, nil
	}
	ranges, err := s.U.Extent(&s.PCs)
	return err == nil && !s.U.Img.Code.WritesBetween(s.At.Addr, e.c.Hi, from, ranges), err
}
