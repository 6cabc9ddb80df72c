package plan

import (
	"context"
	"errors"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/selected"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/sites"
)

// chosen returns the definition with the first candidate of its function (probe.Point.Candidates) that the image has,
// so that one definition outlives a function's new name: also where it is only inlined.
func chosen(ctx context.Context, img *dwarfloc.Image, def *probe.Definition, o *Options) (*probe.Definition, error) {
	candidates := def.Point.Candidates()
	if len(candidates) == 1 {
		return def, nil
	}
	var first error
	for _, c := range candidates {
		one := *def
		one.Point.Function = c
		sel, err := selected.Of(&one, o.Filter)
		if err != nil {
			return nil, pointError(def, err)
		}
		l, err := sites.List(ctx, img, sel)
		var missing *sites.NotFoundError
		switch {
		case err == nil && l.Len() > 0:
			return &one, nil
		case err != nil && !errors.As(err, &missing):
			return nil, pointError(def, err)
		case first == nil && err != nil:
			whole := *missing
			whole.Pattern = def.Point.Function
			first = functionsError(def, &whole)
		}
	}
	return nil, first
}
