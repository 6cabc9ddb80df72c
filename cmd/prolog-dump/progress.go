package main

import (
	"errors"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/store"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
)

// patience is how long work may take before a bar is drawn: a scan of a kernel in the page
// cache is done before anyone could read the bar.
const patience = 400 * time.Millisecond

// open opens an image. typesOf, if not nil, is the image to take types from that this one
// only declares.
func (s *settings) open(path string, typesOf *dwarfloc.Image) (*dwarfloc.Image, error) {
	o := dwarfloc.Options{TypesOf: typesOf, DebugDirs: s.allDebugDirs(), FindDebug: s.findDebug, Partial: true, KernelTypes: instances.KernelTypes}
	if !s.noCache {
		dir, chosen := userCache()
		o.CacheDir = dir
		o.Warn = func(err error) {
			// Nobody asked for the usual directory: a user without a home has none, each time.
			if chosen || !errors.Is(err, store.ErrUnusable) {
				terminal.Fprintf(stderr, "prolog-dump: %v\n", err)
			}
		}
	}
	if onTerminal() {
		o.Progress = showProgress("indexing", progressbar.OptionShowBytes(true))
	}
	img, err := (*dwarfloc.Image)(nil), error(nil)
	if d := s.archived[path]; d != nil {
		img, err = dwarfloc.FromBytes(path, d, &o)
	} else {
		img, err = dwarfloc.Open(path, &o)
	}
	if err == nil {
		s.images = append(s.images, img)
		if lost := img.Missing(); lost != nil {
			terminal.Fprintf(stderr, "prolog-dump: %v\n", lost)
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

// showAttaching returns a function that draws how many sites are attached, on a terminal: a
// kernel needs some milliseconds for each.
func showAttaching() func(done, total int) {
	if !onTerminal() {
		return nil
	}
	show := showProgress("attaching", progressbar.OptionShowCount())
	return func(done, total int) { show(uint64(done), uint64(total)) }
}

// showProgress returns a function that draws a progress bar, unless the work is done soon.
func showProgress(what string, o ...progressbar.Option) func(done, total uint64) {
	var (
		mu    sync.Mutex
		bar   *progressbar.ProgressBar
		start time.Time
	)
	return func(done, total uint64) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case start.IsZero():
			start = time.Now()
		case done >= total:
			if bar != nil {
				_ = bar.Clear() // failing to draw is no reason to stop
			}
			bar, start = nil, time.Time{}
		case bar != nil:
			_ = bar.Set64(int64(done))
		case time.Since(start) > patience:
			bar = progressbar.NewOptions64(int64(total), append(o, progressbar.OptionSetDescription(what),
				progressbar.OptionSetWriter(drawn),
				progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())...)
		}
	}
}
