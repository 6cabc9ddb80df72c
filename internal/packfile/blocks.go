package packfile

import "github.com/bpfprologue/bpfprologue/internal/bin"

// readNode is a node of a block as it is read. Texts are numbers, and lists are where they begin in the block: they
// are looked up and decoded for sites that are asked for, of the many that a block can have.
type readNode struct {
	addr, view    uint64
	before        uint64 // bytes of the prologue
	offset        uint64 // of symbol
	symbol        uint32 // noText: the block's
	file          uint32 // noText: that of the caller
	refused, bad  uint32
	fun           int32
	parent, depth int32
	line          int32
	frame, result int32 // result is -1 for the function's
	tuple         int32 // -1: the values are a list
	list          int32 // where it is
	ways          int32 // where they are written out; 0: they are not
	outs          int32 // where ways out are that nothing but their places is said of
	outCount      int32
	around        int32 // -1: as it is counted
	index         int32 // among the sites of the block

	ghost, inline, prologue, local bool
	sharedOut                      bool // the ways out are the parent's
}

// readBlock is a block as it is read.
type readBlock struct {
	d       []byte
	at      int // of d in the section
	nodes   []readNode
	symbols []readMark
	sites   int
	shared  bool // several sessions may use it: see keptBlocks
}

type readMark struct {
	text uint32
	addr uint64
}

// block returns a block that has sites: what a list kept of it, or all.
func (s *session) block(n int, sites []int32) (*readBlock, error) {
	if b := s.f.kept.get(n); b != nil && b.has(sites) {
		return b, nil
	}
	if n < 0 || n >= s.f.facts.Blocks {
		return nil, s.f.own.Errorf(s.f.parts[partBlocks].From, "block %d of %d is asked for", n, s.f.facts.Blocks)
	}
	var all [groupSize]*readBlock
	if _, err := s.blocks(n/groupSize, func(i int) bool { return i == n }, &all); err != nil {
		return nil, err
	}
	return all[n%groupSize], nil
}

// blocks reads those blocks of a group that want selects; the others are nil. It returns how many the group has.
func (s *session) blocks(g int, want func(i int) bool, out *[groupSize]*readBlock) (int, error) {
	r, roots, err := s.f.group(partBlocks, g)
	if err != nil {
		return 0, err
	}
	prev := uint64(0)
	for i := range r.n {
		size := r.ULEB()
		at := r.P
		d := r.Bytes(size)
		if r.Bad || size == 0 {
			return 0, r.failed("a block is cut short")
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
		out[i] = nil
		if !want(g*groupSize + i) {
			continue
		}
		if out[i], err = x.read(flags, prev, root); err != nil {
			return 0, err
		}
	}
	return r.n, nil
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
	*b = readBlock{nodes: b.nodes[:0]}
	return b
}

func (s *session) release(b *readBlock) {
	if !b.shared {
		s.spare = append(s.spare, b)
	}
}

// blockReader reads the nodes of one block.
type blockReader struct {
	groupReader
	s *session
}

// maxNodes bounds the nodes of a block. The kernels at hand have less than 2,000 in one.
const maxNodes = 1 << 18

// nodeBytes is how many bytes of a block most nodes have at least.
const nodeBytes = 6

func (x *blockReader) read(flags byte, base uint64, root int) (*readBlock, error) {
	if root >= x.f.funs {
		return nil, x.failed("a block's function is none")
	}
	b := x.s.fresh()
	b.d, b.at = x.D, x.at
	if n := len(x.D) / nodeBytes; cap(b.nodes) < n {
		b.nodes = make([]readNode, 0, n)
	}
	if flags&blockSymbols != 0 {
		b.symbols = make([]readMark, x.count(2))
		for i := range b.symbols {
			b.symbols[i] = readMark{x.text(), base + uint64(x.int())}
		}
	} else {
		b.symbols = []readMark{{x.s.nameText(root), base}}
	}
	var next []int32 // by node, the edge that is expected
	var refused, bad uint32 = noText, noText
	prev := &readNode{addr: base, tuple: -1}
	for x.P < len(x.D) && !x.Bad {
		i := len(b.nodes)
		if i >= maxNodes {
			return nil, x.failed("a block has too many sites")
		}
		if i == cap(b.nodes) {
			// prev points into the memory before, which stays as it is.
			b.nodes = append(make([]readNode, 0, 2*i+8), b.nodes...)
		}
		b.nodes = b.nodes[:i+1]
		n := &b.nodes[i]
		*n = readNode{parent: -1, result: -1, around: -1, symbol: noText, file: noText}
		flags := x.U8()
		isMore, frame := flags&siteMore != 0, flags&siteFrame != 0
		if i == 0 {
			isMore, frame = flags&rootMore != 0, flags&rootFrame != 0
			n.fun = int32(root)
		} else if err := x.place(b, n, flags, next); err != nil {
			return nil, err
		}
		n.inline = i > 0
		n.sharedOut = n.inline && flags&siteOut != 0
		more := byte(0)
		if isMore {
			more = x.U8()
		}
		if i == 0 && more&moreFile != 0 {
			return nil, x.failed("a function that is not inlined has a call")
		}
		x.more(n, more)
		if more&moreRefused != 0 {
			refused, bad = x.text(), x.text()
		}
		n.refused, n.bad = refused, bad
		x.rare(n, more)
		next = append(next, 0)
		if n.ghost {
			continue
		}
		if i == 0 {
			n.addr = base
			x.tuple(n)
			if !frame {
				n.frame = x.number()
			}
		} else {
			x.rest(b, n, flags, prev)
		}
		n.index = int32(b.sites)
		b.sites++
		prev = n
	}
	if x.Bad || len(b.nodes) == 0 {
		return nil, x.failed("a block is cut short")
	}
	return b, nil
}

// place reads where a node is in the tree, and so its function.
func (x *blockReader) place(b *readBlock, n *readNode, flags byte, next []int32) error {
	up := int(flags & siteUp)
	if up == siteUp {
		up += x.index(maxNesting)
	}
	parent := len(b.nodes) - 2
	for ; up > 0 && parent >= 0; up-- {
		parent = int(b.nodes[parent].parent)
	}
	if parent < 0 {
		return x.failed("a body is inlined into nothing")
	}
	p := &b.nodes[parent]
	edge := int(next[parent])
	if flags&siteNext == 0 {
		edge = int(x.number())
	}
	next[parent] = int32(edge + 1)
	f, err := x.s.function(int(p.fun))
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
	n.parent, n.fun, n.line = int32(parent), edges[edge].to, edges[edge].line
	return nil
}

// more reads what the second byte of a node's flags says, up to why a kernel takes no probe there.
func (x *blockReader) more(n *readNode, more byte) {
	n.ghost = more&moreGhost != 0
	if more&moreFile != 0 {
		n.file = x.text()
	}
	if more&moreSymbol != 0 {
		n.symbol, n.offset = x.text(), x.ULEB()
	}
	if more&moreResult != 0 {
		n.result = x.number()
	}
}

// rare reads the rest of that.
func (x *blockReader) rare(n *readNode, more byte) {
	if more&moreDepth != 0 {
		n.around = x.number()
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
	if more&moreWays != 0 {
		n.ways = int32(x.P)
		x.readWays(0, n.sharedOut, false)
	}
}

// rest reads what follows the flags of an inlined site.
func (x *blockReader) rest(b *readBlock, n *readNode, flags byte, prev *readNode) {
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
		n.frame = x.number()
	}
	switch {
	case n.sharedOut:
		if p := &b.nodes[n.parent]; !p.inline || p.ghost {
			x.Fail()
		}
	case n.ways == 0:
		if outs == 15 {
			outs += x.count(1)
		}
		n.outs, n.outCount = int32(x.P), int32(outs)
		x.outs(outs, 0, false)
	}
}

// tuple reads which values a site has, and passes over a list of them.
func (x *blockReader) tuple(n *readNode) {
	if n.tuple = x.number() - 1; n.tuple >= 0 {
		return
	}
	n.list = int32(x.P)
	count, err := x.s.paramCount(int(n.fun))
	if err != nil || count > len(x.D)-x.P {
		x.Fail()
		return
	}
	x.pass(count)
}

// reader returns a reader of a block's bytes from a place on.
func (b *readBlock) reader(f *File, at int32) groupReader {
	return groupReader{Reader: bin.Reader{D: b.d, P: int(at)}, f: f, at: b.at}
}
