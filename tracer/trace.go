package tracer

import (
	"context"
	"errors"
	"iter"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
)

// Trace is all of the steps for the hits of some definitions, such as "vfs_read count": it opens an image (the running kernel's vmlinux,
// a program or a library), finds where it runs, plans and attaches the definitions, and yields each hit of all processes until ctx
// ends or the loop is left. A hit is valid until the next one. An error is the last thing that is yielded, without a hit; the end of
// ctx is none. To choose processes, limits or stacks, or to see what was refused or not reported, take the steps that the package's
// comment shows.
func Trace(ctx context.Context, path string, definitions ...string) iter.Seq2[*Hit, error] {
	return func(yield func(*Hit, error) bool) {
		if err := trace(ctx, path, definitions, func(h *Hit) bool { return yield(h, nil) }); err != nil {
			yield(nil, err)
		}
	}
}

// errLeft ends a session whose hits nobody wants any more.
var errLeft = errors.New("the loop was left")

func trace(ctx context.Context, path string, definitions []string, yield func(*Hit) bool) error {
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		return err
	}
	defer img.Close()
	running, err := instances.Find(img, instances.FindOptions{})
	if err != nil {
		return err
	}
	plans := make([]*plan.Plan, len(definitions))
	for i, text := range definitions {
		d, err := probe.Parse(text)
		if err != nil {
			return err
		}
		if plans[i], err = plan.New(ctx, img, d, plan.Options{Target: running.Target()}); err != nil {
			return err
		}
	}
	s, err := Open(ctx, running, plans, Options{})
	if err != nil {
		return err
	}
	err = s.Run(ctx, func(h *Hit) error {
		if !yield(h) {
			return errLeft
		}
		return nil
	})
	if errors.Is(err, errLeft) { // an error can be yielded no more
		_ = s.Close()
		return nil
	}
	return errors.Join(err, s.Close())
}

// Value returns the value of an argument by its name, of a run also those of its results. That of an unknown name was not fetched.
func (h *Hit) Value(name string) plan.Value {
	for _, values := range [][]plan.Value{h.Values, h.Results} {
		for _, v := range values {
			if v.Name == name {
				return v
			}
		}
	}
	return plan.Value{Argument: &plan.Argument{Unfetched: loc.Reason{Code: reasons.NoSuchVariable}}, Lost: true}
}
