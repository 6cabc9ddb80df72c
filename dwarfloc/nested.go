package dwarfloc

import (
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/resolve"
)

// GNU C, Ada, Fortran and others have functions inside of functions, which use the variables of the one around them. In a frame of its own such a function has a static
// link, which leads to the frame of that one. Where it is inlined, GCC notes what the variables were before they were moved into that frame: 4 for the parm of "parm++; return
// bar();" that was 4 (gcc.dg/guality/pr37726.c with -O1). Those are not looked up.

// enclosing is the function in which another one is nested.
type enclosing struct {
	rec   int32
	link  dw.Value      // to its frame, from that of the nested one; the form is 0 if there is no such function
	scope entries.Scope // without the variables of its blocks
}

// ofEnclosing looks a name up in the function in which the site's is nested, or returns nil.
func (at *visible) ofEnclosing(name string) (*Variable, error) {
	s := at.site
	if at.around == nil {
		var err error
		if at.around, err = s.nestedIn(); err != nil {
			return nil, err
		}
	}
	best, _, err := at.around.scope.Find(name, true)
	if best == nil || err != nil {
		return nil, err
	}
	var a resolve.Answer
	if err := at.ev.Enclosing(&a, &best.Var, at.around.rec, at.around.link); err != nil {
		return nil, err
	}
	v := &Variable{Name: name, Role: RoleLocal, Entries: 1} // it is no parameter of the site's function
	v.set(s, &a)
	return v, nil
}

// nestedIn returns the function in which that of the site is nested. It has no variables if there is none.
func (s *Site) nestedIn() (*enclosing, error) {
	r := &s.u.Recs[s.spot.Rec]
	around := &enclosing{rec: r.Parent}
	if r.Flags&index.Inlined != 0 || r.Parent < 0 {
		return around, nil
	}
	own, err := s.spot.Entry()
	if err != nil {
		return nil, err
	}
	err = own.Attrs(func(a dw.Attr, v dw.Value) {
		if a == dw.AttrStaticLink {
			around.link = v
		}
	})
	if err != nil || around.link.Form == 0 {
		return around, err
	}
	e, err := s.u.Entry(s.u.Off + uint64(s.u.Recs[r.Parent].Off))
	if err != nil {
		return nil, err
	}
	return around, around.scope.Read(s.at(), e, entries.NoBlocks, true)
}
