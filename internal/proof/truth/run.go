package truth

import (
	"context"
	"fmt"
	"os"
	"sync"
)

// Workers is how many builds are made and traced at a time. Most of the time goes into waiting
// for the kernel to detach probes.
const Workers = 6

// Run makes some builds in a folder, traces their programs and compares. done is called for
// each build when it is finished, for one at a time, in any order.
func Run(ctx context.Context, dir string, builds []Build, done func(i int, r *Result, err error)) error {
	w, err := newWorkshop(ctx, dir)
	if err != nil {
		return err
	}
	return each(ctx, builds, w.run, done)
}

// each makes and traces builds with run.
func each[R any](ctx context.Context, builds []Build, run func(context.Context, *Build, int) (R, error), done func(i int, r R, err error)) error {
	var (
		work  sync.WaitGroup
		mu    sync.Mutex
		queue = make(chan int)
	)
	for range Workers {
		work.Go(func() {
			for i := range queue {
				r, err := run(ctx, &builds[i], i)
				mu.Lock()
				done(i, r, err)
				mu.Unlock()
			}
		})
	}
	for i := range builds {
		queue <- i
	}
	close(queue)
	work.Wait()
	return ctx.Err()
}

// run makes one build, traces its program and compares.
func (w *workshop) run(ctx context.Context, b *Build, number int) (*Result, error) {
	defs, err := Definitions(b.Language)
	if err != nil {
		return nil, err
	}
	path, err := w.make(ctx, b, "", fmt.Sprintf("program%d", number))
	if err != nil {
		return nil, err
	}
	t, rec, err := tracedRun(ctx, path, defs)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", b, err)
	}
	return compare(b, t, rec, false), nil
}

// Make makes one build in a folder, and leaves its program at path.
func Make(ctx context.Context, dir string, b *Build, path string) error {
	w, err := newWorkshop(ctx, dir)
	if err != nil {
		return err
	}
	made, err := w.make(ctx, b, "", "program")
	if err != nil {
		return err
	}
	return os.Rename(made, path)
}
