package dwarfloc_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/raced"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/sites"
)

// TestLarge: answers of small files do not take far more memory than the files, whatever they repeat.
func TestLarge(t *testing.T) {
	raced.OneGoroutine(t)
	for name, data := range dwarftest.Large() {
		img, err := dwarfloc.FromBytes("test", data, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		all, err := img.Sites(ctx, nil)
		if err != nil || len(all) == 0 {
			t.Fatalf("%s: %d sites, %v", name, len(all), err)
		}
		vars, err := sites.Variables(ctx, all)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		def, err := probe.Parse("* $params")
		if err != nil {
			t.Fatal(err)
		}
		var texts atomic.Uint64
		err = plan.Each(ctx, img, def, plan.Options{}, plan.Visitor[string]{
			Site: func(_ *plan.Plan, s *plan.Site) (string, error) { return s.String(), nil },
			Size: func(s string) int { return len(s) },
			Next: func(s string, _ int) error { texts.Add(uint64(len(s))); return nil },
		})
		var wrong *probe.Error
		if err != nil && !errors.As(err, &wrong) {
			t.Errorf("%s: %v", name, err)
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		const most = 64 << 20
		if m.HeapAlloc > most+20*uint64(len(data)) {
			t.Errorf("%s: %d bytes are in use for a file of %d", name, m.HeapAlloc, len(data))
		}
		t.Logf("%s: %d bytes, %d sites, %d functions with variables, %d bytes of text; %d MB in use", name, len(data), len(all), len(vars), texts.Load(), m.HeapAlloc>>20)
		runtime.KeepAlive(all)
		runtime.KeepAlive(vars)
	}
}
