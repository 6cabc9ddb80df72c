package dwarfloc

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/inside/hooks"
)

// SiteKind says what a Site marks: a function entry, an inlined instance, a source line or
// an instruction.
//
//   - SiteEntry: the start of a function's own, out-of-line code, or of a clone's
//   - SiteInline: the start of an inlined instance
//   - SiteLine: where a source line begins in the body of a function, out of line or
//     inlined: see LineSites
//   - SiteInstruction: an instruction at a given address: see SiteAt
//   - SiteExit: the end of a run of an inlined instance's body
type SiteKind uint8

const (
	// SiteEntry is the start of a function's own, out-of-line code, or of a clone's.
	SiteEntry SiteKind = iota
	// SiteInline is the start of an inlined instance.
	SiteInline
	// SiteLine is where a source line begins in the body of a function, out of line or
	// inlined: see LineSites.
	SiteLine
	// SiteInstruction is an instruction at a given address: see SiteAt.
	SiteInstruction
	// SiteExit is where a run of an inlined instance's body ends.
	SiteExit
)

var siteKindNames = [...]string{"entry", "inline", "line", "address", "exit"}

// String returns "entry", "inline", "line", "address" or "exit".
func (k SiteKind) String() string {
	if int(k) < len(siteKindNames) {
		return siteKindNames[k]
	}
	return fmt.Sprintf("kind-%d", uint8(k))
}

// Site is a place where a function's body begins, or a place inside a body: see SiteKind.
type Site struct {
	Kind SiteKind
	Addr uint64 // link-time address
	View uint64 // location view number at the address; 0 at an entry
	DIE  uint64 // offset in .debug_info of the function's or the inlined instance's entry

	Image *Image // the image that the site is in

	Function string // the function's name in the debug information
	Symbol   string // symbol whose code holds the address, or ""
	Offset   uint64 // bytes from the symbol's start
	Section  string // section that holds the address

	// Semaphore is the link-time address of a counter in the program, of 2 bytes, or 0. The site, one of a statically defined probe, is only
	// passed while that is not 0: whoever attaches a probe there has it incremented, by perf_event_open's ref_ctr_offset, for example.
	Semaphore uint64

	// AfterPrologue is set if the site is not the function's first instruction but the
	// first one after its prologue. In code built without optimization, parameters are
	// not in their locations before.
	AfterPrologue bool

	// LocalEntry is set if the function has a second entry for callers in the same image, and the site, where its
	// code or a body inlined at its beginning begins, is there: on ppc64el callers from elsewhere pass it too. What is
	// before it computes a register that the compiler does not use for anything else.
	LocalEntry bool

	// File and Line are the source position if the kind is SiteLine or SiteInstruction.
	// File is "" if the debug information does not say.
	File string
	Line int

	// CallFile and CallLine say where an inlined instance was called from: a position
	// in the function Callers[0].
	CallFile string
	CallLine int
	// Callers lists the functions that an inlined instance is nested in, innermost first;
	// the last one is the out-of-line function that contains its code.
	Callers []Caller

	// Way is which of the places it is where a run of an inlined instance's body begins or ends.
	Way Way

	by siteSource // what answers; nil in a site that was not found in an image

	u         *unit
	spot      entries.Spot // where its body begins
	described bool
	reused    bool       // EachSite will reuse it
	resolvers *resolvers // EachSite's, for this worker, or nil

	identity hooks.Body    // which body it is of, of a site that is kept
	state    entries.Place // where the site's state is known, if that is not its address: see here

	before    []uint64        // see Before
	behind    bool            // straight code leads there from a loop of another body
	entered   entries.Entered // what its way into the body says of enteredAt
	enteredAt uint64
	repeats   bool // Way.Again, for what a probe sees of its own function

	body   uint64 // for SiteLine and SiteInstruction: link-time address where the body begins
	inside bool   // for these kinds: the body is an inlined instance
	early  bool   // in the prologue of code built without optimization

	returning bool // a return instruction: see Returns
	jumps     bool // it is a jump to another function, which returns in its place
}

// Way is a place where a run of a body begins or ends.
type Way struct {
	// Number counts them from 1, and Of is how many there are. Both are 0 if they are not known.
	Number, Of int
	// Unknown is why the ways into a body are not known, if they were asked for: some of its runs may not pass the site.
	Unknown string
	// Again is set if a probe at the site also fires when no run of the body begins, or ends, there.
	Again bool
	// Shared is set if Again is, since the compiler has made the function one with another that does the same: a hit can be of a run of that.
	Shared bool
}

// Caller is a function that a site is inlined into. CallFile and CallLine say where it
// was itself called from, for all but the last of a site's callers.
type Caller struct {
	Function string
	// Qualified is the name as Site.QualifiedName returns it.
	Qualified string
	CallFile  string
	CallLine  int
}

// Inlined reports whether the site is the start of an inlined instance, or inside
// one.
func (s *Site) Inlined() bool { return s.Kind == SiteInline || s.inside }

// SymbolOffset prints symbol+offset: "vdso_fault+0x5d". Without a symbol it is the
// address.
func (s *Site) SymbolOffset() string {
	switch {
	case s.Symbol == "":
		return "0x" + strconv.FormatUint(s.Addr, 16)
	case s.Offset == 0:
		return s.Symbol
	}
	return s.Symbol + "+0x" + strconv.FormatUint(s.Offset, 16)
}

// String says in a few words where the site is: "get_page inlined in
// vdso_fault+0x5d", "vfs_read". A Site without an image prints only its symbol plus offset,
// or its address.
func (s *Site) String() string {
	if s.by == nil || s.by.describe(s) != nil {
		return s.SymbolOffset()
	}
	name, place := s.Function, s.Place()
	if q, err := s.QualifiedName(); err == nil {
		name = q
	}
	if s.Kind == SiteLine {
		name = s.File + ":" + strconv.Itoa(s.Line) + " (" + name + ")"
	}
	switch {
	case s.Kind == SiteExit:
		return name + " ends in " + place
	case s.Inlined():
		return name + " inlined in " + place
	case place == name:
		return name
	}
	return name + " at " + place
}

// atOffset is inside.At.
func (s *Site) atOffset(off uint64) (at *Site, ok bool, err error) {
	if s.Kind != SiteEntry {
		return nil, false, nil
	}
	return s.by.at(s, off)
}

func (debugInfo) at(s *Site, off uint64) (at *Site, ok bool, err error) {
	err = s.u.img.guard(func() error {
		addr := s.spot.Start() + off
		ranges, err := s.u.Extent(&s.spot.PCs)
		if err != nil || !dw.Covers(ranges, addr) || addr < s.spot.Start() {
			return err
		}
		if at, err = s.keptCopy(); err != nil {
			return err
		}
		ok = true
		at.moveTo(entries.Place{Addr: addr, View: 0})
		at.early = s.AfterPrologue && addr < s.Addr
		at.locateSymbol(s.Function)
		return nil
	})
	return at, ok && err == nil, err
}

// locateSymbol sets a site's symbol.
func (s *Site) locateSymbol(want string) {
	s.Symbol, s.Offset = "", 0
	s.by.locate(s, want)
}

func (debugInfo) locate(s *Site, want string) {
	if sym := s.Image.file.SymbolAt(s.Addr, want); sym != nil {
		s.Symbol, s.Offset = sym.Name, s.Addr-sym.Addr
	}
}

// site reads a record's site into s, which may hold another site in the same unit. ok is
// false for code that is not in the image.
func (u *unit) site(i int32, s *Site) (ok bool, err error) {
	// A literal would be built on the stack and copied: a Site is large.
	*s = Site{}
	s.reused, s.by, s.u, s.Image = true, debugInfo{}, u, u.img
	ok, err = u.Read(i, &s.spot)
	s.DIE, s.CallLine = u.Off+uint64(u.Recs[i].Off), s.spot.CallLine
	if err != nil || !ok {
		return false, err
	}
	if s.spot.Inlined {
		s.Kind = SiteInline
	}
	s.Addr, s.View, s.AfterPrologue = s.spot.Addr, s.spot.At.View, s.spot.AfterPrologue
	if local, ok := u.img.file.LocalEntry(s.Addr); ok {
		s.state = s.spot.At
		s.Addr, s.LocalEntry = local, true
	}
	return true, nil
}

// moveTo makes it a site of another instruction of its body.
func (s *Site) moveTo(p entries.Place) {
	if s.LocalEntry && p.Addr != s.Addr {
		s.state, s.LocalEntry = entries.Place{}, false
	}
	s.Addr, s.View, s.AfterPrologue = p.Addr, p.View, false
}

// here returns the address and view at which variables are resolved: the site's, or where the
// jump at the site's address leads.
func (s *Site) here() entries.Place {
	if s.state != (entries.Place{}) {
		return s.state
	}
	return entries.Place{Addr: s.Addr, View: s.View}
}

// setSpot makes a spot that at which the site's variables are resolved.
func (s *Site) setSpot(at *entries.Spot) {
	*at = s.spot
	at.Kind, at.Addr, at.At, at.Body, at.AfterPrologue, at.Early = spotKinds[s.Kind], s.Addr, s.here(), s.body, s.AfterPrologue, s.early
	at.Again, at.Behind = s.repeats, s.behind
	if at.Own = *at == s.spot; at.At.Addr == s.enteredAt {
		at.Entered = s.entered
	}
}

var spotKinds = [...]entries.Kind{
	SiteEntry: entries.Entry, SiteInline: entries.Inline, SiteLine: entries.Line, SiteInstruction: entries.Inside, SiteExit: entries.Inside,
}

// describe sets the fields that EachSite leaves empty: names, callers, symbol and
// section.
func (debugInfo) describe(s *Site) error {
	switch {
	case s.described:
		return nil
	case s.reused:
		return s.readNames() // EachSite has called guard
	}
	return s.u.img.guard(s.readNames)
}

func (s *Site) readNames() error {
	u := s.u
	s.Function = u.img.r.Index.NameOf(u.NameRefOf(&u.Recs[s.spot.Rec]))
	if s.Inlined() {
		s.CallFile = u.File(s.spot.CallFile)
		if err := s.readCallers(); err != nil {
			return err
		}
	}
	s.describeAddress()
	s.described = true
	return nil
}

// describeAddress sets the symbol and the section.
func (s *Site) describeAddress() {
	if sec := s.Image.file.SectionAt(s.Addr); sec != nil {
		s.Section = sec.Name
	}
	want := s.Function
	if n := len(s.Callers); n > 0 {
		want = s.Callers[n-1].Function
	}
	s.locateSymbol(want)
}

// evidence is inside.Evidence.
func (s *Site) evidence() string {
	if a, ok := s.by.(*answeredSite); ok {
		return a.Evidence
	}
	return ""
}

// Ranges returns the code of the body that begins at the site, as ranges of link-time
// addresses, [from, to). There may be several, or none if the body was merged into its
// neighbours.
func (s *Site) Ranges() ([][2]uint64, error) {
	return s.by.ranges(s)
}

func (debugInfo) ranges(s *Site) ([][2]uint64, error) {
	var out [][2]uint64
	err := s.u.img.guard(func() error {
		ranges, err := s.u.Extent(&s.spot.PCs)
		for _, r := range ranges {
			out = append(out, [2]uint64{r.Lo, r.Hi})
		}
		return err
	})
	return out, err
}

// FileOffset returns the offset in the file, in bytes, of the site's first byte: where a uprobe is attached. It is an error if no
// segment loads the address from the file.
func (s *Site) FileOffset() (uint64, error) { return s.Image.file.FileOffset(s.Addr) }

// keptCopy returns a copy of a site that EachSite passes. The copy may be kept and used by
// several goroutines, and all of its fields are set.
func (s *Site) keptCopy() (*Site, error) {
	c := *s
	c.before = slices.Clone(s.before)
	c.keep()
	return &c, c.by.describe(&c)
}

// keep makes a site safe for several goroutines: nothing in it changes any more.
func (s *Site) keep() {
	if s.reused {
		s.identity = s.by.body(s) // which is asked for when probes are set
	}
	s.reused, s.resolvers = false, nil
}

// chain is the callers of the instances that a record encloses. Those of a deep chain can be many:
// instances beside each other share them.
type chain struct {
	parent  int32
	callers []Caller
}

// readCallers sets Callers from the records that enclose an inlined instance.
func (s *Site) readCallers() error {
	u, parent := s.u, s.u.Recs[s.spot.Rec].Parent
	if last := u.chain.Load(); last != nil && last.parent == parent {
		s.Callers = last.callers
		return nil
	}
	callers, err := s.enclosing()
	if err != nil {
		return err
	}
	s.Callers = callers
	u.chain.Store(&chain{parent, s.Callers})
	return nil
}

func (s *Site) enclosing() (out []Caller, err error) {
	u, depth := s.u, 0
	for p := u.Recs[s.spot.Rec].Parent; p >= 0; p = u.Recs[p].Parent {
		if depth++; u.Recs[p].Flags&index.Inlined == 0 {
			break
		}
	}
	if depth == 0 {
		return nil, nil
	}
	out = make([]Caller, 0, depth)
	for p := u.Recs[s.spot.Rec].Parent; p >= 0; p = u.Recs[p].Parent {
		r := &u.Recs[p]
		c := Caller{Function: u.img.r.Index.NameOf(u.NameRefOf(r))}
		c.Qualified = c.Function
		if r.Flags&index.Inlined == 0 && !u.qualifies() {
			return append(out, c), nil
		}
		e, err := u.Entry(u.Off + uint64(r.Off))
		if err != nil {
			return nil, err
		}
		if u.qualifies() {
			q, err := u.img.names.Of(e)
			if err != nil {
				return nil, err
			}
			c.Qualified = cmp.Or(q, c.Function)
		}
		if r.Flags&index.Inlined == 0 {
			return append(out, c), nil
		}
		var file uint64
		err = e.Attrs(func(a dw.Attr, v dw.Value) {
			switch a {
			case dw.AttrCallFile:
				file = v.U
			case dw.AttrCallLine:
				c.CallLine = int(v.U)
			}
		})
		if err != nil {
			return nil, err
		}
		c.CallFile = u.File(file)
		out = append(out, c)
	}
	return out, nil
}
