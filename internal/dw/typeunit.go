package dw

import (
	"slices"
	"sync"
)

// typeUnits are the units that describe one type each, which other units name by a signature
// (-fdebug-types-section). In DWARF 4 they have a section of their own, .debug_types
// (section 3.1.3), and since DWARF 5 they are in .debug_info. Compilers rarely write them, and
// .debug_types hardly any more, so its bytes are simply copied to the end of .debug_info's:
// then entries of both have distinct offsets.
type typeUnits struct {
	from uint64 // where .debug_types begins in Data.Info; 0: there is none
	once sync.Once
	by   map[uint64]*Unit // by signature; of several equal units, the first
}

func (d *Data) appendTypes(section []byte) {
	if len(section) == 0 {
		return
	}
	d.types.from = uint64(len(d.Info))
	d.Info = slices.Concat(d.Info, section)
	in := d.Errorf
	d.Errorf = func(section string, off uint64, format string, args ...any) error {
		if section == ".debug_info" && off >= d.types.from {
			section, off = ".debug_types", off-d.types.from
		}
		return in(section, off, format, args...)
	}
}

// inTypes reports whether an offset in Data.Info is in .debug_types.
func (d *Data) inTypes(off uint64) bool { return d.types.from != 0 && off >= d.types.from }

// typeUnit returns the unit with a signature, or nil.
func (d *Data) typeUnit(signature uint64) *Unit {
	t := &d.types
	t.once.Do(func() {
		t.by = make(map[uint64]*Unit)
		for i := range d.Units {
			if u := &d.Units[i]; u.Kind == UnitType && t.by[u.Signature] == nil {
				t.by[u.Signature] = u
			}
		}
	})
	return t.by[signature]
}
