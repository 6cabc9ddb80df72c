package witness

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"sort"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/claim"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/radix"
	"github.com/bpfprologue/bpfprologue/internal/rule"
)

// To read the bodies of all functions takes as long as to answer for all of them, and what they say is the image's, not the question's. So
// the groups that speak are kept with the image's index: how many controls there are by rule; a table of functions, by a hash of what tells
// them apart, of which a question reads its own ones in place; and their groups.

// learned are the groups of all functions that speak.
type learned struct {
	counts map[string]claim.Count
	new    bool // the index does not have them
	mu     sync.Mutex
	groups map[entries.FunctionKey]*groups // of the kept ones, those that were asked for
	kept   []byte                          // nil, or what pack made, and in it:
	table  []byte                          // keptFunctionSize for each function
	bodies []byte                          // what the table leads to
}

// keptFunctionSize is the size in bytes of a function in the table: the hash, and where its groups are.
const keptFunctionSize = 8 + 4

func newLearned() *learned { return &learned{groups: make(map[entries.FunctionKey]*groups)} }

// learned returns the groups of all functions, or nil if they have not been learned.
func (c *Controls) learned() *learned {
	c.keptOnce.Do(func() {
		if !c.img.Index.Keeps() {
			return
		}
		if l := unpackLearned(c.img.Index.DerivedOfImage(index.BlockControls)); l != nil {
			c.every.CompareAndSwap(nil, l)
		}
	})
	return c.every.Load()
}

// Learned returns the groups of all functions in the form of the index's block, and whether it has not got them.
func (c *Controls) Learned() (packed []byte, more bool) {
	if l := c.every.Load(); l != nil && l.new {
		return l.pack(), true
	}
	return nil, false
}

// of returns the groups of a function that speak, or nil.
func (l *learned) of(k entries.FunctionKey) *groups {
	if l.kept == nil {
		return l.groups[k]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	g, known := l.groups[k]
	if !known {
		g = l.find(k)
		l.groups[k] = g
	}
	return g
}

// prune counts the controls and removes the groups that do not speak.
func (l *learned) prune() {
	l.counts = make(map[string]claim.Count)
	for k, g := range l.groups {
		for at, x := range g.by {
			equal, differ := x.Counts()
			if equal+differ >= at.Enough() {
				r := rule.Operand
				switch {
				case at.Call:
					r = rule.Call
				case at.Member:
					r = rule.Member
				}
				n := l.counts[r.String()]
				if n.Differ += differ; differ > 0 {
					n.Silenced += equal
				} else {
					n.Equal += equal
				}
				l.counts[r.String()] = n
			}
			if !x.Speaks(&at.Kind) {
				delete(g.by, at)
			}
		}
		if g.setActs(); len(g.by) == 0 {
			delete(l.groups, k)
		}
	}
}

// pack returns the form for unpackLearned.
func (l *learned) pack() []byte {
	b := binary.AppendUvarint(nil, uint64(len(l.counts)))
	for _, r := range slices.Sorted(maps.Keys(l.counts)) {
		n := l.counts[r]
		b = append(binary.AppendUvarint(b, uint64(len(r))), r...)
		for _, v := range [...]int{n.Equal, n.Silenced, n.Differ} {
			b = binary.AppendUvarint(b, uint64(v))
		}
	}
	type function struct {
		hash   uint64
		groups []byte
	}
	functions := make([]function, 0, len(l.groups))
	for k, g := range l.groups {
		functions = append(functions, function{k.Hash(), g.pack(k.Pack(nil))})
	}
	radix.By(functions, func(a, b *function) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), slices.Compare(a.groups, b.groups))
	})
	b = binary.AppendUvarint(b, uint64(len(functions)))
	end := 0
	for i := range functions {
		b = binary.LittleEndian.AppendUint64(b, functions[i].hash)
		b = binary.LittleEndian.AppendUint32(b, uint32(end))
		end += len(functions[i].groups)
	}
	for i := range functions {
		b = append(b, functions[i].groups...)
	}
	return b
}

// unpackLearned returns what pack packed, or nil if it is damaged.
func unpackLearned(d []byte) *learned {
	b := bin.Reader{D: d}
	l := newLearned()
	l.counts = make(map[string]claim.Count)
	for left := b.ULEB(); left > 0 && !b.Bad; left-- {
		r := string(b.Bytes(b.ULEB()))
		l.counts[r] = claim.Count{Equal: int(b.ULEB()), Silenced: int(b.ULEB()), Differ: int(b.ULEB())}
	}
	n := b.ULEB()
	if n > uint64(len(d)) {
		return nil
	}
	l.table = b.Bytes(n * keptFunctionSize)
	if b.Bad {
		return nil
	}
	l.kept, l.bodies = d, d[b.P:]
	return l
}

// find reads the kept groups of a function, or returns nil.
func (l *learned) find(k entries.FunctionKey) *groups {
	hash, n := k.Hash(), len(l.table)/keptFunctionSize
	at := func(i int) []byte { return l.table[i*keptFunctionSize:] }
	for i := sort.Search(n, func(i int) bool { return binary.LittleEndian.Uint64(at(i)) >= hash }); i < n; i++ {
		if binary.LittleEndian.Uint64(at(i)) != hash {
			break
		}
		b := bin.Reader{D: l.bodies}
		b.Seek(uint64(binary.LittleEndian.Uint32(at(i)[8:])))
		own := entries.UnpackKey(&b)
		if g := unpackGroups(&b); own == k && g != nil {
			return g
		}
	}
	return nil
}
