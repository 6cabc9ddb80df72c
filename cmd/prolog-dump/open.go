package main

import (
	"errors"
	"strings"

	"github.com/schollz/progressbar/v3"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/store"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
)

// imageOptions returns how images are opened. typesOf, if not nil, is the image to take types from that
// one only declares.
func (s *settings) imageOptions(typesOf *dwarfloc.Image) dwarfloc.Options {
	o := dwarfloc.Options{TypesOf: typesOf, DebugDirs: s.allDebugDirs(), FindDebug: s.findDebug, Partial: true, KernelTypes: instances.KernelTypes}
	switch s.recover {
	case "", "all":
	case "none":
		o.Recover = []string{}
	default:
		o.Recover = strings.Split(s.recover, ",")
	}
	if !s.noCache {
		dir, chosen := userCache()
		o.CacheDir = dir
		o.Warn = func(err error) {
			// Nobody asked for the usual directory: a user without a home has none, each time.
			if chosen || !errors.Is(err, store.ErrUnusable) {
				terminal.Fprintf(screen.Stderr, "prolog-dump: %v\n", err)
			}
		}
	}
	if screen.OnTerminal() {
		o.Progress = screen.Progress("reading", progressbar.OptionShowBytes(true))
	}
	return o
}

// open opens an image. typesOf is as for imageOptions.
func (s *settings) open(path string, typesOf *dwarfloc.Image) (*dwarfloc.Image, error) {
	return s.openWith(path, s.imageOptions(typesOf))
}

func (s *settings) openWith(path string, o dwarfloc.Options) (*dwarfloc.Image, error) {
	img, err := (*dwarfloc.Image)(nil), error(nil)
	if d := s.archived[path]; d != nil {
		img, err = dwarfloc.FromBytes(path, d, &o)
	} else {
		img, err = dwarfloc.Open(path, &o)
	}
	if err == nil {
		s.images = append(s.images, img)
		if lost := img.Missing(); lost != nil {
			terminal.Fprintf(screen.Stderr, "prolog-dump: %v\n", lost)
		}
	}
	return img, err
}

// unchanged returns an error if an image was written to since it was opened: what was printed can be
// a mix. It is asked last, and so nobody closes images before.
func (s *settings) unchanged() error {
	for _, img := range s.images {
		if err := img.Changed(); err != nil {
			return err
		}
	}
	return nil
}
