package dwarfloc

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/image"
	"github.com/bpfprologue/bpfprologue/internal/dw"
)

// Parts of the debug information can be in other files: what several programs have in common in a supplementary
// file (dwz -m), and split units in .dwo files or a package (-gsplit-dwarf). They are opened with the image.
// Without a supplementary file nothing can be answered, since any entry may lead there; without some of the split
// units the rest can.

// MissingError says which split units are not there: what they describe is missing from every answer. Units is how
// many they are, of Of in all, and Files their files, as the compiler named them and each once.
type MissingError struct {
	Path  string   `json:"-"`
	Units int      `json:"units"`
	Of    int      `json:"of"`
	Files []string `json:"files"`
}

// maxNamed is how many files an error names: Chromium has some ten thousand.
const maxNamed = 20

// Error names the files.
func (e *MissingError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: answers are incomplete: %d of %d units are in files that are not there (-gsplit-dwarf):", e.Path, e.Units, e.Of)
	for _, name := range e.Files[:min(len(e.Files), maxNamed)] {
		fmt.Fprintf(&b, " %q", name)
	}
	if more := len(e.Files) - maxNamed; more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	return b.String()
}

// openElsewhere opens the other files that have parts of the debug information. An error of finding them is one of
// each query: symbols can be asked for all the same.
func (img *Image) openElsewhere() error {
	err := img.Guard(func() error {
		err := img.openSupplementary()
		if err == nil {
			err = img.openSplit()
		}
		img.d.Elsewhere = err
		return nil
	})
	return err
}

func (img *Image) openSupplementary() error {
	d := img.d
	name, id, section, err := d.Supplementary()
	if err != nil || section == "" {
		return err
	}
	r, err := img.OpenSupplementary(name, id, func(r *image.Related) error {
		has, _ := hex.DecodeString(r.BuildID)
		if section == ".debug_sup" {
			has = dw.SupplementaryID(slices.Concat(r.Sections[section]...), img.BigEndian())
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
	d.AddSupplementary(img.related(r))
	return d.Join()
}

// related returns a file as package dw takes it.
func (img *Image) related(r *image.Related) dw.Related {
	return dw.Related{Path: r.Path, Sections: r.Sections, Errorf: func(section string, off uint64, format string, args ...any) error {
		return &image.FormatError{Path: r.Path, Section: section, Offset: off, Msg: fmt.Sprintf(format, args...)}
	}}
}

func (img *Image) openSplit() error {
	d := img.d
	skeletons, err := d.Skeletons()
	if err != nil || len(skeletons) == 0 {
		return err
	}
	missing, err := img.openPackage(skeletons)
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
	lost := &MissingError{Path: img.Path(), Of: len(skeletons)}
	for _, f := range order {
		without, err := img.openUnits(f, byFile[f])
		if err != nil {
			return err
		}
		if len(without) > 0 {
			lost.Units += len(without)
			lost.Files = append(lost.Files, f.String())
		}
	}
	if lost.Units > 0 {
		if !img.o.Partial || lost.Units == lost.Of {
			return lost
		}
		img.lost = lost
	}
	return d.Join()
}

// Missing returns which split units are not there, if Options.Partial let queries answer about the others; or nil.
func (img *Image) Missing() *MissingError { return img.lost }

// openPackage adds the units in a package, and returns the skeletons that it has no unit for.
func (img *Image) openPackage(skeletons []*dw.Unit) (without []*dw.Unit, err error) {
	without = skeletons
	_, err = img.OpenPackage(func(r *image.Related) error {
		left, err := img.d.AddPackage(img.related(r), skeletons)
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
func (img *Image) openUnits(f splitFile, skeletons []*dw.Unit) (without []*dw.Unit, err error) {
	without = skeletons
	_, err = img.OpenSplit(f.dir, f.name, func(r *image.Related) error {
		left, has, err := img.d.AddSplit(img.related(r), skeletons)
		if err == nil && len(left) > 0 {
			err = img.d.Errorf(".debug_info", left[0].Off, "the unit has the number %#016x, and %s has %s: it is of another build", left[0].Signature, r.Path, numbers(has))
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
