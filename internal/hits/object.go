package hits

import (
	"bufio"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/cilium/ebpf"

	"github.com/bpfprologue/bpfprologue/internal/mapview"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/recording"
	"github.com/bpfprologue/bpfprologue/stacks"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// Object prints what the programs of an object file report, and their maps.
type Object struct {
	Out    io.Writer
	Show   func(*recording.Hit) error
	Names  *stacks.Names
	JSON   bool
	Spec   *ebpf.CollectionSpec
	Loaded map[string]*ebpf.Map

	mu sync.Mutex // hits and maps come from two goroutines
}

// Run prints hits, if there is a sampler, and maps at each interval, until the context ends; then the
// maps.
func (o *Object) Run(ctx context.Context, sampler *tracer.Session, interval time.Duration) error {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var failed error
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if interval > 0 {
		wg.Go(func() {
			t := time.NewTicker(interval)
			defer t.Stop()
			for {
				select {
				case <-t.C:
					if err := o.maps(); err != nil {
						failed = err
						cancel() // nothing is shown any more
						return
					}
				case <-stop:
					return
				}
			}
		})
	}
	var err error
	if sampler == nil {
		<-ctx.Done()
	} else {
		n := 0
		source := recording.Source{Names: o.Names}
		err = sampler.Run(ctx, func(h *tracer.Hit) error {
			n++
			o.mu.Lock()
			defer o.mu.Unlock()
			return o.Show(source.Hit(h))
		})
		not, notErr := sampler.Unreported()
		PrintTotals(screen.Stderr, n, &recording.Totals{Lost: not.Lost, Limited: not.Limited})
		err = errors.Join(err, notErr)
	}
	close(stop)
	wg.Wait()
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	return o.maps()
}

// maps prints what is in the object's maps.
func (o *Object) maps() error {
	all, err := mapview.Read(o.Spec, o.Loaded)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	out := bufio.NewWriter(o.Out)
	for i := range all {
		if o.JSON {
			if err := PrintMapJSON(out, &all[i]); err != nil {
				return err
			}
		} else {
			PrintMap(out, &all[i])
		}
	}
	return out.Flush()
}
