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
	parent        int32
	line          int32
	frame, result int32 // result is -1 for the function's
	tuple         int32 // -1: the values are a list
	list          int32 // where it is
	ways          int32 // where they are written out; 0: they are not
	outs          int32 // where ways out are that nothing but their places is said of
	outCount      int32
	around        int32 // -1: as it is counted
	index         int32 // among the sites of the block

	picked bool // it was asked for itself

	ghost, inline, prologue, local bool
	sharedOut                      bool // the ways out are the parent's
}

// readBlock is a block as it is read: those of its nodes that were picked, and what is around them.
type readBlock struct {
	d       []byte
	at      int // of d in the section
	nodes   []readNode
	symbols []readMark
	sites   int
}

type readMark struct {
	text uint32
	addr uint64
}

// block returns a block with some of its sites, which are sorted: what a list kept of it, or what is read then, until the next one is read.
func (s *session) block(n int, sites []int32) (*readBlock, error) {
	if b := s.f.kept.get(n); b != nil && b.has(sites) {
		return b, nil
	}
	if n < 0 || n >= s.f.facts.Blocks {
		return nil, s.f.own.Errorf(s.f.parts[partBlocks].From, "block %d of %d is asked for", n, s.f.facts.Blocks)
	}
	next := 0
	pick := func(x *readNode) bool {
		for next < len(sites) && sites[next] < x.index {
			next++
		}
		return next < len(sites) && sites[next] == x.index
	}
	err := s.blocks(n/groupSize, []int{n}, pick, func(int, *readBlock) error { return nil })
	return &s.walk.block, err
}

// blocks calls g for some blocks of a group, which are sorted, or for all if in is nil, with those of their nodes that pick selects. g must not keep the
// block, nor what is in it.
func (s *session) blocks(group int, in []int, pick func(n *readNode) bool, g func(n int, b *readBlock) error) error {
	r, roots, err := s.f.group(partBlocks, group)
	if err != nil {
		return err
	}
	prev := uint64(0)
	for i := range r.n {
		size := r.ULEB()
		at := r.P
		d := r.Bytes(size)
		if r.Bad || size == 0 {
			return r.failed("a block is cut short")
		}
		x := blockReader{s: s, b: &s.walk.block, pick: pick}
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
		switch {
		case in == nil:
		case len(in) == 0:
			return nil
		case in[0] != group*groupSize+i:
			continue
		default:
			in = in[1:]
		}
		if err := x.read(flags, prev, root); err != nil {
			return err
		}
		if err := g(group*groupSize+i, x.b); err != nil {
			return err
		}
	}
	return nil
}

// level is the last node at one depth of a block that is being read, and so one that following nodes can be in.
type level struct {
	node  readNode
	edges []readEdge // of its function, once a node in it asked for them
	named bool       // they have been asked for
	next  int32      // the edge that is expected
	at    int32      // where the node is among those of the block; -1: it was not picked, and nothing in it was
}

// before is what a node may share with the site before it.
type before struct {
	addr, view         uint64
	tuple, list, frame int32
}

// blockReader reads the nodes of one block. Of one with many bodies, most are of no interest: none but those that are picked, and those around them, are
// kept.
type blockReader struct {
	groupReader
	s    *session
	b    *readBlock
	pick func(n *readNode) bool
	last before
}

// maxNodes bounds the nodes of a block. The kernels at hand have less than 2,000 in one.
const maxNodes = 1 << 18

func (x *blockReader) read(flags byte, base uint64, root int) error {
	if root >= x.f.funs {
		return x.failed("a block's function is none")
	}
	b := x.b
	*b = readBlock{d: x.D, at: x.at, nodes: b.nodes[:0], symbols: b.symbols[:0]}
	if flags&blockSymbols != 0 {
		for range x.count(2) {
			b.symbols = append(b.symbols, readMark{x.text(), base + uint64(x.int())})
		}
	} else {
		name, err := x.s.nameText(root)
		if err != nil {
			return err
		}
		b.symbols = append(b.symbols, readMark{name, base})
	}
	var refused, bad uint32 = noText, noText
	x.last = before{addr: base, tuple: -1}
	depth := -1 // of the node before
	for i := 0; x.P < len(x.D) && !x.Bad; i++ {
		if i >= maxNodes {
			return x.failed("a block has too many sites")
		}
		flags := x.U8()
		isMore, frame := flags&siteMore != 0, flags&siteFrame != 0
		up := 0
		if i == 0 {
			isMore, frame = flags&rootMore != 0, flags&rootFrame != 0
		} else if up = int(flags & siteUp); up == siteUp {
			up += x.index(maxNesting)
		}
		if up > depth && i > 0 {
			return x.failed("a body is inlined into nothing")
		}
		depth += 1 - up
		n, err := x.begin(depth, flags)
		if err != nil {
			return err
		}
		if i == 0 {
			n.fun = int32(root)
		}
		more := byte(0)
		if isMore {
			more = x.U8()
		}
		if i == 0 && more&moreFile != 0 {
			return x.failed("a function that is not inlined has a call")
		}
		x.more(n, more)
		if more&moreRefused != 0 {
			refused, bad = x.text(), x.text()
		}
		n.refused, n.bad = refused, bad
		x.rare(n, more)
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
			x.rest(n, &x.s.walk.path[depth-1].node, flags)
		}
		n.index = int32(b.sites)
		b.sites++
		x.last = before{n.addr, n.view, n.tuple, n.list, n.frame}
		if x.pick(n) {
			n.picked = true
			x.keep(depth)
		}
	}
	if x.Bad || depth < 0 {
		return x.failed("a block is cut short")
	}
	return nil
}

// begin returns the node at a depth, which is the next one.
func (x *blockReader) begin(depth int, flags byte) (*readNode, error) {
	path := &x.s.walk.path
	if depth == len(*path) {
		*path = append(*path, level{})
	}
	l := &(*path)[depth]
	l.edges, l.named, l.next, l.at = nil, false, 0, -1
	n := &l.node
	*n = readNode{parent: -1, result: -1, around: -1, symbol: noText, file: noText}
	if depth == 0 {
		return n, nil
	}
	n.inline, n.sharedOut = true, flags&siteOut != 0
	return n, x.place(n, &(*path)[depth-1], depth, flags)
}

// keep adds the node at a depth to the block, after those around it that are not there.
func (x *blockReader) keep(depth int) {
	path := x.s.walk.path
	from := depth
	for from > 0 && path[from-1].at < 0 {
		from--
	}
	for i := from; i <= depth; i++ {
		if i > 0 {
			path[i].node.parent = path[i-1].at
		}
		path[i].at = int32(len(x.b.nodes))
		x.b.nodes = append(x.b.nodes, path[i].node)
	}
}

// place reads which of the calls in what is around it a node is, and so its function.
func (x *blockReader) place(n *readNode, around *level, depth int, flags byte) error {
	edge := int(around.next)
	if flags&siteNext == 0 {
		edge = int(x.number())
	}
	around.next = int32(edge + 1)
	if !around.named {
		f, err := x.s.function(int(around.node.fun))
		if err != nil {
			return err
		}
		if around.edges, err = f.inlined(); err != nil {
			return err
		}
		around.named = true
	}
	if edge >= len(around.edges) {
		return x.failed("a call is inlined that its function does not have")
	}
	if depth > maxNesting {
		return x.failed("bodies are nested too deep")
	}
	n.fun, n.line = around.edges[edge].to, around.edges[edge].line
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
func (x *blockReader) rest(n, around *readNode, flags byte) {
	prev := &x.last
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
		if !around.inline || around.ghost {
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
