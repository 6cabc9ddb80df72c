package dw

import "sync"

// typeUnits are the units that describe one type each, which other units name by a signature
// (-fdebug-types-section). In DWARF 4 they have a section of their own, .debug_types
// (section 3.1.3), and since DWARF 5 they are in .debug_info. Compilers rarely write them.
type typeUnits struct {
	once sync.Once
	by   map[uint64]*Unit // by signature; of several equal units, the first
}

// IsType reports whether the unit describes one type.
func (u *Unit) IsType() bool { return u.Kind == UnitType || u.Kind == UnitSplitType }

// typeUnit returns the unit with a signature, or nil.
func (d *Data) typeUnit(signature uint64) *Unit {
	d = d.all()
	t := &d.types
	t.once.Do(func() {
		t.by = make(map[uint64]*Unit)
		for i := range d.Units {
			if u := &d.Units[i]; u.IsType() && t.by[u.Signature] == nil {
				t.by[u.Signature] = u
			}
		}
	})
	return t.by[signature]
}
