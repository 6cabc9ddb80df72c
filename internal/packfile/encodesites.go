package packfile

import (
	"encoding/binary"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/radix"
)

// mark is a symbol of a block.
type mark struct {
	name string
	addr uint64
}

// blockEncoder writes the sites of one block.
type blockEncoder struct {
	e        *encoder
	released []Ways // of the block's sites
	b        []byte
	base     uint64
	symbols  []mark
	refused  int32
	bad      int32
}

// Flags of a block.
const (
	blockRoot    = 1 << iota // its function is the root of another block, too
	blockSymbols             // they are listed
)

// sites makes the records of blocks.
func (e *encoder) sites() []byte {
	var r records
	var room []Ways
	roots := 0
	prev := uint64(0)
	for i := range e.blockList {
		blk := &e.blockList[i]
		room = e.release(blk, room)
		if i%groupSize == 0 {
			prev = 0
		}
		r.begin(roots)
		x := blockEncoder{e: e, released: room, base: blk.base(), symbols: blk.marks(e.w), refused: e.w.text(""), bad: e.w.text("")}
		root := blk.nodes[0].f
		flags := byte(0)
		if root.id != roots {
			flags |= blockRoot
		} else {
			roots++
		}
		plain := len(x.symbols) == 1 && x.symbols[0] == mark{root.Name, x.base}
		if !plain {
			flags |= blockSymbols
		}
		x.b = append(x.b, flags)
		x.b = binary.AppendVarint(x.b, int64(x.base-prev))
		prev = x.base
		if flags&blockRoot != 0 {
			x.b = binary.AppendUvarint(x.b, uint64(root.id))
		}
		if !plain {
			x.b = binary.AppendUvarint(x.b, uint64(len(x.symbols)))
			for _, m := range x.symbols {
				x.b = binary.AppendUvarint(x.b, e.text(m.name))
				x.b = binary.AppendVarint(x.b, int64(m.addr-x.base))
			}
		}
		x.nodes(blk)
		r.body = binary.AppendUvarint(r.body, uint64(len(x.b)))
		r.body = append(r.body, x.b...)
	}
	return r.end(true)
}

// release sets the ways of a block's sites, in memory that the block before has used.
func (e *encoder) release(b *block, room []Ways) []Ways {
	for len(room) < len(b.nodes) {
		room = append(room, Ways{})
	}
	for i := range b.nodes {
		if s := b.nodes[i].s; s != nil && s.held != (held{}) {
			s.released = int32(i) + 1
			e.w.release(s.held, &room[i])
		}
	}
	return room
}

// base is the address that those of a block are relative to.
func (b *block) base() uint64 {
	for i := range b.nodes {
		if s := b.nodes[i].s; s != nil {
			return s.addr
		}
	}
	return 0
}

// marks returns the symbols of a block's sites by address.
func (b *block) marks(w *Writer) (out []mark) {
	for i := range b.nodes {
		if s := b.nodes[i].s; s != nil && w.strings.all[s.symbol] != "" {
			if m := (mark{w.strings.all[s.symbol], s.addr - s.offset}); !slices.Contains(out, m) {
				out = append(out, m)
			}
		}
	}
	return radix.Sort(out, func(m *mark) uint64 { return m.addr })
}

// symbolAt returns the last of a block's symbols at or before an address.
func symbolAt(symbols []mark, addr uint64) (name string, off uint64) {
	for _, m := range symbols {
		if m.addr <= addr {
			name, off = m.name, addr-m.addr
		}
	}
	return name, off
}

// waysOf returns the ways of a site of the block.
func (x *blockEncoder) waysOf(s *written) *Ways { return &x.released[s.released-1] }

func (x *blockEncoder) uint(v uint64) { x.b = binary.AppendUvarint(x.b, v) }
func (x *blockEncoder) int(v int64)   { x.b = binary.AppendVarint(x.b, v) }

func (x *blockEncoder) nodes(blk *block) {
	next := make([]int32, len(blk.nodes)) // by node, the edge that is expected
	last := 0                             // node before
	prev := &written{addr: x.base}        // site before
	var prevNode *node
	for i := range blk.nodes {
		n := &blk.nodes[i]
		s := n.s
		more := x.more(blk, n)
		if i == 0 {
			flags := byte(0)
			if more != 0 {
				flags |= rootMore
			}
			if n.frame == 0 {
				flags |= rootFrame
			}
			x.b = append(x.b, flags)
			x.moreBytes(n, more, flags&rootMore != 0, false)
			if s == nil {
				continue
			}
			x.tuple(n)
			if n.frame != 0 {
				x.uint(uint64(n.frame))
			}
			prev, prevNode = s, n
			last = i
			continue
		}
		flags := byte(0)
		up := blk.nodes[last].depth + 1 - n.depth
		flags |= byte(min(up, siteUp))
		if n.edge == next[n.parent] {
			flags |= siteNext
		}
		next[n.parent] = n.edge + 1
		last = i
		if more != 0 {
			flags |= siteMore
		}
		if s != nil {
			if s.addr == prev.addr {
				flags |= siteHere
			}
			if x.outOfParent(blk, n) {
				flags |= siteOut
			}
			if prevNode != nil && prevNode.list == n.list {
				flags |= siteSame
			}
			if prevNode != nil && prevNode.frame == n.frame {
				flags |= siteFrame
			}
		}
		x.b = append(x.b, flags)
		if up >= siteUp {
			x.uint(uint64(up - siteUp))
		}
		if flags&siteNext == 0 {
			x.uint(uint64(n.edge))
		}
		x.moreBytes(n, more, more != 0, flags&siteOut != 0)
		if s == nil {
			continue
		}
		view := s.view
		if flags&siteHere == 0 {
			x.int(int64(s.addr - prev.addr))
		} else {
			view = zigzag(int(s.view - prev.view)) // it is mostly larger
		}
		outs := 15
		if more&moreWays == 0 && flags&siteOut == 0 {
			outs = min(len(x.waysOf(s).Out), 15)
		}
		x.b = append(x.b, byte(min(view, 15))|byte(outs)<<4)
		if view >= 15 {
			x.uint(view - 15)
		}
		if flags&siteSame == 0 {
			x.tuple(n)
		}
		if flags&siteFrame == 0 {
			x.uint(uint64(n.frame))
		}
		if more&moreWays == 0 && flags&siteOut == 0 {
			if outs == 15 {
				x.uint(uint64(len(x.waysOf(s).Out) - 15))
			}
			x.outs(x.waysOf(s).Out, s.addr)
		}
		prev, prevNode = s, n
	}
}

func (x *blockEncoder) tuple(n *node) {
	x.uint(uint64(n.tuple + 1))
	if n.tuple < 0 {
		for _, v := range x.e.lists[n.list] {
			x.uint(uint64(v))
		}
	}
}

// outOfParent reports whether the ways out of a body are those of the body around it.
func (x *blockEncoder) outOfParent(blk *block, n *node) bool {
	if n.parent < 0 {
		return false
	}
	p := blk.nodes[n.parent].s
	return p != nil && p.inline && slices.EqualFunc(x.waysOf(n.s).Out, x.waysOf(p).Out, func(a, b Way) bool {
		return a.Addr == b.Addr && a.View == b.View && a.Probe == b.Probe && a.Again == b.Again && a.Refused == "" && b.Refused == "" && x.symbolOf(&a) && x.symbolOf(&b)
	})
}

// more returns the second byte of a node's flags.
func (x *blockEncoder) more(blk *block, n *node) (more byte) {
	s := n.s
	set := func(on bool, bit byte) {
		if on {
			more |= bit
		}
	}
	set(n.parent >= 0 && n.file != x.e.w.text(blk.declFile(n)), moreFile)
	if s == nil {
		return more | moreGhost
	}
	set(s.released != 0 && (!s.inline || !x.plainWays(s)), moreWays)
	name, off := symbolAt(x.symbols, s.addr)
	set(name != x.e.w.strings.all[s.symbol] || off != s.offset, moreSymbol)
	set(int(n.result) != n.f.result, moreResult)
	set(s.refused != x.refused || s.bad != x.bad, moreRefused)
	set(int(s.depth) != blk.around(n), moreDepth)
	set(s.afterPrologue || s.local || !s.inline && s.view != 0, moreMisc)
	return more
}

// declFile is where the caller of a node is declared.
func (b *block) declFile(n *node) string { return b.nodes[n.parent].f.DeclFile }

// around counts the bodies of the same function around a node.
func (b *block) around(n *node) int {
	depth := 0
	for p := n.parent; p >= 0; p = b.nodes[p].parent {
		if b.nodes[p].f.identity() == n.f.identity() {
			depth++
		}
	}
	return depth
}

// identity is what is equal for a function with whatever parameters.
func (f *fun) identity() *fun {
	if f.base != nil {
		return f.base
	}
	return f
}

// plainWays reports whether a body is entered at the site alone, and nothing is to be said about it but its ways out.
func (x *blockEncoder) plainWays(s *written) bool {
	w := x.waysOf(s)
	if !w.Known || w.Unknown != "" || w.Within || w.Folded || w.NoReturn != 0 || !s.selfOnly {
		return false
	}
	for i := range w.Out {
		if y := &w.Out[i]; len(y.Before) != 0 || y.Refused != "" || !x.symbolOf(y) {
			return false
		}
	}
	return true
}

// symbolOf reports whether a way's symbol is the one that the block has for it.
func (x *blockEncoder) symbolOf(w *Way) bool {
	name, off := symbolAt(x.symbols, w.Probe)
	return name == w.Symbol && off == w.Offset
}

// moreBytes writes the second byte of a node's flags, and what it says.
func (x *blockEncoder) moreBytes(n *node, more byte, is, sameOut bool) {
	if !is {
		return
	}
	s, e := n.s, x.e
	x.b = append(x.b, more)
	if more&moreFile != 0 {
		x.uint(e.text(e.w.strings.all[n.file]))
	}
	if more&moreSymbol != 0 {
		x.uint(e.text(e.w.strings.all[s.symbol]))
		x.uint(s.offset)
	}
	if more&moreResult != 0 {
		x.uint(uint64(n.result))
	}
	if more&moreRefused != 0 {
		x.refused, x.bad = s.refused, s.bad
		x.uint(e.text(e.w.strings.all[s.refused]))
		x.uint(e.text(e.w.strings.all[s.bad]))
	}
	if more&moreDepth != 0 {
		x.uint(uint64(s.depth))
	}
	if more&moreMisc != 0 {
		misc := byte(0)
		if s.afterPrologue {
			misc |= miscPrologue
		}
		if s.local {
			misc |= miscLocal
		}
		if !s.inline && s.view != 0 {
			misc |= miscView
		}
		x.b = append(x.b, misc)
		if s.afterPrologue {
			x.uint(s.prologue)
		}
		if misc&miscView != 0 {
			x.uint(s.view)
		}
	}
	if more&moreWays != 0 {
		x.ways(s, sameOut)
	}
}

// outs writes ways out.
func (x *blockEncoder) outs(ways []Way, at uint64) {
	for i := range ways {
		w := &ways[i]
		code := outOther
		switch {
		case w.Probe != w.Addr:
			code = outProbe
		case w.View == 0 && !w.Again:
			code = outZero
		case w.View == 0:
			code = outZeroAgain
		case w.Again:
		case w.View == 1:
			code = outOne
		case w.View == 2:
			code = outTwo
		case w.View == 3:
			code = outThree
		case w.View == lastView:
			code = outLast
		}
		d := int64(w.Addr - at)
		x.uint((uint64(d)<<1^uint64(d>>63))<<3 | uint64(code))
		at = w.Addr
		if code == outOther || code == outProbe {
			again := uint64(0)
			if w.Again {
				again = 1
			}
			x.uint(w.View<<1 | again)
		}
		if code == outProbe {
			x.int(int64(w.Probe - w.Addr))
		}
	}
}

// ways writes the ways of a site, those out only if they are not those of the body around it.
func (x *blockEncoder) ways(s *written, sameOut bool) {
	w := x.waysOf(s)
	flags := byte(0)
	set := func(on bool, bit byte) {
		if on {
			flags |= bit
		}
	}
	set(w.Known, waysKnown)
	set(w.Unknown != "", waysUnknown)
	set(w.Within, waysWithin)
	set(w.NoReturn != 0, waysNoReturn)
	set(!s.selfOnly, waysIn)
	set(w.Again, waysAgain)
	set(w.Folded, waysFolded)
	x.b = append(x.b, flags)
	if w.Unknown != "" {
		x.uint(x.e.text(w.Unknown))
	}
	if w.NoReturn != 0 {
		x.uint(uint64(w.NoReturn))
	}
	lists := [][]Way{w.In, w.Out}
	for k, list := range lists {
		if k == 0 && flags&waysIn == 0 || k == 1 && sameOut {
			continue
		}
		x.uint(uint64(len(list)))
		at := s.addr
		for i := range list {
			y := &list[i]
			var v *wrote
			if values := x.e.w.valuesAt(s); k == 0 && values != nil {
				v = values[i]
			}
			flags := byte(0)
			set := func(on bool, bit byte) {
				if on {
					flags |= bit
				}
			}
			set(y.Again, wayAgain)
			set(y.Probe != y.Addr, wayProbe)
			set(len(y.Before) > 0, wayBefore)
			set(!x.symbolOf(y), waySymbol)
			set(v != nil, wayValues)
			set(y.Refused != "", wayRefused)
			x.b = append(x.b, flags)
			x.int(int64(y.Addr - at))
			at = y.Addr
			x.uint(y.View)
			if flags&wayProbe != 0 {
				x.int(int64(y.Probe - y.Addr))
			}
			if flags&waySymbol != 0 {
				x.uint(x.e.text(y.Symbol))
				x.uint(y.Offset)
			}
			if flags&wayRefused != 0 {
				x.uint(x.e.text(y.Refused))
			}
			if flags&wayBefore != 0 {
				x.uint(uint64(len(y.Before)))
				for j := range y.Before {
					b := &y.Before[j]
					x.int(int64(b.Addr - y.Addr))
					x.uint(uint64(len(b.Code)))
					x.b = append(x.b, b.Code...)
					x.uint(x.e.text(b.Symbol))
					x.uint(b.Offset)
				}
			}
			if v != nil {
				list := x.e.list(x.e.w.tuples.all[v.tuple])
				x.b = appendList(x.b, list)
				x.uint(uint64(x.e.frameRank[x.e.ranks[v.frame]]))
				x.uint(uint64(x.e.resultRank[x.e.ranks[v.result]]))
			}
		}
	}
}
