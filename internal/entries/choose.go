package entries

import (
	"bytes"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/loc"
)

// A site's address and view decide which entry of a location list holds there. The
// machine state is the same at all views of an address, so an entry that covers only
// later views of the site's address is valid too. [loc.Rule] has the rules in order.

// Chosen is a list's expression for a site.
type Chosen struct {
	Expr   []byte
	Off    uint64 // the expression's offset in its section
	Sec    string
	Rule   loc.Rule
	Lo     uint64 // start of the entry's range
	Hi     uint64 // end of the entry's range; 0 if it has none
	VLo    uint64 // its view
	Viewed bool   // the list has views
	Later  uint64 // how many views after the site's the entry begins, under rule.LaterView
	// Changed is set if the entry follows another one, with another expression, that covers no code: both begin at one address.
	Changed bool
	// Others is set if the list has any entries with addresses.
	Others bool
}

// Choose returns the entry of a location list for an address and view. In a list without
// views, the first entry that begins at the address comes before the one that covers it, if
// first is set.
func (u *Unit) Choose(list, views dw.Value, at Place, first bool) (Chosen, error) {
	addr, view := at.Addr, at.View
	var exact, later, fallback Chosen
	seen, viewed := false, false
	var before dw.LocEntry
	l := u.Locations(list, views)
	for e := (dw.LocEntry{}); exact.Rule == rule.None && l.Next(&e); before = e {
		seen, viewed = seen || !e.Default, viewed || e.Viewed
		switch {
		case e.Default:
			fallback = chosen(&e, rule.Default)
		case !e.Viewed:
			if first && e.Lo == addr && e.Hi == addr {
				exact = chosen(&e, rule.First)
			} else if addr >= e.Lo && addr < e.Hi {
				exact = chosen(&e, rule.Address)
			}
		case (e.Lo < addr || e.Lo == addr && e.VLo <= view) && (addr < e.Hi || addr == e.Hi && view < e.VHi):
			exact = chosen(&e, rule.View)
			exact.Changed = before.Expr != nil && before.Lo == e.Lo && before.Hi == e.Lo && !bytes.Equal(before.Expr, e.Expr)
		case e.Lo == addr && e.VLo >= view && e.Hi >= e.Lo && later.Rule == rule.None:
			later = chosen(&e, rule.LaterView)
			later.Later = e.VLo - view
		}
	}
	if l.Err != nil {
		return Chosen{}, l.Err
	}
	out := fallback
	switch {
	case exact.Rule != rule.None:
		out = exact
	case later.Rule != rule.None:
		out = later
	}
	out.Sec, out.Others, out.Viewed = l.Section, seen, viewed
	return out, nil
}

// Note returns the expression that a parameter has at the spot: of entries that begin there without views, that of the first.
func (s *Spot) Note(x *Var) (expr []byte, err error) {
	if x.Location.IsBlock() {
		return x.Location.Bytes(), nil
	}
	c, err := x.U.Choose(x.Location, x.Views, s.At, true)
	return c.Expr, err
}

func chosen(e *dw.LocEntry, by loc.Rule) Chosen {
	return Chosen{Expr: e.Expr, Off: e.Off, Lo: e.Lo, VLo: e.VLo, Hi: e.Hi, Rule: by}
}
