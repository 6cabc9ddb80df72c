package dw

import (
	"bytes"
	"encoding/binary"

	"github.com/bpfprologue/bpfprologue/internal/bin"
)

// With -gsplit-dwarf a compiler leaves a skeleton of each unit in the object file: addresses and lines,
// which the linker changes. All else is in a .dwo file, whose sections have names that end in ".dwo", or
// with those of other units in a package (.dwp). (DWARF 5 section 3.1.2 and 7.3.2; before that a GNU
// extension, https://gcc.gnu.org/wiki/DebugFission.) Both have one number, by which they belong together.
//
// A skeleton is not one of Data.Units: the split unit stands for both. With -fsplit-dwarf-inlining a skeleton
// has functions and inlined instances too, without parameters, for readers without the other file.

// split tells which units of a part are the other halves of skeletons.
type split struct {
	units map[uint64]*Unit // skeletons, by the offset of the split unit in the part
	pack  *pack            // nil: a .dwo file
}

// take completes a split unit. It is false if the image has no skeleton of it.
func (s *split) take(p *part, u *Unit) bool {
	if s.pack != nil {
		return s.pack.take(p, u)
	}
	u.Skeleton = s.units[u.Off-p.from]
	return u.Skeleton != nil || u.IsType()
}

// hasDwoName reports whether any abbreviation can have the name of a .dwo file: it searches for the bytes of
// DW_AT_dwo_name or DW_AT_GNU_dwo_name with the form of a string. They can also match by chance.
func (d *Data) hasDwoName() bool {
	if len(d.Addr) == 0 {
		return false // skeletons have their addresses there
	}
	for _, attr := range []Attr{AttrDwoName, AttrGNUDwoName} {
		name := binary.AppendUvarint(nil, uint64(attr))
		for at := 0; ; at += len(name) {
			i := bytes.Index(d.Abbrev[at:], name)
			if i < 0 {
				break
			}
			if at += i; at+len(name) == len(d.Abbrev) {
				break
			}
			switch Form(d.Abbrev[at+len(name)]) {
			case FormString, FormStrp, FormLineStrp, FormStrx, FormStrx1, FormStrx2, FormStrx3, FormStrx4:
				return true
			}
		}
	}
	return false
}

// Skeletons returns the units that are skeletons. If there can be any, it reads all units.
func (d *Data) Skeletons() ([]*Unit, error) {
	if !d.hasDwoName() {
		return nil, nil
	}
	if err := d.ReadUnits(); err != nil {
		return nil, err
	}
	t := Tables.Get().(*AbbrevTable)
	defer Tables.Put(t)
	for i := range d.Units {
		u := &d.Units[i]
		// Before DWARF 5 the header does not tell.
		if u.IsType() || u.Kind != UnitSkeleton && u.Version >= 5 {
			continue
		}
		if err := u.Begin(t); err != nil {
			return nil, err
		}
		if u.dwoName.Form == 0 {
			if u.Kind == UnitSkeleton {
				return nil, d.Errorf(".debug_info", u.Off, "the skeleton unit does not name a file (DW_AT_dwo_name)")
			}
			continue
		}
		if u.Version < 5 {
			u.Signature = u.dwoID.U
		}
		d.skeletons = append(d.skeletons, u)
	}
	return d.skeletons, nil
}

// isSkeleton reports whether the unit at an offset is a skeleton.
func (d *Data) isSkeleton(off uint64) bool {
	lo, hi := 0, len(d.skeletons)
	for lo < hi {
		if m := (lo + hi) / 2; d.skeletons[m].Off < off {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo < len(d.skeletons) && d.skeletons[lo].Off == off
}

// DwoName returns the name of the .dwo file with the rest of a skeleton unit.
func (u *Unit) DwoName() string { return u.Text(u.dwoName) }

// Related is another file with parts of the debug information: its sections, by their names.
type Related struct {
	Path     string
	Sections map[string][][]byte // of some names there can be several
	Errorf   func(section string, off uint64, format string, args ...any) error
}

// isSplit reports whether a unit of a .dwo file is the other half of a skeleton, not a type.
func (u *Unit) isSplit() bool { return u.Kind == UnitSplitCompile || u.Version < 5 && !u.IsType() }

// AddSplit adds the units of a .dwo file that belong to skeletons; afterwards Join must be called. If it has none for some
// of them, it adds nothing and returns these, and the numbers of the units that the file has.
func (d *Data) AddSplit(r Related, skeletons []*Unit) (without []*Unit, has []uint64, err error) {
	of := d.splitData(r)
	wanted := make(map[uint64]*Unit, len(skeletons))
	for _, u := range skeletons {
		wanted[u.Signature] = u
	}
	var parts []part
	var sections [][]byte
	for _, section := range r.Sections[".debug_info.dwo"] {
		// Alone it is read as an image is.
		alone := &Data{Sections: of.Sections}
		alone.Info, alone.Errorf = section, of.own
		if err := alone.ReadUnits(); err != nil {
			return nil, nil, err
		}
		s := &split{units: make(map[uint64]*Unit)}
		t := Tables.Get().(*AbbrevTable)
		defer Tables.Put(t)
		for i := range alone.Units {
			u := &alone.Units[i]
			if !u.isSplit() {
				continue
			}
			if u.Version < 5 {
				if err := u.Begin(t); err != nil {
					return nil, nil, err
				}
				u.Signature = u.dwoID.U
			}
			has = append(has, u.Signature)
			if skeleton := wanted[u.Signature]; skeleton != nil {
				s.units[u.Off] = skeleton
				delete(wanted, u.Signature)
			}
		}
		parts = append(parts, part{data: of, name: ".debug_info.dwo", split: s})
		sections = append(sections, section)
	}
	for _, u := range skeletons {
		if wanted[u.Signature] != nil {
			without = append(without, u)
		}
	}
	if len(without) > 0 {
		return without, has, nil
	}
	for _, section := range r.Sections[".debug_types.dwo"] {
		parts = append(parts, part{data: of, name: ".debug_types.dwo", types: true, split: &split{}})
		sections = append(sections, section)
	}
	d.addStrings(of)
	d.more, d.moreSections = append(d.more, parts...), append(d.moreSections, sections...)
	return without, has, nil
}

// splitData returns the data of a file with split units. Its addresses are the image's, and before DWARF 5 the
// ranges too.
func (d *Data) splitData(r Related) *Data {
	of := d.sectionsOf(r)
	of.Addr, of.Ranges = d.Addr, d.Ranges
	of.own = func(section string, off uint64, format string, args ...any) error {
		if section == ".debug_addr" || section == ".debug_ranges" {
			return d.own(section, off, format, args...)
		}
		if !bytes.HasSuffix([]byte(section), []byte(".dwo")) {
			section += ".dwo"
		}
		return r.Errorf(section, off, format, args...)
	}
	return of
}

// takeSkeleton takes from a split unit's skeleton what that alone has.
func (u *Unit) takeSkeleton() error {
	s := u.Skeleton
	if s == nil {
		return nil
	}
	t := Tables.Get().(*AbbrevTable)
	defer Tables.Put(t)
	if err := s.Begin(t); err != nil {
		return err
	}
	u.addrBase, u.lowpc = s.addrBase, s.lowpc
	u.StmtList, u.HasStmtList = s.StmtList, s.HasStmtList
	if u.Version < 5 {
		u.RngBase = s.RngBase // since DWARF 5 the file has its own range lists
	}
	return nil
}

// checkID compares the numbers of a split unit and its skeleton, where the header does not have them.
func (u *Unit) checkID() error {
	if s := u.Skeleton; s != nil && u.Version < 5 && u.dwoID.U != s.Signature {
		return u.Data.Errorf(".debug_info", u.Off, "the unit has the number %#016x, and its skeleton %#016x: it is of another build", u.dwoID.U, s.Signature)
	}
	return nil
}

// Code returns the ranges of the unit's code. bounded is false if the unit does not say where that is.
func (u *Unit) Code() (ranges []Range, bounded bool, err error) {
	if u.Skeleton != nil {
		u = u.Skeleton
	}
	ranges, err = u.Extent(&u.PCs)
	return ranges, u.PCs.Ranges.Form != 0 || u.PCs.High.Form != 0, err
}

// Join reads the units of the image and of all files that were added.
func (d *Data) Join() error {
	d.join(d.more, d.moreSections)
	d.more, d.moreSections = nil, nil
	d.Units, d.ready = nil, false
	return d.ReadUnits()
}

// AddSupplementary adds the units of a supplementary file. Afterwards Join must be called.
func (d *Data) AddSupplementary(r Related) {
	of := d.sectionsOf(r)
	of.own = r.Errorf
	d.addStrings(of)
	d.sup = of
	for _, section := range r.Sections[".debug_info"] {
		d.more, d.moreSections = append(d.more, part{data: of, name: ".debug_info"}), append(d.moreSections, section)
	}
}

// Supplementary returns the name of the supplementary file with parts of the debug information, what tells it from
// others, and the section that has both; "" if there is none. For .gnu_debugaltlink, that is the build ID; for
// .debug_sup a checksum (DWARF 5 section 7.3.6).
//
// dwz -m moves what several files have in common to such a file.
func (d *Data) Supplementary() (name string, id []byte, section string, err error) {
	if len(d.AltLink) > 0 {
		b := bin.Reader{D: d.AltLink, BigEndian: d.BigEndian}
		name = string(b.CString())
		if b.Bad || b.P == len(b.D) {
			return name, nil, ".gnu_debugaltlink", d.Errorf(".gnu_debugaltlink", 0, "the name of the supplementary file does not end, or no build ID follows")
		}
		return name, b.D[b.P:], ".gnu_debugaltlink", nil
	}
	if len(d.Sup) == 0 {
		return "", nil, "", nil
	}
	name, id, is, ok := readSup(d.Sup, d.BigEndian)
	switch {
	case !ok:
		return "", nil, ".debug_sup", d.Errorf(".debug_sup", 0, "the section is cut short")
	case is:
		return "", nil, "", nil // the file is one
	}
	return name, id, ".debug_sup", nil
}

// readSup reads a .debug_sup section: is tells whether its file is a supplementary one, which has no name.
func readSup(d []byte, bigEndian bool) (name string, id []byte, is, ok bool) {
	b := bin.Reader{D: d, BigEndian: bigEndian}
	b.Skip(2) // version
	is = b.U8() != 0
	name = string(b.CString())
	id = b.Bytes(b.ULEB())
	return name, id, is, !b.Bad
}

// SupplementaryID returns the checksum by which a file's .debug_sup says which supplementary file it is.
func SupplementaryID(section []byte, bigEndian bool) []byte {
	_, id, is, ok := readSup(section, bigEndian)
	if !is || !ok {
		return nil
	}
	return id
}
