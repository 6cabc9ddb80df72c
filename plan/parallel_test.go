package plan

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
)

// TestEachSiteAlone: the ways into one body share the memory of the goroutine that looks at the body, however many they are.
func TestEachSiteAlone(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("there is one processor")
	}
	for _, alone := range []bool{true, false} {
		p := &Plan{Sites: make([]Site, 16*leastAtOnce), alone: alone}
		for i := range p.Sites {
			p.Sites[i].Site = new(dwarfloc.Site)
		}
		var running, most atomic.Int32
		err := p.eachSite(t.Context(), nil, func(int, *Site) error {
			if n := running.Add(1); n > most.Load() {
				most.Store(n)
			}
			runtime.Gosched()
			running.Add(-1)
			return nil
		})
		if err != nil || alone && most.Load() != 1 {
			t.Errorf("alone: %v: %d sites at once, %v", alone, most.Load(), err)
		}
	}
}
