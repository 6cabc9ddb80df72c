package dwarfloc

import (
	"context"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/answers"
)

// notes are the statically defined probes of an image, which are read once.
type notes struct {
	once sync.Once
	by   *answers.Notes
	err  error
}

// staticProbes is inside.StaticProbes.
func (img *Image) staticProbes(ctx context.Context, m Matcher) (*SiteList, []string, error) {
	n := &img.notes
	err := img.guard(func() error {
		n.once.Do(func() { n.by, n.err = answers.NewNotes(img.file) })
		return n.err
	})
	if err != nil {
		return nil, nil, err
	}
	names, err := n.by.Names()
	if err != nil {
		return nil, nil, err
	}
	l, err := answered{img, n.by}.list(ctx, m, nil)
	return l, names, err
}
