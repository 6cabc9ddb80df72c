package origin

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/schollz/progressbar/v3"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/store"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
)

// ImageOptions returns how images are opened. typesOf, if not nil, is the image to take types from that
// one only declares.
func (f *Finder) ImageOptions(typesOf *dwarfloc.Image) dwarfloc.Options {
	o := dwarfloc.Options{TypesOf: typesOf, DebugDirs: f.allDebugDirs(), FindDebug: f.findDebug, Partial: true, KernelTypes: instances.KernelTypes}
	switch f.Recover {
	case "", "all":
	case "none":
		o.Recover = []string{}
	default:
		o.Recover = strings.Split(f.Recover, ",")
	}
	if !f.NoCache {
		dir, chosen := CacheDir()
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

// Open opens an image. typesOf is as for ImageOptions.
func (f *Finder) Open(path string, typesOf *dwarfloc.Image) (*dwarfloc.Image, error) {
	return f.openWith(path, f.ImageOptions(typesOf))
}

func (f *Finder) openWith(path string, o dwarfloc.Options) (*dwarfloc.Image, error) {
	img, err := (*dwarfloc.Image)(nil), error(nil)
	if d := f.archived[path]; d != nil {
		img, err = dwarfloc.FromBytes(path, d, &o)
	} else {
		img, err = dwarfloc.Open(path, &o)
	}
	if err == nil {
		f.images = append(f.images, img)
		if lost := img.Missing(); lost != nil {
			terminal.Fprintf(screen.Stderr, "prolog-dump: %v\n", lost)
		}
	}
	return img, err
}

// Unchanged returns an error if an image was written to since it was opened: what was printed can be
// a mix. It is asked last, and so nobody closes images before.
func (f *Finder) Unchanged() error {
	for _, img := range f.images {
		if err := img.Changed(); err != nil {
			return err
		}
	}
	return nil
}

// Keep keeps what was found out about the images, so that the next time it is not found out again.
func (f *Finder) Keep() {
	for _, img := range f.images {
		_ = inside.KeepDerived(img)
	}
}

// CacheDir returns the directory where the tool keeps indexes: BPFPROLOGUE_CACHE, which the user has
// chosen, or bpfprologue in the user's cache directory. It is "" if there is neither.
func CacheDir() (dir string, chosen bool) {
	if dir := os.Getenv("BPFPROLOGUE_CACHE"); dir != "" {
		return dir, true
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", false
	}
	return filepath.Join(dir, "bpfprologue"), false
}
