package dwarfloc

import (
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// unset is inside.Unset.
func (s *Site) unset(v *Variable, l *loc.Location, t *types.Type) (unset bool, err error) {
	if s.u == nil || s.Kind != SiteLine || v.Loc.Kind != loc.KindMemory || l.Kind != loc.KindMemory {
		return false, nil
	}
	err = s.Image.guard(func() error {
		unset, err = s.evaluator().Unset(&v.Loc, v.Type, l, t)
		return err
	})
	return unset, err
}
