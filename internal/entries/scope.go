package entries

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// Scope holds the entries of a function's variables.
type Scope struct {
	Vars  []Scoped
	named map[string][]int32 // indices of vars, by name; nil if few are looked for: see Index
}

// Scoped is the entry of a variable in a scope.
type Scoped struct {
	Var
	depth  int    // depth of its block; 0 is the function itself
	from   uint64 // the block holds the addresses from here to the site; 0 for the function itself
	inside bool   // the block holds the site
}

// maxBlocks bounds how deeply blocks nest.
const maxBlocks = 64

// Blocks says which lexical blocks a scope has.
type Blocks uint8

const (
	// NoBlocks means none: enough for parameters.
	NoBlocks Blocks = iota
	// PlacedBlocks means all, marked by whether their code holds the spot.
	PlacedBlocks
	// AllBlocks means all; they have no addresses, so none holds the spot.
	AllBlocks
)

// Read adds the variables below an entry.
func (sc *Scope) Read(s *Spot, e dw.Entry, b Blocks, inside bool) error {
	return sc.read(s, e, b, 0, 0, inside)
}

// read adds the variables below an entry, which is the block at a depth, and holds the site from an address on.
func (sc *Scope) read(s *Spot, e dw.Entry, b Blocks, depth int, from uint64, inside bool) error {
	if !e.HasChildren() || depth > maxBlocks {
		return nil
	}
	u := s.U.Img.Of(e.Unit)
	pos, err := u.SkipAttrs(e)
	if err != nil {
		return err
	}
	for {
		c, err := u.Entry(uint64(pos))
		if err != nil || c.IsEnd() {
			return err
		}
		switch c.Tag() {
		case dw.TagFormalParameter, dw.TagVariable:
			sc.Vars = append(sc.Vars, Scoped{depth: depth, from: from, inside: inside})
			end, err := sc.Vars[len(sc.Vars)-1].Read(u, c)
			if err != nil {
				return err
			}
			if !c.HasChildren() {
				pos = end
				continue
			}
		case dw.TagLexicalBlock:
			if b == NoBlocks {
				break
			}
			in, from := inside && b == PlacedBlocks, from
			if in {
				if from, in, err = u.holds(c, s.At.Addr); err != nil {
					return err
				}
			}
			if err := sc.read(s, c, b, depth+1, from, in); err != nil {
				return err
			}
		}
		if pos, err = u.SkipTree(c); err != nil {
			return err
		}
	}
}

// holds reports whether a block's code holds an address, and from where on, or is empty there: then the code was merged into its
// neighbours.
func (u *Unit) holds(block dw.Entry, addr uint64) (from uint64, ok bool, err error) {
	var pcs dw.PCs
	if err := block.Attrs(pcs.Take); err != nil {
		return 0, false, err
	}
	ranges, err := u.Extent(&pcs)
	if err != nil {
		return 0, false, err
	}
	for _, r := range ranges {
		if r.Lo <= addr && addr < r.Hi || r.Lo == addr && r.Hi == addr {
			return r.Lo, true, nil
		}
	}
	return 0, false, nil
}

// Text returns a variable's name, from its own entry or its origin's.
func (x *Var) Text() (string, error) {
	full := *x
	if err := full.Complete(); err != nil {
		return "", err
	}
	return full.U.Text(full.Name), nil
}

// Names returns the sorted names of the variables.
func (sc *Scope) Names() ([]string, error) {
	names := make([]string, len(sc.Vars))
	for i := range sc.Vars {
		var err error
		if names[i], err = sc.Vars[i].Text(); err != nil {
			return nil, err
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Index prepares for many calls of find.
func (sc *Scope) Index() error {
	sc.named = make(map[string][]int32, len(sc.Vars))
	for i := range sc.Vars {
		text, err := sc.Vars[i].Text()
		if err != nil {
			return err
		}
		sc.named[text] = append(sc.named[text], int32(i))
	}
	return nil
}

// each calls f for the variables with a name.
func (sc *Scope) each(name string, f func(x *Scoped)) error {
	if sc.named != nil {
		for _, i := range sc.named[name] {
			f(&sc.Vars[i])
		}
		return nil
	}
	for i := range sc.Vars {
		text, err := sc.Vars[i].Text()
		if err != nil {
			return err
		}
		if text == name {
			f(&sc.Vars[i])
		}
	}
	return nil
}

// InBlock reports whether the variable is one of a block of the function.
func (x *Scoped) InBlock() bool { return x.depth > 0 }

// Find returns the variable with a name in the innermost block that holds the site.
// elsewhere is set if only blocks that do not hold the site have one. begins is set if the body begins at the site: a compiler may have moved
// an instruction of a block there, but what the name means there is what it means outside of blocks.
func (sc *Scope) Find(name string, begins bool) (best *Scoped, elsewhere bool, err error) {
	err = sc.each(name, func(x *Scoped) {
		switch {
		case name == "":
		case !x.inside:
			elsewhere = true
		case best == nil, x.depth == best.depth && x.Better(&best.Var):
			best = x
		case begins && (x.depth == 0) != (best.depth == 0):
			if x.depth == 0 {
				best = x
			}
		case x.depth > best.depth:
			best = x
		}
	})
	return best, elsewhere, err
}

// OfCallers reports whether is returns true for a variable, in scope at the site, of a function that the site is inlined into.
func (s *Spot) OfCallers(is func(x *Scoped) (bool, error)) (bool, error) {
	return s.OfCallersWhile(is, nil)
}

// OfCallersWhile is OfCallers that goes on from a function to the one that it is inlined into only if it has a parameter of which handsOn returns true: what the site is
// passed is then perhaps what that one passed. It always does if handsOn is nil.
func (s *Spot) OfCallersWhile(is func(x *Scoped) (bool, error), handsOn func(x *Scoped) bool) (bool, error) {
	u := s.U
	for rec := s.Rec; u.Recs[rec].Flags&index.Inlined != 0 && u.Recs[rec].Parent >= 0; {
		rec = u.Recs[rec].Parent
		entry, err := u.Entry(u.Off + uint64(u.Recs[rec].Off))
		if err != nil {
			return false, err
		}
		var caller Scope
		if err := caller.Read(s, entry, PlacedBlocks, true); err != nil {
			return false, err
		}
		further := handsOn == nil
		for i := range caller.Vars {
			x := &caller.Vars[i]
			if !x.inside {
				continue
			}
			if found, err := is(x); found || err != nil {
				return found, err
			}
			further = further || x.Tag == dw.TagFormalParameter && handsOn(x)
		}
		if !further {
			break
		}
	}
	return false, nil
}

// Placed returns where a variable in scope is. ok is false if it is nowhere, or damaged, which is reported where it is asked for.
func (s *Spot) Placed(x *Scoped) (its Chosen, ok bool) {
	if x.Location.Form == 0 {
		return its, false
	}
	its = Chosen{Expr: x.Location.Bytes(), Sec: ".debug_info", Off: x.Off, Lo: x.from}
	if !x.Location.IsBlock() {
		var err error
		if its, err = s.U.Choose(x.Location, x.Views, s.At, false); err != nil {
			return its, false
		}
	}
	return its, len(its.Expr) > 0
}
