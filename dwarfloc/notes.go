package dwarfloc

import (
	"context"
	"errors"
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

// around returns a function for answeredSite.around. Where nothing but the note is known, its answer is nil.
func (img answered) around(addr uint64) func() (*Site, error) {
	return sync.OnceValues(func() (*Site, error) {
		at, err := img.by.siteAt(context.Background(), addr)
		if errors.Is(err, ErrNoFunction) || errors.Is(err, ErrNotDescribed) {
			return nil, nil
		}
		return at, err
	})
}

// described returns the site that the debug information has where a statically defined probe is, or nil: it knows what the note does not.
func (a *answeredSite) described() (*Site, error) {
	if a.around == nil {
		return nil, nil
	}
	return a.around()
}
