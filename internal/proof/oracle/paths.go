package oracle

import (
	"fmt"
	"slices"
	"sort"
)

// Paths follows paths through one function. It is for one goroutine.
type Paths struct {
	l        *Listing
	f        *Function
	noReturn map[uint64]bool
	next     [][]int32
	idle     []bool // nothing happens there but that execution goes on at the next one
	behind   []bool // a jump comes behind the statements at its target
	own      []int  // in the listing
	index    map[uint64]int32
	Lost     string // why paths are not known
	seen     []int32
	round    int32
}

// Paths prepares the function's graph.
func (l *Listing) Paths(f *Function, noReturn map[uint64]bool) *Paths {
	p := &Paths{l: l, f: f, noReturn: noReturn, index: make(map[uint64]int32)}
	var own []int
	for _, r := range f.Ranges {
		i := sort.Search(len(l.insns), func(i int) bool { return l.insns[i].addr >= r[0] })
		for ; i < len(l.insns) && l.insns[i].addr < r[1]; i++ {
			p.index[l.insns[i].addr] = int32(len(own))
			own = append(own, i)
		}
	}
	p.own = own
	p.next = make([][]int32, len(own))
	p.seen = make([]int32, len(own))
	p.idle = make([]bool, len(own))
	p.behind = make([]bool, len(own))
	for n, i := range own {
		in := &l.insns[i]
		to := func(addr uint64) {
			if k, ok := p.index[addr]; ok {
				p.next[n] = append(p.next[n], k)
			}
		}
		on := true
		switch in.does {
		case branches:
			to(in.target)
		case jumps:
			to(in.target)
			on = false
			p.behind[n] = f.behind(in.addr, in.target)
		case ends:
			on = false
		case calls:
			on = !p.never(in.target)
		case traps:
			on = l.warns[in.addr]
		case wanders:
			on = false
			if l.arm {
				p.Lost = fmt.Sprintf("an indirect jump at %#x", in.addr)
			}
		}
		after := uint64(1<<64 - 1)
		if i+1 < len(l.insns) {
			after = l.insns[i+1].addr
		}
		if on && n+1 < len(own) && own[n+1] == i+1 {
			to(after)
		}
		k := sort.Search(len(l.sides), func(k int) bool { return l.sides[k].from >= in.addr })
		for ; k < len(l.sides) && l.sides[k].from < after && l.sides[k].from < in.addr+16; k++ {
			to(l.sides[k].to)
		}
		p.idle[n] = in.does == idles && len(p.next[n]) == 1 && int(p.next[n][0]) == n+1
	}
	return p
}

// behind reports whether a jump comes behind the statements at its target: GCC merges equal ends of blocks, and the last statement before the
// jump is the same as that before the target.
func (f *Function) behind(jump, target uint64) bool {
	x, ok := f.last[jump]
	y, also := f.last[target]
	return ok && also && x.file == y.file && x.line == y.line
}

func (p *Paths) never(target uint64) bool {
	if target == 0 {
		return false
	}
	return p.noReturn[target] || slices.ContainsFunc(p.l.nameAt(target), func(n string) bool { return neverReturn[n] })
}

// Avoid returns a statement of a body that is reached from the function's entry on a path that
// passes none of some instructions. ok is false if there is none. A statement at an
// instruction that does nothing may have its way after it.
func (p *Paths) Avoid(b *Body, ways []uint64) (statement uint64, ok bool) {
	p.round++
	start, is := p.index[p.f.Entry]
	if !is {
		return 0, false
	}
	wanted := make(map[int32]uint64, len(b.Statements))
	for _, s := range b.Statements {
		n, is := p.index[s]
		if !is {
			continue
		}
		at := n
		for p.idle[at] && !slices.Contains(ways, p.l.insns[p.own[at]].addr) {
			at++
		}
		if at == n || !slices.Contains(ways, p.l.insns[p.own[at]].addr) {
			wanted[n] = s
		}
	}
	for _, w := range ways {
		if n, is := p.index[w]; is {
			p.seen[n] = p.round
		}
	}
	if p.seen[start] == p.round {
		return 0, false
	}
	p.seen[start] = p.round
	work := []int32{start}
	for len(work) > 0 {
		n := work[len(work)-1]
		work = work[:len(work)-1]
		if s, is := wanted[n]; is {
			return s, true
		}
		next := p.next[n]
		if p.behind[n] && len(next) == 1 && p.seen[next[0]] != p.round {
			next = p.next[next[0]]
		}
		for _, k := range next {
			if p.seen[k] != p.round {
				p.seen[k] = p.round
				work = append(work, k)
			}
		}
	}
	return 0, false
}
