package resolve

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
)

// ended returns the reason if a location that holds in the whole body of an inlined instance may not hold behind it any more: the last
// instruction of the body, or one behind that, has changed a register that the location has. The list of another parameter would end there, but a
// location without a list says nothing of what comes after its scope (LLVM writes one where a list's only entry would be the whole scope, which
// a call can end).
func (ev *Evaluator) ended(l *loc.Location) (loc.Reason, error) {
	s := ev.spot
	if s.Kind != entries.Inside || !s.Inlined {
		return loc.Reason{}, nil
	}
	var has []uint64
	eachRegister(l, func(n uint64) {
		if n != uint64(ev.Arch.SP) {
			has = append(has, n)
		}
	})
	if len(has) == 0 {
		return loc.Reason{}, nil
	}
	ranges, err := s.U.Extent(&s.PCs)
	if err != nil || dw.Covers(ranges, s.At.Addr) {
		return loc.Reason{}, err
	}
	c, err := ev.instructionsOf(s)
	if err != nil {
		return loc.Reason{}, err
	}
	written, call := c.WritesSince(ranges, s.At.Addr)
	for _, n := range has {
		if written.Has(n) || call && !slices.Contains(ev.Arch.Preserved, uint16(n)) {
			return loc.Reason{Code: reasons.NotAtSite, Detail: "the last instruction of the body, or one behind it, has changed " + ev.Arch.RegisterName(n)}, nil
		}
	}
	return loc.Reason{}, nil
}
