package bench

import (
	"context"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
)

// BenchmarkEach visits every parameter of a kernel, whose index is kept: how long it takes until
// the first site and until the last, and how much of the heap is in use at most.
func BenchmarkEach(b *testing.B) {
	path := os.Getenv("BENCH_VMLINUX")
	if path == "" {
		b.Skip("BENCH_VMLINUX is not set")
	}
	def, err := probe.Parse("* $params")
	if err != nil {
		b.Fatal(err)
	}
	o := &dwarfloc.Options{CacheDir: b.TempDir()}
	var peak uint64
	var first time.Duration
	for b.Loop() {
		start := time.Now()
		img, err := dwarfloc.Open(path, o)
		if err != nil {
			b.Fatal(err)
		}
		sites := 0
		err = plan.Each(context.Background(), img, def, plan.Options{}, plan.Visitor[string]{
			Site: func(_ *plan.Plan, s *plan.Site) (string, error) { return s.String(), nil },
			Next: func(string, int) error {
				if sites == 0 {
					first = time.Since(start)
				}
				if sites++; sites%10000 == 0 {
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					peak = max(peak, m.HeapInuse)
				}
				return nil
			},
		})
		if err != nil {
			b.Fatal(err)
		}
		_ = img.Close()
	}
	b.ReportMetric(float64(first.Milliseconds()), "ms-to-first")
	b.ReportMetric(float64(peak)/1e6, "MB-heap")
}
