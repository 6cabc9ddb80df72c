package dw

import (
	"github.com/bpfprologue/bpfprologue/internal/bin"
)

// Elsewhere returns an error if some of the debug information is in files that are not read:
// then every answer could lack what is there.
//
//   - A compiler with -gsplit-dwarf leaves a skeleton of each unit, and writes the rest to a
//     .dwo file (DWARF 5 section 3.1.2; before that a GNU extension).
//   - dwz -m moves what several files have in common to a supplementary file (DWARF 5
//     section 7.3.6; before that a GNU extension).
//
// ReadUnits, or what replaces it, must have been called.
func (d *Data) Elsewhere() error {
	if name, section := d.supplementary(); section != "" {
		return d.supplementaryError(section, 0, name)
	}
	count, dwo := 0, ""
	var first *Unit
	t := Tables.Get().(*AbbrevTable)
	defer Tables.Put(t)
	for i := range d.Units {
		u := &d.Units[i]
		// Before DWARF 5 the header does not tell, but only split units use .debug_addr.
		if u.Kind != UnitSkeleton && (u.Version >= 5 || len(d.Addr) == 0) {
			continue
		}
		if err := u.Begin(t); err != nil {
			return err
		}
		if u.Kind == UnitSkeleton || u.dwoName.Form != 0 {
			if count++; first == nil {
				first, dwo = u, u.Text(u.dwoName)
			}
		}
	}
	if first == nil {
		return nil
	}
	are := "are"
	if count == 1 {
		are = "is"
	}
	return d.Errorf(".debug_info", first.Off, "%d of %d units %s in other files (-gsplit-dwarf), which are not read: %q in %q; build without -gsplit-dwarf",
		count, len(d.Units), are, dwo, first.CompDir())
}

// supplementary returns the name of the supplementary file and the section that has it; ""
// if there is none.
func (d *Data) supplementary() (name, section string) {
	if len(d.AltLink) > 0 {
		name, _ = d.Texts.At(d.AltLink, 0)
		return name, ".gnu_debugaltlink"
	}
	b := bin.Reader{D: d.Sup, BigEndian: d.BigEndian}
	b.Skip(2) // version
	if isSupplementary := b.U8(); b.Bad || isSupplementary != 0 {
		return "", ""
	}
	return string(b.CString()), ".debug_sup"
}

func (d *Data) supplementaryError(section string, off uint64, name string) error {
	return d.Errorf(section, off, "parts of the debug information are in the supplementary file %q (dwz -m), which is not read; take the file as it was before dwz, or build the package without: %s", name,
		"dh_dwz --no-dwz-multifile in Debian, %global _find_debuginfo_dwz_opts %{nil} for rpmbuild")
}

// alternative reports whether a form refers to a supplementary file.
func (f Form) alternative() bool {
	switch f {
	case FormGNURefAlt, FormGNUStrpAlt, FormRefSup4, FormRefSup8, FormStrpSup:
		return true
	}
	return false
}
