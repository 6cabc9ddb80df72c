package instances

import (
	"context"
	"errors"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/glob"
	"github.com/bpfprologue/bpfprologue/probe"
)

// expand finds the sites of a definition.
func expand(ctx context.Context, img *dwarfloc.Image, def *probe.Definition, filter glob.Matcher) ([]*dwarfloc.Site, error) {
	pattern, err := glob.Compile(def.Point.Function)
	if err != nil {
		return nil, pointError(def, err)
	}
	// An offset into a function and its return mean nothing inside an inlined
	// instance, whose code is scattered.
	entries := !def.Options.Inlines || def.Point.Offset != 0 || def.Point.Return
	sites, err := glob.Expand(ctx, img, glob.Selection{Functions: pattern, Filter: filter, Source: def.Point.Source, EntriesOnly: entries})
	if err != nil {
		var missing *glob.NotFoundError
		if errors.As(err, &missing) {
			return nil, probe.Errorf(def, def.Point.Pos, "%w", err)
		}
		return nil, pointError(def, err)
	}
	if def.Point.Offset == 0 {
		return sites, nil
	}
	var at []*dwarfloc.Site
	for _, s := range sites {
		t, ok, err := s.At(def.Point.Offset)
		if err != nil {
			return nil, err
		}
		if ok {
			at = append(at, t)
		}
	}
	if len(at) == 0 {
		return nil, probe.Errorf(def, def.Point.Pos, "offset %#x is outside the code of every matching function", def.Point.Offset)
	}
	return at, nil
}

// pointError puts an error of a pattern into the definition's text.
func pointError(def *probe.Definition, err error) error {
	var ge *glob.Error
	if errors.As(err, &ge) {
		return probe.Errorf(def, def.Point.Pos+ge.Column-1, "%s", ge.Msg)
	}
	return err
}
