package main

import (
	"errors"
	"io"
	"os"

	"github.com/bpfprologue/bpfprologue/pack"
	"github.com/bpfprologue/bpfprologue/terminal"
)

func (s *settings) writeDelta(w io.Writer, paths []string, o *packOptions) error {
	if len(paths) != 2 {
		return errors.New("--delta is between two packs: the old one and the new one")
	}
	return s.writeOfTwo(w, paths, o, pack.WriteDelta)
}

func (s *settings) applyDelta(w io.Writer, paths []string, o *packOptions) error {
	if len(paths) != 2 {
		return errors.New("--apply takes the old pack, and the delta")
	}
	return s.writeOfTwo(w, paths, o, pack.ApplyDelta)
}

// writeOfTwo writes a file that is made of two.
func (s *settings) writeOfTwo(out io.Writer, paths []string, o *packOptions, write func(w io.Writer, a, b pack.File) error) error {
	err := replace(o.output, func(w io.Writer) error {
		return readPack(paths[0], func(a []byte) error {
			return readPack(paths[1], func(b []byte) error {
				return write(w, pack.File{Data: a, Path: paths[0]}, pack.File{Data: b, Path: paths[1]})
			})
		})
	})
	if err != nil || s.format == "json" {
		return err
	}
	written, err := os.Stat(o.output)
	if err != nil {
		return err
	}
	terminal.Fprintf(out, "%s: %d bytes\n", o.output, written.Size())
	return nil
}
