package dw

import (
	"cmp"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/radix"
)

// A package (.dwp) has the sections of many .dwo files, one after the other. Its indices say, for each unit, where
// its part of each section is: .debug_cu_index by the number that a skeleton has, .debug_tu_index by the
// signature of a type (DWARF 5 section 7.3.5; version 2 of GNU's extension before that,
// https://gcc.gnu.org/wiki/DebugFissionDWP).

// Sections in the columns of an index, by their numbers in DWARF 5 and before; "" for those not needed.
var (
	packColumns   = [...]string{1: ".debug_info", 3: ".debug_abbrev", 4: ".debug_line", 5: ".debug_loclists", 6: ".debug_str_offsets", 8: ".debug_rnglists"}
	packColumnsV2 = [...]string{1: ".debug_info", 2: ".debug_types", 3: ".debug_abbrev", 4: ".debug_line", 5: ".debug_loc", 6: ".debug_str_offsets"}
)

// pack is a package.
type pack struct {
	data   *Data            // its whole sections
	cus    []packRow        // by where their units are in .debug_info
	tus    []packRow        // likewise; before DWARF 5 in .debug_types
	wanted map[uint64]*Unit // skeletons, by number
	halves map[packUnit]*Data
}

// packRow says where the parts of a unit are.
type packRow struct {
	signature uint64
	units     span32 // in .debug_info or .debug_types
	packUnit
}

// packUnit is where parts of sections are that units can have in common.
type packUnit struct{ abbrev, line, loc, loclists, strOffsets, rnglists span32 }

// span32 is a part of a section.
type span32 struct{ off, size uint32 }

// of returns the part of a section.
func (s span32) of(section []byte) []byte {
	if uint64(s.off)+uint64(s.size) > uint64(len(section)) {
		return nil // the index was checked: the section is not there
	}
	return section[s.off:][:s.size:s.size]
}

// column returns what a column of an index is about.
func (r *packRow) column(name string) *span32 {
	switch name {
	case ".debug_info", ".debug_types":
		return &r.units
	case ".debug_abbrev":
		return &r.abbrev
	case ".debug_line":
		return &r.line
	case ".debug_loc":
		return &r.loc
	case ".debug_loclists":
		return &r.loclists
	case ".debug_str_offsets":
		return &r.strOffsets
	case ".debug_rnglists":
		return &r.rnglists
	}
	return nil
}

// AddPackage adds the units of a package that belong to skeletons, with all type units. It returns the skeletons that the
// package has no unit for. Afterwards Join must be called.
func (d *Data) AddPackage(r Related, skeletons []*Unit) (without []*Unit, err error) {
	p := &pack{data: d.splitData(r), wanted: make(map[uint64]*Unit), halves: make(map[packUnit]*Data)}
	size := func(name string) int {
		if s := r.Sections[name+".dwo"]; len(s) > 0 {
			return len(s[0])
		}
		return 0
	}
	index := func(name string) ([]packRow, error) {
		if s := r.Sections[name]; len(s) > 0 {
			return readPackIndex(s[0], d.BigEndian, size, func(off uint64, format string, args ...any) error {
				return r.Errorf(name, off, format, args...)
			})
		}
		return nil, nil
	}
	if p.cus, err = index(".debug_cu_index"); err != nil {
		return nil, err
	}
	if p.tus, err = index(".debug_tu_index"); err != nil {
		return nil, err
	}
	has := make(map[uint64]bool, len(p.cus))
	for i := range p.cus {
		has[p.cus[i].signature] = true
	}
	for _, u := range skeletons {
		if has[u.Signature] {
			p.wanted[u.Signature] = u
		} else {
			without = append(without, u)
		}
	}
	if len(p.wanted) == 0 {
		return without, nil
	}
	d.addStrings(p.data)
	for _, name := range []string{".debug_info", ".debug_types"} {
		for _, section := range r.Sections[name+".dwo"] {
			d.more = append(d.more, part{data: p.data, name: name + ".dwo", types: name == ".debug_types", split: &split{pack: p}})
			d.moreSections = append(d.moreSections, section)
		}
	}
	return without, nil
}

// take completes a unit of a package. It is false if the image has no skeleton of it.
func (p *pack) take(in *part, u *Unit) bool {
	rows := p.cus
	if u.IsType() {
		rows = p.tus
	}
	local := u.Off - in.from
	i, _ := slices.BinarySearchFunc(rows, local+1, func(r packRow, off uint64) int { return cmp.Compare(uint64(r.units.off), off) })
	if i == 0 {
		return false
	}
	r := &rows[i-1]
	if local-uint64(r.units.off) >= uint64(r.units.size) {
		return false
	}
	if !u.IsType() {
		if u.Version < 5 {
			u.Signature = r.signature
		}
		if u.Skeleton = p.wanted[u.Signature]; u.Skeleton == nil || !u.isSplit() {
			return false
		}
	}
	u.Data, u.From = p.half(r), in.from+uint64(r.units.off)
	return true
}

// half returns the sections as the units of a row see them: those of the .dwo file that they were in.
func (p *pack) half(r *packRow) *Data {
	if d := p.halves[r.packUnit]; d != nil {
		return d
	}
	w := p.data
	d := &Data{Sections: w.Sections, whole: w.whole, StrFrom: w.StrFrom, LineStrFrom: w.LineStrFrom}
	d.Info = w.whole.Info
	cut := map[string]uint64{}
	for name, s := range map[string]struct {
		to   *[]byte
		part span32
	}{
		".debug_abbrev": {&d.Abbrev, r.abbrev}, ".debug_line": {&d.Line, r.line}, ".debug_loc": {&d.Loc, r.loc},
		".debug_loclists": {&d.Loclists, r.loclists}, ".debug_str_offsets": {&d.StrOffsets, r.strOffsets}, ".debug_rnglists": {&d.Rnglists, r.rnglists},
	} {
		*s.to = s.part.of(*s.to)
		cut[name] = uint64(s.part.off)
	}
	d.Errorf = func(section string, off uint64, format string, args ...any) error {
		return w.Errorf(section, off+cut[strings.TrimSuffix(section, ".dwo")], format, args...)
	}
	d.own = d.Errorf
	p.halves[r.packUnit] = d
	return d
}

// readPackIndex reads an index. size returns the size of a section of the package.
func readPackIndex(d []byte, bigEndian bool, size func(section string) int, errorf func(off uint64, format string, args ...any) error) ([]packRow, error) {
	b := bin.Reader{D: d, BigEndian: bigEndian}
	version := b.U32()
	names := packColumnsV2[:]
	if version != 2 {
		// Since DWARF 5, two bytes and two of padding.
		b.Seek(0)
		if version = uint32(b.U16()); version != 5 {
			return nil, errorf(0, "unsupported version %d of an index", version)
		}
		b.Skip(2)
		names = packColumns[:]
	}
	columns, units, slots := uint64(b.U32()), uint64(b.U32()), uint64(b.U32())
	left := uint64(len(d) - b.P)
	if b.Bad || columns > 16 || units > left || slots > left || 12*slots+4*columns+8*columns*units > left {
		return nil, errorf(0, "an index of %d units, %d slots and %d columns does not fit into %d bytes", units, slots, columns, len(d))
	}
	signatures, numbers := b, b
	numbers.Skip(8 * slots)
	b.Skip(12 * slots)
	rows := make([]packRow, units)
	seen := make([]bool, units)
	for range slots {
		signature, row := signatures.U64(), uint64(numbers.U32())
		if row == 0 {
			continue // the slot is empty
		}
		if row > units || seen[row-1] {
			return nil, errorf(uint64(numbers.P-4), "the slot of %#016x names row %d, of %d, which does not exist or has another's", signature, row, units)
		}
		seen[row-1] = true
		rows[row-1].signature = signature
	}
	if i := slices.Index(seen, false); i >= 0 {
		return nil, errorf(0, "row %d has no slot", i+1)
	}
	head := make([]string, columns)
	for i := range head {
		at := b.P
		id := uint64(b.U32())
		if id == 0 || id > 8 {
			return nil, errorf(uint64(at), "unknown section %d", id)
		}
		if id < uint64(len(names)) {
			head[i] = names[id]
		}
	}
	offsets, sizes := b, b
	sizes.Skip(4 * columns * units)
	for i := range rows {
		for _, name := range head {
			at := sizes.P
			s := span32{offsets.U32(), sizes.U32()}
			to := rows[i].column(name)
			if to == nil {
				continue
			}
			if has := size(name); uint64(s.off)+uint64(s.size) > uint64(has) {
				return nil, errorf(uint64(at), "%#x bytes at %#x of %s.dwo, which has %#x", s.size, s.off, name, has)
			}
			*to = s
		}
	}
	return radix.Sort(rows, func(r *packRow) uint64 { return uint64(r.units.off) }), nil
}
