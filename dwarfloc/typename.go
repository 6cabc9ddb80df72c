package dwarfloc

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// Types and enumerators that are known by their names.

// NamedType returns the type that a name, "struct page" or "loff_t", means in a definition at sites whose own unit has no type
// of that name: that of the first unit that has one. It is nil if there is none.
func (img *Image) NamedType(name string) (t *types.Type, err error) {
	err = img.guard(func() (err error) {
		if b := img.types(); b != nil {
			t, err = b.Named(name)
			return err
		}
		if err := img.prepare(false); err != nil {
			return err
		}
		t, err = img.dwarf.Named(nil, name)
		return err
	})
	return t, err
}

// NamedType returns the type that a name, "struct page" or "loff_t", means at the site: that of its unit, or of the first
// unit that has one, or of Options.TypesOf. It is nil if there is none.
func (s *Site) NamedType(name string) (t *types.Type, err error) {
	err = s.Image.guard(func() error {
		if b := s.Image.types(); b != nil {
			t, err = b.Named(name)
		} else {
			t, err = s.u.img.dwarf.Named(s.u.Unit.Unit, name)
		}
		return err
	})
	return t, err
}

// Enumerator returns the value of an enumerator of the site's unit, if no variable of the function
// has its name.
func (s *Site) Enumerator(name string) (value int64, found bool, err error) {
	err = s.Image.guard(func() error {
		value, found, err = s.enumerator(name)
		return err
	})
	return value, found, err
}

func (s *Site) enumerator(name string) (value int64, found bool, err error) {
	if b := s.Image.types(); b != nil {
		if v, err := s.lookup(name); err != nil || v.Reason.Code != loc.ReasonNoSuchVariable {
			return 0, false, err
		}
		return b.Enumerator(name)
	}
	if value, found, err = s.u.img.dwarf.Enumerator(s.u.Unit.Unit, name); err != nil || !found {
		return 0, false, err
	}
	own, err := s.names()
	return value, err == nil && !slices.Contains(own, name), err
}
