package dwarfloc

import (
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/types"

	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/probe"
)

// Types that a definition names, in casts, sizeof and container_of.

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

// typeNamed returns a type by its name: that of the site's unit, or that of the first unit that has
// one. The error for an unknown one is a *mismatch.
func (s *Site) typeNamed(n *probe.TypeName) (*types.Type, error) {
	word := s.Image.Arch().WordSize
	t := types.Common(n.Name, word)
	var err error
	switch b := s.Image.types(); {
	case t != nil:
	case b != nil:
		t, err = b.Named(n.Name)
	default:
		t, err = s.u.img.dwarf.Named(s.u.Unit.Unit, n.Name)
	}
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, &mismatch{Msg: "no type " + strings.TrimSpace(n.Name) + " in the debug information", Expr: &probe.Expr{Pos: n.Pos}}
	}
	for range n.Pointers {
		t = types.PointerTo(t, word)
	}
	return t, nil
}

// enumerator returns the value of an enumerator of the site's unit, if no variable of the function
// has its name.
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
