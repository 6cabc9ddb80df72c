package dwarfloc

// A location list says where a variable is over ranges of addresses. GCC adds
// views: several source positions can share one machine address, and an entry
// may begin and end at one address while it covers views 2 to 5 of it. The
// machine state is the same at all views of an address, so such an entry is as
// good as any other. The pairs of views stand at DW_AT_GNU_locviews, one pair for
// each bounded entry in order, or in the list itself as DW_LLE_view_pair.
// (GCC: gcc/dwarf2out.cc, output_loc_list and output_loclists_offsets since GCC 8;
// the proposal is DWARF issue 170427.1.)

// Rule says why a location of a list was chosen.
type Rule uint8

const (
	// RuleNone: there was nothing to choose.
	RuleNone Rule = iota
	// RuleConstant: DW_AT_const_value, the same everywhere.
	RuleConstant
	// RuleWhole: one expression that holds all over the variable's scope.
	RuleWhole
	// RuleView: the list's entry that covers the site's address and view.
	RuleView
	// RuleLaterView: the first entry that begins at the site's address with a later
	// view: the variable is bound a few views behind the inlined entry mark, with
	// the machine state unchanged.
	RuleLaterView
	// RuleAddress: the entry that covers the address, of a list without views.
	RuleAddress
	// RuleDefault: DW_LLE_default_location, for addresses that no entry covers.
	RuleDefault
	// RuleGiven: the definition itself names a place.
	RuleGiven
	// RuleABI: the calling convention says where it is.
	RuleABI
	ruleCount
)

var ruleText = [...]struct{ name, text string }{
	RuleNone:      {"none", "nothing to choose from"},
	RuleConstant:  {"constant", "a constant value (DW_AT_const_value)"},
	RuleWhole:     {"whole-scope", "one expression for the whole scope"},
	RuleView:      {"view", "the list entry that covers the address and the view"},
	RuleLaterView: {"later-view", "the first list entry at this address with a later view"},
	RuleAddress:   {"address", "the list entry that covers the address (a list without views)"},
	RuleDefault:   {"default", "the list's default location"},
	RuleGiven:     {"given", "the place that the definition names"},
	RuleABI:       {"abi", "the place that the calling convention says"},
}

// String returns the rule's short, stable name.
func (r Rule) String() string { return ruleText[r].name }

// Text says in words what the rule means.
func (r Rule) Text() string { return ruleText[r].text }

// MarshalText makes JSON carry the name.
func (r Rule) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// chosen is the expression that a list has for a site.
type chosen struct {
	expr []byte
	off  uint64 // of the expression in its section
	sec  string
	rule Rule
	hi   uint64 // end of the list's entry; 0 when it has none
	// others tells that the list has entries, none of which is for the site.
	others bool
}

// choose reads a location list and returns the entry for an address and view.
func (u *unit) choose(loc, views value, addr, view uint64) (chosen, error) {
	sec, d := ".debug_loclists", u.img.loclists
	off := loc.u
	if u.version < 5 {
		sec, d = ".debug_loc", u.img.loc
	} else if loc.form == formLoclistx {
		var err error
		if off, err = u.listOffset(sec, d, u.locBase, loc.u); err != nil {
			return chosen{}, err
		}
	}
	switch loc.form {
	case formSecOffset, formLoclistx, formData4, formData8: // the latter two up to DWARF 3
	default:
		return chosen{}, u.img.errorf(".debug_info", u.off, "form %#x is no location", uint32(loc.form))
	}
	c := chooser{u: u, sec: sec, off: off, addr: addr, view: view, b: buf{d: d, be: u.img.be}}
	c.b.seek(off)
	if views.form != 0 {
		c.hasViews = true
		c.views = buf{d: d, be: u.img.be}
		c.views.seek(views.u)
		// The pairs stand before the list; one that runs into it does not match it.
		if views.u < off && off <= uint64(len(d)) {
			c.views.d = d[:off]
		}
	}
	var err error
	if u.version < 5 {
		err = c.readV4()
	} else {
		err = c.readV5()
	}
	if err != nil {
		return chosen{}, err
	}
	out := c.exact
	switch {
	case out.rule != RuleNone:
	case c.later.rule != RuleNone:
		out = c.later
	default:
		out = c.fallback
	}
	out.sec, out.others = sec, c.seen
	return out, nil
}

type chooser struct {
	u          *unit
	sec        string
	off        uint64
	addr, view uint64
	b          buf
	views      buf // pairs at DW_AT_GNU_locviews
	hasViews   bool
	pair       [2]uint64 // of a DW_LLE_view_pair
	hasPair    bool

	exact, later, fallback chosen
	seen                   bool
}

// done tells that no later entry can be a better answer.
func (c *chooser) done() bool { return c.exact.rule != RuleNone }

// bounded weighs an entry for [lo, hi) against the site.
func (c *chooser) bounded(lo, hi uint64) error {
	viewed := true
	var vlo, vhi uint64
	switch {
	case c.hasPair:
		vlo, vhi = c.pair[0], c.pair[1]
		c.hasPair = false
	case c.hasViews:
		vlo, vhi = c.views.uleb(), c.views.uleb()
		if c.views.bad {
			return c.u.img.errorf(c.sec, c.off, "the list has more entries than its view list (DW_AT_GNU_locviews)")
		}
	default:
		viewed = false
	}
	expr, off := c.expr()
	if c.b.bad {
		return nil // reported by the caller
	}
	c.seen = true
	switch {
	case !viewed:
		if c.addr >= lo && c.addr < hi {
			c.exact = chosen{expr: expr, off: off, rule: RuleAddress, hi: hi}
		}
	case (lo < c.addr || lo == c.addr && vlo <= c.view) && (c.addr < hi || c.addr == hi && c.view < vhi):
		c.exact = chosen{expr: expr, off: off, rule: RuleView, hi: hi}
	case lo == c.addr && vlo > c.view && hi >= lo && c.later.rule == RuleNone:
		c.later = chosen{expr: expr, off: off, rule: RuleLaterView, hi: hi}
	}
	return nil
}

// expr reads an entry's expression.
func (c *chooser) expr() ([]byte, uint64) {
	var n uint64
	if c.u.version < 5 {
		n = uint64(c.b.u16())
	} else {
		n = c.b.uleb()
	}
	off := uint64(c.b.p)
	return c.b.bytes(n), off
}

func (c *chooser) readV4() error {
	u, b := c.u, &c.b
	base := u.lowpc
	for range maxEntries {
		lo, hi := b.uint(int(u.addrSize)), b.uint(int(u.addrSize))
		switch {
		case b.bad:
			return u.img.errorf(c.sec, c.off, "the location list does not end")
		case lo == 0 && hi == 0:
			return nil
		case lo == u.maxAddr():
			base = hi
			continue
		}
		if err := c.bounded(base+lo, base+hi); err != nil {
			return err
		}
		if c.done() {
			return nil
		}
	}
	return u.img.errorf(c.sec, c.off, "the location list has more than %d entries", maxEntries)
}

func (c *chooser) readV5() error {
	u, b := c.u, &c.b
	base := u.lowpc
	for range maxEntries {
		at := b.p
		kind := b.u8()
		var lo, hi uint64
		var e1, e2 error
		switch kind {
		case lleEndOfList:
			if b.bad {
				return u.img.errorf(c.sec, c.off, "the location list does not end")
			}
			return nil
		case lleBaseAddressx:
			if base, e1 = u.addrx(b.uleb()); e1 != nil {
				return e1
			}
			continue
		case lleBaseAddress:
			base = b.uint(int(u.addrSize))
			continue
		case lleGNUViewPair:
			c.pair = [2]uint64{b.uleb(), b.uleb()}
			c.hasPair = true
			continue
		case lleDefaultLocation:
			expr, off := c.expr()
			c.fallback = chosen{expr: expr, off: off, rule: RuleDefault}
			continue
		case lleStartxEndx:
			lo, e1 = u.addrx(b.uleb())
			hi, e2 = u.addrx(b.uleb())
		case lleStartxLength:
			lo, e1 = u.addrx(b.uleb())
			hi = lo + b.uleb()
		case lleOffsetPair:
			lo = base + b.uleb()
			hi = base + b.uleb()
		case lleStartEnd:
			lo, hi = b.uint(int(u.addrSize)), b.uint(int(u.addrSize))
		case lleStartLength:
			lo = b.uint(int(u.addrSize))
			hi = lo + b.uleb()
		default:
			return u.img.errorf(c.sec, uint64(at), "unknown entry kind %#02x", kind)
		}
		if e1 != nil {
			return e1
		}
		if e2 != nil {
			return e2
		}
		if err := c.bounded(lo, hi); err != nil {
			return err
		}
		if b.bad {
			return u.img.errorf(c.sec, c.off, "the location list does not end")
		}
		if c.done() {
			return nil
		}
	}
	return u.img.errorf(c.sec, c.off, "the location list has more than %d entries", maxEntries)
}
