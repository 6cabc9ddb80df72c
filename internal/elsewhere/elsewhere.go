// Package elsewhere opens the other files in which an image's debug information may be.
package elsewhere

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/image"
)

// maxNamed is how many units an error names.
const maxNamed = 20

// Parts of the debug information can be in other files: what several programs have in common in a supplementary
// file (dwz -m), and split units in .dwo files or a package (-gsplit-dwarf). They are opened with the image.
// Without a supplementary file nothing can be answered, since any entry may lead there; without some of the split
// units the rest can.

// Missing says which split units are not there. Units is how many they are, of Of in all, and Files their files, as the compiler
// named them and each once.
type Missing struct {
	Path      string
	Units, Of int
	Files     []string
}

// opener opens the files of one image.
type opener struct {
	f       *image.File
	d       *dw.Data
	partial bool
	lost    *Missing
	failed  func(*Missing) error
}

// Open opens the other files that have parts of the debug information of an image, and joins their units. An error of finding them is
// one of each query: symbols can be asked for all the same. If split units are missing, that is the error which failed returns, unless
// partial is set and some are there.
func Open(f *image.File, d *dw.Data, partial bool, failed func(*Missing) error) (*Missing, error) {
	x := &opener{f: f, d: d, partial: partial, failed: failed}
	err := f.Guard(func() error {
		err := x.openSupplementary()
		if err == nil {
			err = x.openSplit()
		}
		d.Elsewhere = err
		return nil
	})
	return x.lost, err
}

func (x *opener) openSupplementary() error {
	d := x.d
	name, id, section, err := d.Supplementary()
	if err != nil || section == "" {
		return err
	}
	r, err := x.f.OpenSupplementary(name, id, func(r *image.Related) error {
		has, _ := hex.DecodeString(r.BuildID)
		if section == ".debug_sup" {
			has = dw.SupplementaryID(slices.Concat(r.Sections[section]...), x.f.BigEndian())
		}
		if !bytes.Equal(has, id) {
			return d.Errorf(section, 0, "the supplementary file must be %x, and %s is %x: it belongs to another build", id, r.Path, has)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if r == nil {
		return d.Errorf(section, 0, "parts of the debug information are in the supplementary file %q (dwz -m), which is not there: install the package that has it; its build ID is %x", name, id)
	}
	d.AddSupplementary(x.related(r))
	return d.Join()
}

// related returns a file as package dw takes it.
func (x *opener) related(r *image.Related) dw.Related {
	return dw.Related{Path: r.Path, Sections: r.Sections, Errorf: func(section string, off uint64, format string, args ...any) error {
		return &image.FormatError{Path: r.Path, Section: section, Offset: off, Msg: fmt.Sprintf(format, args...)}
	}}
}

func (x *opener) openSplit() error {
	d := x.d
	skeletons, err := d.Skeletons()
	if err != nil || len(skeletons) == 0 {
		return err
	}
	missing, err := x.openPackage(skeletons)
	if err != nil {
		return err
	}
	byFile := make(map[splitFile][]*dw.Unit)
	var order []splitFile
	for _, u := range missing {
		f := splitFile{u.CompDir(), u.DwoName()}
		if byFile[f] == nil {
			order = append(order, f)
		}
		byFile[f] = append(byFile[f], u)
	}
	lost := &Missing{Path: x.f.Path(), Of: len(skeletons)}
	for _, f := range order {
		without, err := x.openUnits(f, byFile[f])
		if err != nil {
			return err
		}
		if len(without) > 0 {
			lost.Units += len(without)
			lost.Files = append(lost.Files, f.String())
		}
	}
	if lost.Units > 0 {
		if !x.partial || lost.Units == lost.Of {
			return x.failed(lost)
		}
		x.lost = lost
	}
	return d.Join()
}

// openPackage adds the units in a package, and returns the skeletons that it has no unit for.
func (x *opener) openPackage(skeletons []*dw.Unit) (without []*dw.Unit, err error) {
	without = skeletons
	_, err = x.f.OpenPackage(func(r *image.Related) error {
		left, err := x.d.AddPackage(x.related(r), skeletons)
		if err == nil && len(left) == len(skeletons) {
			err = errNotOfImage
		}
		if err == nil {
			without = left
		}
		return err
	})
	if errors.Is(err, errNotOfImage) {
		return without, nil // of another build: there may be .dwo files
	}
	return without, err
}

// errNotOfImage is the error for a package without a unit of the image.
var errNotOfImage = errors.New("the package has no unit of the image")

// splitFile names a file with split units.
type splitFile struct{ dir, name string }

// String returns the path that the compiler wrote to.
func (f splitFile) String() string {
	if f.dir == "" || strings.HasPrefix(f.name, "/") {
		return f.name
	}
	return f.dir + "/" + f.name
}

// openUnits adds the units of a file, and returns the skeletons that it has none for if the file is not there. If a file
// has that name and other units, that is an error.
func (x *opener) openUnits(f splitFile, skeletons []*dw.Unit) (without []*dw.Unit, err error) {
	without = skeletons
	_, err = x.f.OpenSplit(f.dir, f.name, func(r *image.Related) error {
		left, has, err := x.d.AddSplit(x.related(r), skeletons)
		if err == nil && len(left) > 0 {
			err = x.d.Errorf(".debug_info", left[0].Off, "the unit has the number %#016x, and %s has %s: it is of another build", left[0].Signature, r.Path, numbers(has))
		}
		if err == nil {
			without = left
		}
		return err
	})
	return without, err
}

func numbers(ids []uint64) string {
	var b strings.Builder
	for i, id := range ids[:min(len(ids), maxNamed)] {
		fmt.Fprintf(&b, "%s%#016x", cmp.Or(map[bool]string{true: ", "}[i > 0], ""), id)
	}
	return cmp.Or(b.String(), "none")
}
