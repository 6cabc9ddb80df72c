package plan

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// leastAtOnce and mostAtOnce are how many neighbouring sites a goroutine takes at once: they mostly share a unit of the debug information.
const leastAtOnce, mostAtOnce = 16, 32

// eachSite calls f for each site of the plan, on all processors if there are some and the sites are not of one goroutine alone. It returns the error of the first site that has one.
func (p *Plan) eachSite(ctx context.Context, progress func(done, total int), f func(i int, s *Site) error) error {
	if p.alone {
		for i := range p.Sites {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if err := f(i, &p.Sites[i]); err != nil {
				return err
			}
		}
		return nil
	}
	var next, done atomic.Int64
	var mu sync.Mutex
	var failed error
	first, procs := len(p.Sites), runtime.GOMAXPROCS(0)
	atOnce := min(max(len(p.Sites)/(4*procs), leastAtOnce), mostAtOnce)
	work := func() {
		for {
			from := int(next.Add(int64(atOnce))) - atOnce
			if from >= len(p.Sites) {
				return
			}
			to := min(from+atOnce, len(p.Sites))
			for i := from; i < to; i++ {
				err := context.Cause(ctx)
				if err == nil {
					err = f(i, &p.Sites[i])
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
	workers := min(procs, len(p.Sites)/(2*leastAtOnce))
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
