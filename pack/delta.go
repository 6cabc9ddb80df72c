package pack

import (
	"io"

	"github.com/bpfprologue/bpfprologue/image"
	"github.com/bpfprologue/bpfprologue/internal/packfile"
)

// WrongPackError is the error for a delta and a pack that is not the one it is for.
type WrongPackError = packfile.WrongPackError

// File is a whole file and its path, which errors name.
type File struct {
	Data []byte
	Path string
}

// WriteDelta writes what makes one pack of another, as that of a distribution's next kernel, which is a few percent of it.
// The result depends on nothing else.
func WriteDelta(w io.Writer, from, to File) error {
	old, err := from.image()
	if err != nil {
		return err
	}
	next, err := to.image()
	if err != nil {
		return err
	}
	d, err := packfile.Delta(old, next)
	if err != nil {
		return err
	}
	_, err = w.Write(d)
	return err
}

// ApplyDelta writes the pack that a delta makes of the one that it is for, byte by byte as it was. The error is a *WrongPackError
// if it is for another.
func ApplyDelta(w io.Writer, from, delta File) error {
	old, err := from.image()
	if err != nil {
		return err
	}
	d, err := packfile.Apply(old, delta.Data, delta.Path)
	if err != nil {
		return err
	}
	_, err = w.Write(d)
	return err
}

func (f *File) image() (packfile.Image, error) {
	img, err := image.FromBytes(f.Path, f.Data, nil)
	if err != nil {
		return packfile.Image{}, err
	}
	return packfile.Image{Data: f.Data, Path: f.Path, BuildID: img.BuildID()}, nil
}
