package tracer_test

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// TestAllSteps: all steps in one call. Values have names, one that there is not prints as what was not fetched, a loop can be left, and
// an error is yielded.
func TestAllSteps(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	const source = `
volatile int sink;
__attribute__((noinline)) void one(int a, int b) { sink += a - b; }
int main(void) { for (int i = 0; i < 20; i++) one(i, 7); return 0; }
`
	path, _ := build(t, "gcc-12", "all.c", source, "-O2")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		// The program is run until the probes are there and have been hit.
		for ctx.Err() == nil {
			if err := exec.CommandContext(ctx, path).Run(); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	n := 0
	for h, err := range tracer.Trace(ctx, path, "one a b") {
		if err != nil {
			t.Fatal(err)
		}
		if a, is := h.Value("a").Any().(int64); !is || a < 0 || a > 19 || h.Value("b").String() != "7" || h.Value("c").String() != "?" {
			t.Errorf("a=%v b=%v c=%v", h.Value("a"), h.Value("b"), h.Value("c"))
		}
		if n++; n == 100 {
			break
		}
	}
	cancel()
	if err := <-done; err != nil && ctx.Err() == nil || n != 100 {
		t.Errorf("%d hits, %v", n, err)
	}
	for _, err := range tracer.Trace(t.Context(), "trace_test.go", "one a") {
		if !errors.Is(err, dwarfloc.ErrNotELF) {
			t.Errorf("of no image: %v", err)
		}
	}
}
