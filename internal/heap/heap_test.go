package heap_test

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/internal/heap"
)

var garbage []byte

// collections returns how often the heap is collected while 128 MB are allocated, of which nothing stays.
func collections() uint32 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 128 {
		garbage = make([]byte, 1<<20)
		time.Sleep(time.Millisecond) // for what is decided after a collection
	}
	runtime.ReadMemStats(&after)
	return after.NumGC - before.NumGC
}

// TestFrom: a small heap is collected when it has grown to some size, and a large one by how much it grows.
func TestFrom(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(100)
	runtime.GC()
	heap.From(32<<20, 20)
	if n := collections(); n < 1 || n > 10 {
		t.Errorf("a heap of up to 32 MB was collected %d times", n)
	}
	live := make([]byte, 64<<20)
	runtime.GC()
	time.Sleep(10 * time.Millisecond)
	if n := collections(); n < 6 || n > 40 {
		t.Errorf("a heap of 64 MB was collected %d times", n)
	}
	runtime.KeepAlive(live)
}
