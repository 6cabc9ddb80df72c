package plan

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// atOnce is how many neighbouring sites a goroutine takes at once: they mostly share a unit of the debug information.
const atOnce = 32

// eachSite calls f for each site of the plan, on all processors if there are many. It returns the error of the first site that has one.
func (p *Plan) eachSite(ctx context.Context, progress func(done, total int), f func(s *Site) error) error {
	var next, done atomic.Int64
	var mu sync.Mutex
	var failed error
	first := len(p.Sites)
	work := func() {
		for {
			from := int(next.Add(atOnce)) - atOnce
			if from >= len(p.Sites) {
				return
			}
			to := min(from+atOnce, len(p.Sites))
			for i := from; i < to; i++ {
				err := context.Cause(ctx)
				if err == nil {
					err = f(&p.Sites[i])
				}
				if err == nil {
					continue
				}
				mu.Lock()
				if i < first {
					first, failed = i, err
				}
				mu.Unlock()
				next.Store(int64(len(p.Sites))) // those before have been taken
				return
			}
			if n := done.Add(int64(to - from)); progress != nil {
				progress(int(n), len(p.Sites))
			}
		}
	}
	workers := min(runtime.GOMAXPROCS(0), len(p.Sites)/(2*atOnce))
	if workers < 2 {
		work()
		return failed
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(work)
	}
	wg.Wait()
	return failed
}
