package main

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
)

// patience is how long work may take before it shows a bar: a scan of a kernel in
// the page cache is done before a bar could be read.
const patience = 400 * time.Millisecond

// open opens and indexes an image.
func (s *settings) open(ctx context.Context, path string) (*dwarfloc.Image, error) {
	img, err := dwarfloc.Open(path)
	if err != nil {
		return nil, err
	}
	if !s.noCache {
		img.UseCache(userCache())
	}
	if err := scan(ctx, img); err != nil {
		return nil, errors.Join(err, img.Close())
	}
	return img, nil
}

// scan indexes an image. On a terminal it shows how far it is; in a pipe it is
// silent.
func scan(ctx context.Context, img *dwarfloc.Image) error {
	if !isTerminal(os.Stderr) {
		return img.Scan(ctx, nil)
	}
	var (
		mu    sync.Mutex
		bar   *progressbar.ProgressBar
		start = time.Now()
	)
	err := img.Scan(ctx, func(done, total uint64) {
		mu.Lock()
		defer mu.Unlock()
		if bar == nil {
			if time.Since(start) < patience {
				return
			}
			bar = progressbar.NewOptions64(int64(total), progressbar.OptionSetDescription("indexing"),
				progressbar.OptionSetWriter(os.Stderr), progressbar.OptionShowBytes(true),
				progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
		}
		_ = bar.Set64(int64(done)) // a bar that cannot be drawn is no reason to stop
	})
	if bar != nil {
		_ = bar.Clear()
	}
	return err
}
