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

// ofEnclosing looks a name up in the function in which the site's is nested, or returns nil.
func (at *visible) ofEnclosing(name string) (*Variable, error) {
	s := at.site
	if !at.aroundRead {
		var err error
		if at.aroundRec, err = s.nestedIn(); err != nil {
			return nil, err
		}
		if at.aroundRec >= 0 {
			if err := s.readAround(&at.around, at.aroundRec); err != nil {
				return nil, err
			}
		}
		at.aroundRead = true
	}
	if at.aroundRec < 0 {
		return nil, nil
	}
	best, _, err := at.around.Find(name, true)
	if best == nil || err != nil {
		return nil, err
	}
	var a resolve.Answer
	if err := at.ev.Enclosing(&a, &best.Var, at.aroundRec); err != nil {
		return nil, err
	}
	v := &Variable{Name: name, Role: RoleLocal, Entries: 1} // it is no parameter of the site's function
	v.set(s, &a)
	return v, nil
}

// readAround reads the variables of a function, without those of its blocks.
func (s *Site) readAround(sc *entries.Scope, rec int32) error {
	e, err := s.u.Entry(s.u.Off + uint64(s.u.Recs[rec].Off))
	if err != nil {
		return err
	}
	return sc.Read(s.at(), e, entries.NoBlocks, true)
}

// nestedIn returns the record of the function in which that of the site is nested, or -1.
func (s *Site) nestedIn() (rec int32, err error) {
	r := &s.u.Recs[s.spot.Rec]
	if r.Flags&index.Inlined != 0 || r.Parent < 0 {
		return -1, nil
	}
	e, err := s.spot.Entry()
	linked := false
	if err == nil {
		err = e.Attrs(func(a dw.Attr, _ dw.Value) { linked = linked || a == dw.AttrStaticLink })
	}
	if !linked {
		return -1, err
	}
	return r.Parent, nil
}
