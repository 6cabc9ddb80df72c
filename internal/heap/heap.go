// Package heap says when the tool's heap is collected.
package heap

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// How much the heap may grow, in percent of what is in use, before it is collected. Little is in
// use, and most of what is read is soon done with. Over Debian's 6.1 kernel, coverage takes 77 MB of its own with 50, 73 with
// 35, 71 with 28, and 68 with 22, which is collected half as often again as with 35, for a twentieth more work; a pack of it 340 MB and 10 s of processor time with 50, 320 MB and a tenth more work with 35; all parameters as JSON take 165 MB
// with 50 and 200 with 100, for a tenth less work.
const (
	Usual    = 50
	Coverage = 28  // and not below CoverageFrom
	Large    = 100 // once many sites are printed

	// first holds for the first collection, which a heap of 4 MB in use would have with 100. Most questions need none until they
	// are answered: with Usual they were collected from 2 MB on, several times, which took a third of their time. With 200 a question to a
	// pack about the 76 sites of get_page was collected just before its end.
	first = 400
	small = least * first / 100
	// firstOfPack holds for the first collection if a pack answers: what is read of it, and the sites, stay in use until all is answered, so
	// that early ones find little. kmalloc, 1,990 probes in a kernel, takes 16 MB of the heap without any; with 300 it would be collected once, of which 8 of
	// 11 MB were left.
	firstOfPack = 800
)

// least is what a heap may have with 100, whatever is in use.
const least = 4 << 20

// CoverageFrom is how large coverage's heap may be in any case. Over a kernel whose index is not kept it is larger until the last tenth of the work; where it
// is kept, 40 MB instead of 24 save a seventh of the work.
const CoverageFrom = 40 << 20

// decisions counts how often it has been said when the heap is collected.
var decisions atomic.Int32

// At sets when the heap is collected from now on, unless the user has.
func At(n int) {
	if os.Getenv("GOGC") == "" {
		decide(n)
	}
}

func decide(n int) {
	decisions.Add(1)
	limit(math.MaxInt64)
	debug.SetGCPercent(n)
}

// bound is how large all of the tool's memory may become between the first collection and the next decision. What asks for one runs once all that the collection has left was looked through,
// which may be late: a heap of which 8 MB were left then grew to 35 in half of all runs, and to 22 in the others.
const bound = 28 << 20

// limit bounds all of the tool's memory, unless the user has.
func limit(bytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(bytes)
	}
}

// From is At once the heap has some bytes when it is collected. Until then it is collected when it has these.
func From(bytes int64, n int) {
	if os.Getenv("GOGC") != "" {
		return
	}
	decide(int(bytes * 100 / least))
	afterNext(bytes, n)
}

// live is how many bytes the last collection has left, 1 MB at least.
func live() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return max(int64(s[0].Value.Uint64()), 1<<20)
}

// afterNext decides when a heap is collected that was collected: again when it has some bytes, while less is left of it, or else by how much it grows. What
// somebody decides first holds.
func afterNext(bytes int64, n int) {
	before := decisions.Load()
	runtime.AddCleanup(new([16]uint64), func(int) {
		switch used := live(); {
		case decisions.Load() != before:
		case used*int64(100+n)/100 < bytes:
			limit(math.MaxInt64)
			debug.SetGCPercent(int((bytes - used) * 100 / used))
			afterNext(bytes, n)
		default:
			decide(n)
		}
	}, 0)
}

// Late lets the heap be collected late for the first time, and then as usual, unless the user has set when. While it is as small as it
// was then, it is collected no sooner: a question that no index answers was collected eleven times at 8 to 14 MB, for a tenth of its work.
func Late() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(first)
	limit(bound)
	afterNext(small, Usual)
}

// OfPack lets it be collected for the first time when a question to a pack has read much.
func OfPack() {
	if os.Getenv("GOGC") == "" && decisions.Load() == 0 {
		debug.SetGCPercent(firstOfPack)
	}
}
