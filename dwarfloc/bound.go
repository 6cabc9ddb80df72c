package dwarfloc

import (
	"github.com/bpfprologue/bpfprologue/internal/rule"
)

// With views, a list can say what a parameter is before the body's first statement, and what it is after it, at one address.
// It can also lack the first: GCC had no place for the argument, or none that it would write for no code. Two things show that:
//
//   - The entry begins after a statement of the body. GCC binds parameters where a body begins, one view after the row of its
//     declaration. Of the 16,887 parameters at probes in Debian's 6.1 kernel whose entry begins at a later view, 84 begin after a
//     statement, and more than half of those are what it computes: "amount >>= PAGE_SHIFT" of __sk_mem_reclaim, "size--" of
//     get_order, "hash += ..." of in_lookup_hash.
//   - An entry before it begins at the same address, covers no code, and says something else: no instruction has moved the value
//     in between ("a.value &= ..." of tnum_cast).
//
// The rest are arguments that came to their place late. Those are known by a variable of a caller in the same place.

// boundTooLate reports whether the entry that was chosen from a list with views may be of a value that the body assigned.
func (s *Site) boundTooLate(c *chosen) (bool, error) {
	if s.Kind == SiteEntry {
		return false, nil // GCC begins with where an argument is as a whole there, and goes on with its parts
	}
	if c.changed {
		passed, err := s.callersHave(c.expr)
		return !passed && err == nil, err
	}
	if c.rule != rule.LaterView || c.later <= 1 {
		return false, nil
	}
	at := s.here()
	if begun, err := s.u.code.Begun(s.rec, at.addr, at.view, c.later); !begun || err != nil {
		return false, err
	}
	if s.u.signOf(c.expr).constant {
		return true, nil // that a caller has the same constant means nothing
	}
	passed, err := s.callersHave(c.expr)
	return !passed && err == nil, err
}
