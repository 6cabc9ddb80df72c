package dwarfloc

import (
	"github.com/bpfprologue/bpfprologue/internal/image"
)

// What can be wrong with a file is said by errors that wrap one of these. Their text has the path, and for damage the section and the
// offset in it.
var (
	// ErrNotELF is wrapped by the error for a file that is not ELF.
	ErrNotELF = image.ErrNotELF
	// ErrNoDWARF is wrapped by the error for a file without debug information, here or in a file of its own.
	ErrNoDWARF = image.ErrNoDWARF
	// ErrDamaged is wrapped by the error for a file in which a section cannot be right.
	ErrDamaged = image.ErrDamaged
	// ErrChanged is wrapped by the error of any method if a file with the debug information was truncated or written to since it was
	// opened. After that the image cannot be used any more.
	ErrChanged = image.ErrChanged
)

// BuildID returns the GNU build ID of an ELF file in hexadecimal digits, or "" if it has none. The file need not have debug
// information: by the ID that is found elsewhere, as a pack is (package pack).
func BuildID(path string) (string, error) {
	f, err := image.Open(path, nil)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return f.BuildID(), nil
}

// BuildID returns the GNU build ID of the file in hexadecimal digits, or "" if it has none.
func (img *Image) BuildID() string { return img.file.BuildID() }
