package types

import (
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/dw"
)

// dwz moves what several units have in common to partial units, which they import (DWARF 5 section 3.2.5). A partial
// unit does not say its language: it is that of the units that import it. Some are only referred to, of which dwz says
// nothing: they have the language of all others, if these have the same, or all are in C.

// partialLangs holds the languages of an image's partial units.
type partialLangs struct {
	once sync.Once
	of   []uint64 // by the number of the unit; 0 if nobody knows
}

// language returns the unit's language, or 0 if nothing says it.
func (u *unitTypes) language() uint64 {
	if u.Lang != 0 {
		return u.Lang
	}
	l := &u.all.langs
	l.once.Do(func() { l.of = u.all.importedLangs() })
	return l.of[u.Number]
}

// importedLangs finds the languages of partial units. Damage is reported where an entry is asked for.
func (d *dwarfTypes) importedLangs() []uint64 {
	of := make([]uint64, len(d.units))
	var mark func(u *dw.Unit, lang uint64)
	mark = func(u *dw.Unit, lang uint64) {
		root, err := u.Entry(u.First)
		if err != nil {
			return
		}
		_ = root.Children(func(c dw.Entry) (bool, error) {
			if c.Tag() != dw.TagImportedUnit {
				return false, nil // they are the first
			}
			var imported dw.Value
			if err := c.Attrs(func(a dw.Attr, v dw.Value) {
				if a == dw.AttrImport {
					imported = v
				}
			}); err != nil {
				return false, err
			}
			p, _, err := u.Ref(imported)
			if err == nil && p.Lang == 0 && of[p.Number] == 0 {
				of[p.Number] = lang
				mark(p, lang)
			}
			return true, nil
		})
	}
	common, mixed := uint64(0), false
	for i := range d.units {
		if u := d.units[i].Unit; u.Load() == nil && u.Lang != 0 {
			mark(u, u.Lang)
			mixed = mixed || common != 0 && common != u.Lang && (!dw.IsC(common) || !dw.IsC(u.Lang))
			common = u.Lang
		}
	}
	for i := range of {
		if of[i] == 0 && !mixed {
			of[i] = common
		}
	}
	return of
}
