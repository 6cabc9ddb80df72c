package packfile

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// keptBlocks has blocks of the last list of a few sites, which are asked for next, without the nodes that this needs none of. Several
// goroutines may use it, and nobody changes a block that is in it.
type keptBlocks struct {
	mu    sync.Mutex
	all   map[int]*readBlock
	nodes int
}

// maxKeptNodes bounds the nodes that are kept: 104 bytes each.
const maxKeptNodes = 8192

// begin forgets what an earlier list has left.
func (k *keptBlocks) begin() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all, k.nodes = make(map[int]*readBlock), 0
}

// add keeps a copy of a block, if there is room.
func (k *keptBlocks) add(n int, b *readBlock) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.nodes+len(b.nodes) > maxKeptNodes {
		return
	}
	c := *b
	c.nodes, c.symbols = slices.Clone(b.nodes), slices.Clone(b.symbols)
	k.all[n] = &c
	k.nodes += len(b.nodes)
}

func (k *keptBlocks) get(n int) *readBlock {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all[n]
}

// has reports whether a block has all of some sites, which are sorted.
func (b *readBlock) has(sites []int32) bool {
	at := 0
	for _, want := range sites {
		for at < len(b.nodes) && (b.nodes[at].ghost || b.nodes[at].index < want) {
			at++
		}
		if at == len(b.nodes) || b.nodes[at].index != want {
			return false
		}
	}
	return true
}

// leastAtOnce and mostAtOnce are how many groups of blocks a goroutine takes at once: a question about two needs no second goroutine.
const leastAtOnce, mostAtOnce = 2, 8

// eachBlock calls g for some blocks, which are sorted, or for all of them if in is nil, with those of their nodes that pick selects, on all processors if
// the file has a guard: pick is called at once by several, and worker is less than workers. g must not keep the block. The error is that of the first block
// that has one.
func (f *File) eachBlock(in []int, pick func(n *readNode) bool, g func(worker, n int, b *readBlock) error) error {
	count := groups(f.facts.Blocks)
	var from []int // where in in the blocks of a group begin, of those that have some; and the end
	if in != nil {
		for i, n := range in {
			if i == 0 || n/groupSize != in[i-1]/groupSize {
				from = append(from, i)
			}
		}
		count = len(from)
		from = append(from, len(in))
	}
	atOnce := min(max(count/(4*runtime.GOMAXPROCS(0)), leastAtOnce), mostAtOnce)
	chunks := (count + atOnce - 1) / atOnce
	var next atomic.Int64
	var mu sync.Mutex
	first, failed := chunks, error(nil) // the first chunk that has an error, and that
	work := func(worker int) error {
		s := f.session()
		defer s.end()
		for {
			chunk := int(next.Add(1)) - 1
			mu.Lock()
			ended := chunk >= first
			mu.Unlock()
			if ended {
				return nil
			}
			for i := chunk * atOnce; i < min((chunk+1)*atOnce, count); i++ {
				group, which := i, []int(nil)
				if in != nil {
					which = in[from[i]:from[i+1]]
					group = which[0] / groupSize
				}
				if err := s.blocks(group, which, pick, func(n int, b *readBlock) error { return g(worker, n, b) }); err != nil {
					mu.Lock()
					if chunk < first {
						first, failed = chunk, err
					}
					mu.Unlock()
					return nil
				}
			}
		}
	}
	if n := f.workers(chunks); n > 1 {
		errs := make([]error, n)
		var wg sync.WaitGroup
		for worker := range n {
			wg.Go(func() { errs[worker] = f.Guard(func() error { return work(worker) }) })
		}
		wg.Wait()
		if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
			return errs[i]
		}
	} else if err := work(0); err != nil {
		return err
	}
	return failed
}

// workers returns how many goroutines do n pieces of work.
func (f *File) workers(n int) int {
	if f.Guard == nil {
		return 1
	}
	return max(1, min(n, runtime.GOMAXPROCS(0)))
}
