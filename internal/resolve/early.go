package resolve

import (
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// referredStoredEarly reports whether a value is a reference to an object into which an instruction of the body's may have stored in the straight code before
// the site: GCC's second scheduling pass moves instructions of a body ahead of its first marker. That of their own statement then comes behind them. What a
// reference refers to is fetched with it; a pointer alone is right all the same.
func (ev *Evaluator) referredStoredEarly(l *loc.Location, t *types.Type) (bool, error) {
	s := ev.spot
	if s.Kind != entries.Inline || s.PCs.Ranges.Form == 0 || l.Kind != loc.KindRegister && l.Kind != loc.KindValue {
		return false, nil
	}
	r, err := t.Resolve()
	if err != nil || r.Kind != types.Pointer || r.Word() == "*" {
		return false, nil //nolint:nilerr // the type is asked for elsewhere
	}
	if _, constant, err := pointedTo(r); err != nil || constant {
		return false, nil //nolint:nilerr // nothing is read there, or the body stores nothing there
	}
	ranges, err := s.U.Extent(&s.PCs)
	if err != nil {
		return false, err
	}
	return s.U.Body.StoresEarly(ranges, s.At.Addr)
}
