package dwarfloc

import (
	"errors"

	"github.com/bpfprologue/bpfprologue/internal/mapping"
)

// ErrChanged is wrapped by the error of any question to an image whose file was cut
// short or written to since it was opened. The image answers nothing any more.
var ErrChanged = mapping.ErrFault

// guard makes a fault on a file's mapping an error.
func guard(f func() error) error { return mapping.Guard(f) }

// guard runs what reads the image's files. Once a part of one was found to be
// missing there are no more answers: what was half read is remembered as if it were
// all.
func (img *Image) guard(f func() error) error {
	err := guard(f)
	if err == nil {
		return img.faulted()
	}
	if errors.Is(err, mapping.ErrFault) {
		return err
	}
	if changed := img.changed(); changed != nil {
		return changed // which looks like damage
	}
	return err
}

func (img *Image) faulted() error {
	if img.kept != nil {
		if err := img.kept.mapped.Faulted(); err != nil {
			return err
		}
	}
	if err := img.mapped.Faulted(); err != nil {
		return err
	}
	return img.separate.Faulted()
}

// changed asks the system whether the image's files are as they were. It takes a
// microsecond: questions about many sites ask at the end. (A kept scan is never
// written to, but replaced; using it sets its time.)
func (img *Image) changed() error {
	if err := img.faulted(); err != nil {
		return err
	}
	if err := img.mapped.Changed(); err != nil {
		return err
	}
	return img.separate.Changed()
}
