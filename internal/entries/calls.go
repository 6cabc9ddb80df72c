package entries

import (
	"sort"

	"github.com/bpfprologue/bpfprologue/internal/caller"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// Calls reads the calls of a unit, once.
func (u *Unit) Calls() (*caller.Unit, error) {
	if x := u.calls.Load(); x != nil {
		return x, nil
	}
	x, err := caller.Read(&u.Body, u.Img.callsAt)
	if err == nil {
		u.calls.Store(x)
	}
	return x, err
}

// callsAt returns the calls of the unit with the code at an address, or nil.
func (img *Image) callsAt(addr uint64) (*caller.Unit, error) {
	all := img.unitExtents().all
	i := sort.Search(len(all), func(i int) bool { return all[i].Lo > addr })
	if i == 0 || addr >= all[i-1].Hi {
		return nil, nil
	}
	n := all[i-1].unit
	if err := img.Index.Parallel(1, func(s *index.Scanner, _ int) error { return s.Open(&img.Index.Units[n]) }); err != nil {
		return nil, err
	}
	return img.Units[n].Calls()
}
