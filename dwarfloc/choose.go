package dwarfloc

import (
	"bytes"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/loc"
)

// A site's address and view decide which entry of a location list holds there. The
// machine state is the same at all views of an address, so an entry that covers only
// later views of the site's address is valid too. [loc.Rule] has the rules in order.

// chosen is a list's expression for a site.
type chosen struct {
	expr   []byte
	off    uint64 // the expression's offset in its section
	sec    string
	rule   loc.Rule
	lo     uint64 // start of the entry's range
	hi     uint64 // end of the entry's range; 0 if it has none
	viewed bool   // the list has views
	later  uint64 // how many views after the site's the entry begins, under rule.LaterView
	// changed is set if the entry follows another one, with another expression, that covers no code: both begin at one address.
	changed bool
	// others is set if the list has any entries with addresses.
	others bool
}

// choose returns the entry of a location list for an address and view. In a list without
// views, the first entry that begins at the address comes before the one that covers it, if
// first is set.
func (u *unit) choose(list, views dw.Value, at place, first bool) (chosen, error) {
	addr, view := at.addr, at.view
	var exact, later, fallback chosen
	seen, viewed := false, false
	var before chosen
	l := u.Locations(list, views)
	for e := (dw.LocEntry{}); exact.rule == rule.None && l.Next(&e); {
		c := chosen{expr: e.Expr, off: e.Off, lo: e.Lo, hi: e.Hi}
		seen, viewed = seen || !e.Default, viewed || e.Viewed
		switch {
		case e.Default:
			fallback, fallback.rule = c, rule.Default
		case !e.Viewed:
			if first && e.Lo == addr && e.Hi == addr {
				exact, exact.rule = c, rule.First
			} else if addr >= e.Lo && addr < e.Hi {
				exact, exact.rule = c, rule.Address
			}
		case (e.Lo < addr || e.Lo == addr && e.VLo <= view) && (addr < e.Hi || addr == e.Hi && view < e.VHi):
			exact, exact.rule = c, rule.View
			exact.changed = before.expr != nil && before.lo == e.Lo && before.hi == e.Lo && !bytes.Equal(before.expr, e.Expr)
		case e.Lo == addr && e.VLo >= view && e.Hi >= e.Lo && later.rule == rule.None:
			later, later.rule, later.later = c, rule.LaterView, e.VLo-view
		}
		before = c
	}
	if l.Err != nil {
		return chosen{}, l.Err
	}
	out := fallback
	switch {
	case exact.rule != rule.None:
		out = exact
	case later.rule != rule.None:
		out = later
	}
	out.sec, out.others, out.viewed = l.Section, seen, viewed
	return out, nil
}
