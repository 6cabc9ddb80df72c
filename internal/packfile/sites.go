package packfile

import (
	"cmp"
	"math"
	"slices"
)

// readNode is a node of a block as it is read. Numbers are looked up for sites that are asked for.
type readNode struct {
	fun, parent, depth     int
	line                   int
	addr, view             uint64
	ghost, inline          bool
	before                 uint64 // bytes of the prologue
	prologue, local, plain bool   // plain: the ways are not written out
	tuple                  int    // -1: list
	list                   []int
	frame, result          int // result is -1 for the function's
	file                   uint64
	refused, bad           uint64
	symbol, offset         uint64 // noText: the block's
	around                 int    // -1: as it is counted
	ways                   *readWays
	outs                   []Way // without symbols
	index                  int   // among the sites of the block
}

// readWays are ways that are written out.
type readWays struct {
	flags    byte
	unknown  uint64
	noReturn int
	in, out  []readWay
}

type readWay struct {
	Way            // without what the rest says
	symbol, offset uint64
	refused        uint64
	before         []readBefore
	values         bool
	list           []int
	frame, result  int
}

type readBefore struct {
	Before
	symbol, offset uint64
}

// readBlock is a block as it is read.
type readBlock struct {
	nodes   []readNode
	symbols []readMark
	sites   int
}

type readMark struct{ text, addr uint64 }

// block reads a block.
func (s *session) block(n int) (*readBlock, error) {
	if n < 0 || n >= s.f.facts.Blocks {
		return nil, s.f.own.Errorf(s.f.parts[partBlocks].From, "block %d of %d is asked for", n, s.f.facts.Blocks)
	}
	all, err := s.blocks(n/groupSize, func(i int) bool { return i == n })
	if err != nil {
		return nil, err
	}
	return all[n%groupSize], nil
}

// blocks reads those blocks of a group that want selects; the others are nil.
func (s *session) blocks(g int, want func(i int) bool) ([]*readBlock, error) {
	r, roots, err := s.f.group(partBlocks, g)
	if err != nil {
		return nil, err
	}
	out := make([]*readBlock, r.n)
	prev := uint64(0)
	for i := range out {
		size := r.ULEB()
		at := r.P
		d := r.Bytes(size)
		if r.Bad || size == 0 {
			return nil, r.failed("a block is cut short")
		}
		x := blockReader{s: s}
		x.groupReader = r
		x.D, x.P, x.at = d, 0, r.at+at
		flags := x.U8()
		prev += uint64(x.int())
		root := roots
		if flags&blockRoot == 0 {
			roots++
		} else {
			root = x.index(s.f.funs)
		}
		if !want(g*groupSize + i) {
			continue
		}
		if out[i], err = x.read(flags, prev, root); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// fresh returns a block to read into, and release gives one back: the memory of nodes is most of what a question about many
// sites needs.
func (s *session) fresh() *readBlock {
	n := len(s.spare)
	if n == 0 {
		return new(readBlock)
	}
	b := s.spare[n-1]
	s.spare = s.spare[:n-1]
	clear(b.nodes)
	*b = readBlock{nodes: b.nodes[:0]}
	return b
}

func (s *session) release(b *readBlock) { s.spare = append(s.spare, b) }

// blockReader reads one block.
type blockReader struct {
	groupReader
	s *session
}

// maxNodes bounds the nodes of a block. The kernels at hand have less than 2,000 in one.
const maxNodes = 1 << 18

func (x *blockReader) read(flags byte, base uint64, root int) (*readBlock, error) {
	if root >= x.f.funs {
		return nil, x.failed("a block's function is none")
	}
	b := x.s.fresh()
	if flags&blockSymbols != 0 {
		b.symbols = make([]readMark, x.count(2))
		for i := range b.symbols {
			b.symbols[i] = readMark{x.ULEB(), base + uint64(x.int())}
		}
	} else {
		b.symbols = []readMark{{uint64(x.s.names[root])<<1 | 1, base}}
	}
	var next []int // by node, the edge that is expected
	var refused, bad uint64 = noText, noText
	prev := readNode{addr: base, tuple: -1}
	for x.P < len(x.D) && !x.Bad {
		i := len(b.nodes)
		if i >= maxNodes {
			return nil, x.failed("a block has too many sites")
		}
		n := readNode{parent: -1, result: -1, around: -1, symbol: noText, offset: noText, file: noText, plain: true}
		flags := x.U8()
		isMore, frame := flags&siteMore != 0, flags&siteFrame != 0
		if i == 0 {
			isMore, frame = flags&rootMore != 0, flags&rootFrame != 0
			n.fun = root
		} else if err := x.place(b, &n, flags, next); err != nil {
			return nil, err
		}
		n.inline = i > 0
		more := byte(0)
		if isMore {
			more = x.U8()
		}
		n.ghost = more&moreGhost != 0
		if more&moreFile != 0 {
			n.file = x.ULEB()
		}
		if more&moreSymbol != 0 {
			n.symbol, n.offset = x.ULEB(), x.ULEB()
		}
		if more&moreResult != 0 {
			n.result = x.index(math.MaxInt32)
		}
		if more&moreRefused != 0 {
			refused, bad = x.ULEB(), x.ULEB()
		}
		n.refused, n.bad = refused, bad
		if more&moreDepth != 0 {
			n.around = x.index(math.MaxInt32)
		}
		if more&moreMisc != 0 {
			misc := x.U8()
			n.prologue, n.local = misc&miscPrologue != 0, misc&miscLocal != 0
			if n.prologue {
				n.before = x.ULEB()
			}
			if misc&miscView != 0 {
				n.view = x.ULEB()
			}
		}
		var ways int // where they are
		if i == 0 && more&(moreWays|moreFile) != 0 {
			return nil, x.failed("a function that is not inlined has a call")
		}
		if more&moreWays != 0 {
			n.plain = false
			ways = x.P
			x.skipWays(flags&siteOut != 0)
		}
		next = append(next, 0)
		if n.ghost {
			b.nodes = append(b.nodes, n)
			continue
		}
		if i == 0 {
			n.addr = base
			x.tuple(&n)
			if !frame {
				n.frame = x.index(math.MaxInt32)
			}
		} else if err := x.rest(b, &n, flags, &prev); err != nil {
			return nil, err
		}
		if more&moreWays != 0 {
			after := x.P
			x.P = ways
			x.readWays(&n, flags&siteOut != 0)
			x.P = after
			if flags&siteOut != 0 {
				n.outs = x.outsOf(b, &n)
			}
		}
		n.index = b.sites
		b.sites++
		b.nodes = append(b.nodes, n)
		prev = n
	}
	if x.Bad || len(b.nodes) == 0 {
		return nil, x.failed("a block is cut short")
	}
	return b, nil
}

// place reads where a node is in the tree, and so its function.
func (x *blockReader) place(b *readBlock, n *readNode, flags byte, next []int) error {
	up := int(flags & siteUp)
	if up == siteUp {
		up += x.index(maxNesting)
	}
	parent := len(b.nodes) - 1
	for ; up > 0 && parent >= 0; up-- {
		parent = b.nodes[parent].parent
	}
	if parent < 0 {
		return x.failed("a body is inlined into nothing")
	}
	p := &b.nodes[parent]
	edge := next[parent]
	if flags&siteNext == 0 {
		edge = x.index(math.MaxInt32)
	}
	next[parent] = edge + 1
	f, err := x.s.function(p.fun)
	if err != nil {
		return err
	}
	edges, err := f.inlined()
	if err != nil {
		return err
	}
	if edge >= len(edges) {
		return x.failed("a call is inlined that its function does not have")
	}
	if n.depth = p.depth + 1; n.depth > maxNesting {
		return x.failed("bodies are nested too deep")
	}
	n.parent, n.fun, n.line = parent, edges[edge].to, edges[edge].line
	return nil
}

// rest reads what follows the flags of an inlined site.
func (x *blockReader) rest(b *readBlock, n *readNode, flags byte, prev *readNode) error {
	n.addr = prev.addr
	if flags&siteHere == 0 {
		n.addr += uint64(x.int())
	}
	c := x.U8()
	view, outs := uint64(c&15), int(c>>4)
	if view == 15 {
		view += x.ULEB()
	}
	if n.view = view; flags&siteHere != 0 {
		n.view = prev.view + uint64(unzigzag(view))
	}
	if flags&siteSame == 0 {
		x.tuple(n)
	} else {
		n.tuple, n.list = prev.tuple, prev.list
	}
	if n.frame = prev.frame; flags&siteFrame == 0 {
		n.frame = x.index(math.MaxInt32)
	}
	switch {
	case !n.plain:
	case flags&siteOut != 0:
		n.outs = x.outsOf(b, n)
	default:
		if outs == 15 {
			more := x.count(1)
			outs += more
		}
		n.outs = x.outs(outs, n.addr)
	}
	return nil
}

// outsOf returns the ways out of the body around a node.
func (x *blockReader) outsOf(b *readBlock, n *readNode) []Way {
	if n.parent < 0 || !b.nodes[n.parent].inline || b.nodes[n.parent].ghost {
		x.Fail()
		return nil
	}
	return b.nodes[n.parent].outs
}

func (x *blockReader) tuple(n *readNode) {
	n.tuple = x.index(math.MaxInt32) - 1
	if n.tuple >= 0 {
		return
	}
	f, err := x.s.function(n.fun)
	if err != nil {
		x.Fail()
		return
	}
	count := len(f.list)
	if f.sig >= 0 {
		l, err := x.s.listAt(partSigs, f.sig)
		if err != nil {
			x.Fail()
			return
		}
		count = len(l)
	}
	if count > len(x.D)-x.P {
		x.Fail()
		return
	}
	n.list = make([]int, count)
	for i := range n.list {
		n.list[i] = x.index(math.MaxInt32)
	}
}

func (x *blockReader) outs(n int, at uint64) []Way {
	if n > len(x.D)-x.P {
		x.Fail()
		return nil
	}
	out := make([]Way, n)
	for i := range out {
		u := x.ULEB()
		at += uint64(unzigzag(u >> 3))
		w := Way{Addr: at, Probe: at}
		switch u & 7 {
		case outZero:
		case outZeroAgain:
			w.Again = true
		case outOne:
			w.View = 1
		case outTwo:
			w.View = 2
		case outThree:
			w.View = 3
		case outLast:
			w.View = lastView
		default:
			v := x.ULEB()
			w.View, w.Again = v>>1, v&1 != 0
			if u&7 == outProbe {
				w.Probe += uint64(x.int())
			}
		}
		out[i] = w
	}
	return out
}

// skipWays passes over ways that are written out.
func (x *blockReader) skipWays(sameOut bool) {
	var n readNode
	x.readWays(&n, sameOut)
}

// readWays reads ways that are written out, those out only if they are not those of the body around it.
func (x *blockReader) readWays(n *readNode, sameOut bool) {
	w := &readWays{flags: x.U8()}
	n.ways = w
	if w.flags&waysUnknown != 0 {
		w.unknown = x.ULEB()
	}
	if w.flags&waysNoReturn != 0 {
		w.noReturn = x.index(math.MaxInt32)
	}
	if w.flags&waysIn != 0 {
		w.in = x.wayList(n.addr)
	}
	if !sameOut {
		w.out = x.wayList(n.addr)
	}
	n.outs = make([]Way, len(w.out))
	for i := range w.out {
		n.outs[i] = w.out[i].Way
	}
}

func (x *blockReader) wayList(at uint64) []readWay {
	out := make([]readWay, x.count(3))
	for i := range out {
		w := &out[i]
		flags := x.U8()
		at += uint64(x.int())
		w.Addr, w.Probe, w.View, w.Again = at, at, x.ULEB(), flags&wayAgain != 0
		if flags&wayProbe != 0 {
			w.Probe += uint64(x.int())
		}
		if w.symbol = noText; flags&waySymbol != 0 {
			w.symbol, w.offset = x.ULEB(), x.ULEB()
		}
		if w.refused = noText; flags&wayRefused != 0 {
			w.refused = x.ULEB()
		}
		if flags&wayBefore != 0 {
			w.before = make([]readBefore, x.count(4))
			for j := range w.before {
				b := &w.before[j]
				b.Addr = at + uint64(x.int())
				b.Code = append([]byte(nil), x.Bytes(x.ULEB())...)
				b.symbol, b.offset = x.ULEB(), x.ULEB()
			}
		}
		if w.values = flags&wayValues != 0; w.values {
			w.list, w.frame, w.result = readList(&x.groupReader), x.index(math.MaxInt32), x.index(math.MaxInt32)
		}
	}
	return out
}

// Names returns the names of all functions that have a site, sorted, without duplicates.
func (f *File) Names() ([]string, error) {
	return f.namesOf(func(s *session, id int) (string, error) { return s.textOf(uint64(s.names[id])<<1 | 1) })
}

// QualifiedNames is Names with the names as people write them.
func (f *File) QualifiedNames() ([]string, error) {
	return f.namesOf(func(s *session, id int) (string, error) {
		x, err := s.describe(id)
		if err != nil {
			return "", err
		}
		return x.Qualified, nil
	})
}

func (f *File) namesOf(of func(s *session, id int) (string, error)) ([]string, error) {
	s, err := f.session()
	if err != nil {
		return nil, err
	}
	defer s.end()
	has := make([]bool, f.funs)
	err = s.each(func(int) bool { return true }, func(_ int, b *readBlock) error {
		for i := range b.nodes {
			if n := &b.nodes[i]; !n.ghost {
				has[n.fun] = true
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var out []string
	for id, ok := range has {
		if ok {
			n, err := of(s, id)
			if err != nil {
				return nil, err
			}
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// each calls g for the blocks that want selects.
func (s *session) each(want func(block int) bool, g func(n int, b *readBlock) error) error {
	for i := range groups(s.f.facts.Blocks) {
		lo, hi := i*groupSize, min((i+1)*groupSize, s.f.facts.Blocks)
		wanted := false
		for n := lo; n < hi; n++ {
			wanted = wanted || want(n)
		}
		if !wanted {
			continue
		}
		all, err := s.blocks(i, want)
		if err != nil {
			return err
		}
		for j, b := range all {
			if b != nil {
				if err := g(lo+j, b); err != nil {
					return err
				}
				s.release(b)
			}
		}
	}
	return nil
}

// Of returns the sites of the functions with a name, in the order of dwarfloc.Image.Sites.
func (f *File) Of(name string) ([]Ref, error) {
	id, err := f.nameOf(name)
	if err != nil || id < 0 {
		return nil, err
	}
	s, err := f.session()
	if err != nil {
		return nil, err
	}
	defer s.end()
	picked := func(name uint32) bool { return int(name) == id }
	in, err := s.blocksWith(picked)
	if err != nil {
		return nil, err
	}
	return s.sitesIn(in, picked)
}

// List returns the sites of the functions whose names match selects, or all if it is nil, in the
// order of dwarfloc.Image.Sites. match is called once for each name.
func (f *File) List(match func(name string) bool) ([]Ref, error) {
	s, err := f.session()
	if err != nil {
		return nil, err
	}
	defer s.end()
	if match == nil {
		return s.sitesIn(func(int) bool { return true }, func(uint32) bool { return true })
	}
	matches := make([]bool, f.parts[partNames].N)
	few := 0
	for g := range groups(len(matches)) {
		all, err := f.texts(partNames, g)
		if err != nil {
			return nil, err
		}
		for i, t := range all {
			if matches[g*groupSize+i] = match(t); matches[g*groupSize+i] {
				few++
			}
		}
	}
	picked := func(name uint32) bool { return matches[name] }
	in := func(int) bool { return true }
	if few < len(matches)/8 {
		if in, err = s.blocksWith(picked); err != nil {
			return nil, err
		}
	}
	return s.sitesIn(in, picked)
}

// blocksWith returns which blocks can have sites of functions with names.
func (s *session) blocksWith(picked func(name uint32) bool) (func(int) bool, error) {
	in := make([]bool, s.f.facts.Blocks)
	for fun, n := range s.names {
		if !picked(n) {
			continue
		}
		blocks, err := s.blocksOf(fun)
		if err != nil {
			return nil, err
		}
		for _, b := range blocks {
			in[b] = true
		}
	}
	return func(n int) bool { return in[n] }, nil
}

// sitesIn returns sites of functions in blocks.
func (s *session) sitesIn(in func(block int) bool, picked func(name uint32) bool) ([]Ref, error) {
	var all []listed
	err := s.each(in, func(i int, b *readBlock) error {
		for j := range b.nodes {
			n := &b.nodes[j]
			if name := s.names[n.fun]; !n.ghost && picked(name) {
				all = append(all, listed{Ref{uint32(i), uint32(n.index)}, name, n.addr, n.view, n.inline})
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return sortListed(all), nil
}

// Site returns a site.
func (f *File) Site(r Ref) (*Site, error) {
	var out Site
	err := f.Each([]Ref{r}, func(_ int, s *Site) error {
		out = *s
		return nil
	})
	return &out, err
}

// Each calls g for sites, with their indices in refs: block by block, so that each block is read once. s is
// reused after g returns, but not what it points to, which must not be changed.
func (f *File) Each(refs []Ref, g func(i int, s *Site) error) error {
	s, err := f.session()
	if err != nil {
		return err
	}
	defer s.end()
	order := make([]int, len(refs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(compareRefs(refs[a], refs[b]), cmp.Compare(a, b)) })
	var out Site
	for i := 0; i < len(order); {
		n := refs[order[i]].Block
		b, err := s.block(int(n))
		if err != nil {
			return err
		}
		m := materializer{s: s, b: b, in: uint64(n), chains: make(map[int][]Caller)}
		at := 0
		for ; i < len(order) && refs[order[i]].Block == n; i++ {
			want := int(refs[order[i]].Index)
			for at < len(b.nodes) && (b.nodes[at].ghost || b.nodes[at].index < want) {
				at++
			}
			if at == len(b.nodes) {
				return f.own.Errorf(f.parts[partBlocks].From, "site %d of block %d is asked for, which has %d", want, n, b.sites)
			}
			if err := m.site(at, &out); err != nil {
				return err
			}
			if err := g(order[i], &out); err != nil {
				return err
			}
		}
		s.release(b)
	}
	return nil
}
