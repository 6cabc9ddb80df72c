package dwarfloc

import (
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Which entry of a location list holds at a site is a question of its address and its
// view: the machine state is the same at all views of an address, so an entry that covers
// only later views of the site's address is as good as any other. See [loc.Rule] for the
// rules in their order.

// chosen is the expression that a list has for a site.
type chosen struct {
	expr []byte
	off  uint64 // of the expression in its section
	sec  string
	rule loc.Rule
	hi   uint64 // end of the list's entry; 0 if it has none
	// others is set if the list is not empty, but no entry is for the site.
	others bool
}

// choose returns the entry of a location list for an address and view.
func (u *unit) choose(list, views dw.Value, addr, view uint64) (chosen, error) {
	var exact, later, fallback chosen
	seen := false
	sec, err := u.EachLocation(list, views, func(e *dw.LocEntry) bool {
		c := chosen{expr: e.Expr, off: e.Off, hi: e.Hi}
		if e.Whole {
			c.hi, c.rule = 0, loc.RuleDefault
			fallback = c
			return true
		}
		seen = true
		switch {
		case !e.Viewed:
			if addr >= e.Lo && addr < e.Hi {
				exact, exact.rule = c, loc.RuleAddress
			}
		case (e.Lo < addr || e.Lo == addr && e.Vlo <= view) && (addr < e.Hi || addr == e.Hi && view < e.Vhi):
			exact, exact.rule = c, loc.RuleView
		case e.Lo == addr && e.Vlo > view && e.Hi >= e.Lo && later.rule == loc.RuleNone:
			later, later.rule = c, loc.RuleLaterView
		}
		return exact.rule == loc.RuleNone // no later entry can be a better answer
	})
	if err != nil {
		return chosen{}, err
	}
	out := fallback
	switch {
	case exact.rule != loc.RuleNone:
		out = exact
	case later.rule != loc.RuleNone:
		out = later
	}
	out.sec, out.others = sec, seen
	return out, nil
}
