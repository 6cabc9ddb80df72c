package dw

import (
	"slices"
	"sort"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/bin"
)

// Debug information can be in several sections and files: types in .debug_types, what several programs
// have in common in a supplementary file, split units in files of their own. Their entries get
// offsets as if all sections with units followed each other in one: so one number names an entry, wherever
// it is, and units, references and indices need not know of files.

// part is a section with units.
type part struct {
	from, to uint64 // where it is in Data.Info
	data     *Data  // of its file
	name     string // ".debug_info.dwo"
	refs     uint64 // where the offsets in references of its units count from
	types    bool   // units before DWARF 5 are type units
	split    *split // for units of -gsplit-dwarf; or nil
}

// all returns the data of the image, of which d can be a part.
func (d *Data) all() *Data {
	if d.whole != nil {
		return d.whole
	}
	return d
}

// partAt returns the part with an offset in Info, or nil if all is one part.
func (d *Data) partAt(off uint64) *part {
	parts := d.all().parts
	i := sort.Search(len(parts), func(i int) bool { return parts[i].to > off })
	if i == len(parts) || off < parts[i].from {
		return nil
	}
	return &parts[i]
}

// join appends sections with units to Info.
func (d *Data) join(more []part, sections [][]byte) {
	if len(d.parts) == 0 {
		d.parts = []part{{to: uint64(len(d.Info)), data: d, name: ".debug_info"}}
	}
	at := uint64(len(d.Info))
	for i, s := range sections {
		p := &more[i]
		p.from, p.to = at, at+uint64(len(s))
		if p.data != d {
			p.refs, p.data.base = at, at
		}
		at = p.to
	}
	d.Info = slices.Concat(append([][]byte{d.Info}, sections...)...)
	d.parts = append(d.parts, more...)
	for i := range d.parts {
		d.parts[i].data.Info = d.Info
	}
}

// Joined reports whether the units of several sections or files follow each other in Info.
func (d *Data) Joined() bool { return len(d.all().parts) > 1 }

// place returns the section and the offset there of an offset in Info.
func (d *Data) place(section string, off uint64) (*Data, string, uint64) {
	if section != ".debug_info" {
		return d, section, off
	}
	if p := d.partAt(off); p != nil {
		return p.data, p.name, off - p.from
	}
	return d, section, off
}

// locate makes Errorf name the section and file of an offset in Info.
func (d *Data) locate() {
	d.own = d.Errorf
	d.Errorf = func(section string, off uint64, format string, args ...any) error {
		p, name, at := d.place(section, off)
		return p.own(name, at, format, args...)
	}
}

// UnitAt returns the unit that contains an offset in .debug_info, or nil.
func (d *Data) UnitAt(off uint64) *Unit {
	units := d.all().Units
	i := sort.Search(len(units), func(i int) bool { return units[i].End > off })
	if i == len(units) || off < units[i].First {
		return nil
	}
	return &units[i]
}

// Global returns the offset in Info of the entry to which a reference to another unit, or to another file,
// leads. It is false if that is outside of what it can refer to.
func (u *Unit) Global(v Value) (off uint64, ok bool) {
	from, to := u.From, uint64(len(u.Data.Info))
	switch v.Form {
	case FormGNURefAlt, FormRefSup4, FormRefSup8:
		sup := u.Data.sup
		if sup == nil {
			return 0, false
		}
		from = sup.base
	}
	return from + v.U, v.U < to-from
}

// Local returns the value, in this unit, of a reference to the entry at an offset in Info.
func (u *Unit) Local(off uint64) Value { return Value{Form: FormRefAddr, U: off - u.From} }

// stringSection is a section with strings: those of all files follow each other.
type stringSection struct {
	from uint64
	d    []byte
}

// addStrings gives the strings of a file's .debug_str and .debug_line_str their offsets among all.
func (d *Data) addStrings(of *Data) {
	add := func(all *[]stringSection, own, section []byte) uint64 {
		if *all == nil {
			*all = []stringSection{{0, own}}
		}
		last := (*all)[len(*all)-1]
		from := last.from + uint64(len(last.d))
		*all = append(*all, stringSection{from, section})
		return from
	}
	of.StrFrom = add(&d.strs, d.Str, of.Str)
	of.LineStrFrom = add(&d.lineStrs, d.LineStr, of.LineStr)
}

// EachStr calls f with each .debug_str, or each .debug_line_str, of all files, and the offset of its strings
// among all.
func (d *Data) EachStr(line bool, f func(from uint64, section []byte)) {
	all, own := d.strs, d.Str
	if line {
		all, own = d.lineStrs, d.LineStr
	}
	if all == nil {
		f(0, own)
	}
	for _, s := range all {
		f(s.from, s.d)
	}
}

// StrAt returns a string by its offset among all files' .debug_str, or "" if it is damaged.
func (d *Data) StrAt(off uint64) string { return stringAt(&d.Texts, d.Str, d.strs, off) }

// LineStrAt is StrAt for .debug_line_str.
func (d *Data) LineStrAt(off uint64) string { return stringAt(&d.Texts, d.LineStr, d.lineStrs, off) }

func stringAt(t *bin.Texts, own []byte, all []stringSection, off uint64) string {
	section := own
	if i := sort.Search(len(all), func(i int) bool { return all[i].from > off }); i > 0 {
		section, off = all[i-1].d, off-all[i-1].from
	}
	s, _ := t.At(section, off)
	return s
}

// sectionsOf returns the data of another file of the image.
func (d *Data) sectionsOf(r Related) *Data {
	one := make(map[string][]byte, len(r.Sections))
	for name, sections := range r.Sections {
		if name = strings.TrimSuffix(name, ".dwo"); name != ".debug_info" && name != ".debug_types" && len(sections) > 0 {
			one[name] = sections[0]
		}
	}
	of := New(Sections{Path: r.Path, BigEndian: d.BigEndian, WordSize: d.WordSize, Errorf: r.Errorf}, one)
	of.whole = d
	return of
}

// errorf is the type of Sections.Errorf.
type errorf = func(section string, off uint64, format string, args ...any) error

// EachFile calls f with the data of each file whose units are there: the image's, then the others'.
func (d *Data) EachFile(f func(*Data)) {
	f(d)
	last := d
	for i := range d.parts {
		if p := &d.parts[i]; p.data != last && p.data != d {
			f(p.data)
		}
		last = d.parts[i].data
	}
}

// Supplement returns the data of the supplementary file that the units refer to, or nil.
func (d *Data) Supplement() *Data { return d.sup }

// alternative reports whether a form refers to a supplementary file.
func (f Form) alternative() bool {
	switch f {
	case FormGNURefAlt, FormGNUStrpAlt, FormRefSup4, FormRefSup8, FormStrpSup:
		return true
	}
	return false
}
