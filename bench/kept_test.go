package bench

import (
	"context"
	"os"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
)

// BenchmarkKept is what a user waits for, but for the start of the process: a definition and a
// kernel whose index is kept, with probes at all ways into bodies and at their entries alone.
func BenchmarkKept(b *testing.B) {
	path := os.Getenv("BENCH_VMLINUX")
	if path == "" {
		b.Skip("BENCH_VMLINUX is not set")
	}
	def, err := probe.Parse("get_page page")
	if err != nil {
		b.Fatal(err)
	}
	o := &dwarfloc.Options{CacheDir: b.TempDir()}
	ask := func(b *testing.B, entryOnly bool) {
		img, err := dwarfloc.Open(path, o)
		if err != nil {
			b.Fatal(err)
		}
		defer img.Close()
		if _, err := plan.New(context.Background(), img, def, plan.Options{EntryOnly: entryOnly}); err != nil {
			b.Fatal(err)
		}
	}
	ask(b, false)
	for name, ways := range map[string]bool{"entry": true, "all": false} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ask(b, ways)
			}
		})
	}
}
