// Package walk visits all that an image answers, for what compares two images, or two readers of one.
package walk

import (
	"context"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
)

// Answers calls f with each site of an image and its parameters, from several goroutines at once. worker is less than
// GOMAXPROCS, and no two calls with the same worker overlap. The sites of a unit come one after the other, with one worker.
// A site is whole and may be kept.
func Answers(ctx context.Context, img *dwarfloc.Image, f func(worker int, s *dwarfloc.Site, params []*dwarfloc.Variable) error) error {
	return img.EachSite(ctx, nil, func(worker int, r dwarfloc.SiteRef) error {
		s, err := r.Site()
		if err != nil {
			return err
		}
		params, err := s.Params()
		if err != nil {
			return err
		}
		return f(worker, s, params)
	})
}
