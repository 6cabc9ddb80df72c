package dwarfloc

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// scope holds the entries of a function's variables. Params and Lookup choose from it.
type scope struct {
	vars  []scoped
	named map[string][]int32 // indices of vars, by name; nil if few are looked for: see index
}

// scoped is the entry of a variable in a scope.
type scoped struct {
	varEntry
	depth  int  // depth of its block; 0 is the function itself
	inside bool // the block holds the site
	paired bool // it describes a declared parameter: see resolver.params
}

// maxBlocks bounds how deeply blocks nest.
const maxBlocks = 64

// blocks says which lexical blocks a scope has.
type blocks uint8

const (
	noBlocks     blocks = iota // none: enough for parameters
	placedBlocks               // all, marked by whether their code holds the site
	allBlocks                  // all; they have no addresses, so none holds the site
)

// read adds the variables below an entry.
func (sc *scope) read(s *Site, e dw.Entry, b blocks, depth int, inside bool) error {
	if !e.HasChildren() || depth > maxBlocks {
		return nil
	}
	u := s.u.img.of(e.Unit)
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
			sc.vars = append(sc.vars, scoped{depth: depth, inside: inside})
			end, err := sc.vars[len(sc.vars)-1].read(u, c)
			if err != nil {
				return err
			}
			if !c.HasChildren() {
				pos = end
				continue
			}
		case dw.TagLexicalBlock:
			if b == noBlocks {
				break
			}
			in := inside && b == placedBlocks
			if in {
				if in, err = u.holds(c, s.here().addr); err != nil {
					return err
				}
			}
			if err := sc.read(s, c, b, depth+1, in); err != nil {
				return err
			}
		}
		if pos, err = u.SkipTree(c); err != nil {
			return err
		}
	}
}

// holds reports whether a block's code holds an address, or is empty there: then the
// code was merged into its neighbours.
func (u *unit) holds(block dw.Entry, addr uint64) (bool, error) {
	var pcs dw.PCs
	if err := block.Attrs(pcs.Take); err != nil {
		return false, err
	}
	ranges, err := u.Extent(&pcs)
	if err != nil {
		return false, err
	}
	return dw.Covers(ranges, addr) || slices.ContainsFunc(ranges, func(r dw.Range) bool { return r.Lo == addr && r.Hi == addr }), nil
}

// text returns a variable's name, from its own entry or its origin's.
func (x *varEntry) text() (string, error) {
	full := *x
	if err := full.complete(); err != nil {
		return "", err
	}
	return full.u.Text(full.name), nil
}

// index prepares for many calls of find.
func (sc *scope) index() error {
	sc.named = make(map[string][]int32, len(sc.vars))
	for i := range sc.vars {
		text, err := sc.vars[i].text()
		if err != nil {
			return err
		}
		sc.named[text] = append(sc.named[text], int32(i))
	}
	return nil
}

// candidates calls f for the variables with a name.
func (sc *scope) candidates(name string, f func(x *scoped)) error {
	if sc.named != nil {
		for _, i := range sc.named[name] {
			f(&sc.vars[i])
		}
		return nil
	}
	for i := range sc.vars {
		text, err := sc.vars[i].text()
		if err != nil {
			return err
		}
		if text == name {
			f(&sc.vars[i])
		}
	}
	return nil
}

// find returns the variable with a name in the innermost block that holds the site.
// elsewhere is set if only blocks that do not hold the site have one.
func (sc *scope) find(name string) (best *scoped, elsewhere bool, err error) {
	err = sc.candidates(name, func(x *scoped) {
		switch {
		case name == "":
		case !x.inside:
			elsewhere = true
		case best == nil || x.depth > best.depth || x.depth == best.depth && x.better(&best.varEntry):
			best = x
		}
	})
	return best, elsewhere, err
}

// abstract returns the entry that describes the function itself, without addresses:
// the origin of an inlined instance or a clone. ok is false if the site's own entry is
// all there is.
func (s *Site) abstract() (e dw.Entry, ok bool, err error) {
	origin := s.origin
	u := s.u
	for i := 0; origin.Form != 0 && i < index.MaxOrigins; i++ {
		if e, err = u.Target(origin); err != nil {
			return dw.Entry{}, false, err
		}
		u, ok, origin = s.u.img.of(e.Unit), true, dw.Value{}
		if err := e.Attrs(func(a dw.Attr, v dw.Value) {
			if a == dw.AttrAbstractOrigin {
				origin = v
			}
		}); err != nil {
			return dw.Entry{}, false, err
		}
	}
	return e, ok, nil
}
