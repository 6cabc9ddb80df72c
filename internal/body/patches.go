package body

import (
	"maps"
	"slices"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/ktable"
)

// patches are what an image's symbols say about its code, once it is needed: one look at all
// symbols finds them.
type patches struct {
	once   sync.Once
	tables *ktable.Tables
	// stops are functions of neverReturn, by address, and whether they are checks.
	stops map[uint64]bool
	err   error
}

func (img *Image) patched() (*patches, error) {
	p := &img.patches
	p.once.Do(func() { p.err = p.read(img) })
	return p, p.err
}

func (p *patches) read(img *Image) error {
	marks, err := ktable.Find(img.File, slices.Collect(maps.Keys(neverReturn))...)
	if err != nil {
		return err
	}
	p.stops = make(map[uint64]bool)
	for name, check := range neverReturn {
		if addr, ok := marks.Address(name); ok {
			p.stops[addr] = check
		}
	}
	p.tables, err = marks.Tables()
	return err
}
