package dwarfloc

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/types"
)

// Types and enumerators that are known by their names.

// typeNamed is inside.ImageType.
func (img *Image) typeNamed(name string) (t *types.Type, err error) {
	err = img.guard(func() (err error) {
		t, err = img.by.namedType(name)
		return err
	})
	return t, err
}

func (img dwarfImage) namedType(name string) (*types.Type, error) {
	if err := img.prepare(false); err != nil {
		return nil, err
	}
	return img.r.Types.Named(nil, name)
}

// namedType is inside.SiteType.
func (s *Site) namedType(name string) (t *types.Type, err error) {
	err = s.Image.guard(func() error {
		t, err = s.by.namedType(s, name)
		return err
	})
	return t, err
}

func (debugInfo) namedType(s *Site, name string) (*types.Type, error) {
	return s.u.img.r.Types.Named(s.u.Unit.Unit.Unit, name)
}

// enumerator is inside.Enumerator.
func (s *Site) enumerator(name string) (value int64, found bool, err error) {
	err = s.Image.guard(func() error {
		value, found, err = s.by.enumerator(s, name)
		return err
	})
	return value, found, err
}

func (debugInfo) enumerator(s *Site, name string) (value int64, found bool, err error) {
	if value, found, err = s.u.img.r.Types.Enumerator(s.u.Unit.Unit.Unit, name); err != nil || !found {
		return 0, false, err
	}
	own, err := s.names()
	return value, err == nil && !slices.Contains(own, name), err
}
