package packfile

import "math"

// materializer makes sites of a block's nodes.
type materializer struct {
	s      *session
	b      *readBlock
	in     uint64
	chains map[int32][]Caller // by node, it and what is around it, as callers
	length int                // of all chains
}

// maxCallers bounds the callers of a block's sites, together. Bodies beside each other share theirs.
const maxCallers = 1 << 20

func (m *materializer) site(n *readNode, out *Site) error {
	s := m.s
	f, err := s.describe(int(n.fun))
	if err != nil {
		return err
	}
	rec, err := s.function(int(n.fun))
	if err != nil {
		return err
	}
	*out = Site{Function: f, Inline: n.inline, Addr: n.addr, View: n.view, AfterPrologue: n.prologue, Prologue: n.before, LocalEntry: n.local, In: m.in, Of: uint64(rec.base), CallLine: int(n.line)}
	if out.Symbol, out.Offset, err = m.symbol(n.addr, n.symbol, n.offset); err != nil {
		return err
	}
	if n.inline {
		if out.CallFile, err = m.file(n); err != nil {
			return err
		}
		if out.Callers, err = m.callers(n.parent); err != nil {
			return err
		}
	}
	if out.Depth = int(n.around); n.around < 0 {
		out.Depth = 0
		for p := n.parent; p >= 0; p = m.b.nodes[p].parent {
			x, err := s.function(int(m.b.nodes[p].fun))
			if err != nil {
				return err
			}
			if x.base == rec.base {
				out.Depth++
			}
		}
	}
	for _, x := range []struct {
		to *string
		n  uint32
	}{{&out.Refused, n.refused}, {&out.BadInstruction, n.bad}} {
		if x.n != noText {
			if *x.to, err = s.textOf(x.n); err != nil {
				return err
			}
		}
	}
	if out.Values.Params, err = m.values(n, len(f.Params)); err != nil {
		return err
	}
	if len(out.Values.Params) != len(f.Params) {
		return s.f.own.Errorf(s.f.parts[partBlocks].From, "a site of block %d has %d values, and its function %d parameters", m.in, len(out.Values.Params), len(f.Params))
	}
	result := int(n.result)
	if result < 0 {
		result = int(rec.result)
	}
	if err := m.frameAndResult(&out.Values, int(n.frame), result); err != nil || !n.inline && n.ways == 0 {
		return err
	}
	return m.ways(n, out)
}

// values returns the values of a site's parameters.
func (m *materializer) values(n *readNode, params int) ([]Value, error) {
	if n.tuple >= 0 {
		return m.s.tuple(int(n.tuple))
	}
	r := m.b.reader(m.s.f, n.list)
	numbers := make([]int, params)
	for i := range numbers {
		numbers[i] = r.index(math.MaxInt32)
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	return m.s.list(numbers)
}

func (m *materializer) frameAndResult(v *Values, frame, result int) error {
	f, err := m.s.ranked(partFrames, frame)
	if err != nil {
		return err
	}
	r, err := m.s.result(result)
	if err != nil {
		return err
	}
	v.Frame, v.Result = f, r
	return nil
}

// symbol returns the symbol of an address: what is given, or else the block's.
func (m *materializer) symbol(addr uint64, text uint32, offset uint64) (string, uint64, error) {
	if text == noText {
		for _, x := range m.b.symbols {
			if x.addr <= addr {
				text, offset = x.text, addr-x.addr
			}
		}
	}
	if text == noText {
		return "", 0, nil
	}
	name, err := m.s.textOf(text)
	return name, offset, err
}

// file returns the file in which a node is called: that of its caller, with few exceptions.
func (m *materializer) file(n *readNode) (string, error) {
	if n.file != noText {
		return m.s.textOf(n.file)
	}
	p, err := m.s.about(int(m.b.nodes[n.parent].fun))
	if err != nil {
		return "", err
	}
	return p.DeclFile, nil
}

// callers returns a node as a caller, and those around it.
func (m *materializer) callers(at int32) ([]Caller, error) {
	if c, known := m.chains[at]; known {
		return c, nil
	}
	n := &m.b.nodes[at]
	f, err := m.s.about(int(n.fun))
	if err != nil {
		return nil, err
	}
	c := Caller{Function: f.Name, Qualified: f.Qualified}
	var around []Caller
	if n.parent >= 0 {
		c.CallLine = int(n.line)
		if c.CallFile, err = m.file(n); err != nil {
			return nil, err
		}
		if around, err = m.callers(n.parent); err != nil {
			return nil, err
		}
	}
	out := append(append(make([]Caller, 0, 1+len(around)), c), around...)
	if m.length += len(out); m.length > maxCallers {
		return nil, m.s.f.own.Errorf(m.s.f.parts[partBlocks].From, "the sites of block %d have more than %d callers", m.in, maxCallers)
	}
	m.chains[at] = out
	return out, nil
}

// ways sets a site's ways.
func (m *materializer) ways(n *readNode, out *Site) error {
	w := &out.Ways
	w.Known = true
	w.In = []Way{{Addr: n.addr, View: n.view, Probe: n.addr, Symbol: out.Symbol, Offset: out.Offset}}
	if n.ways == 0 {
		return m.outs(n, w)
	}
	x, err := m.written(n)
	if err != nil {
		return err
	}
	w.Known, w.Within, w.Again, w.Folded = x.flags&waysKnown != 0, x.flags&waysWithin != 0, x.flags&waysAgain != 0, x.flags&waysFolded != 0
	w.NoReturn = x.noReturn
	if x.flags&waysUnknown != 0 {
		if w.Unknown, err = m.s.textOf(x.unknown); err != nil {
			return err
		}
	}
	if x.flags&waysIn != 0 {
		if w.In, err = m.list(x.in); err != nil {
			return err
		}
	}
	if len(x.out) == 0 {
		return m.outs(n, w)
	}
	w.Out, err = m.list(x.out)
	return err
}

// written returns the ways of a node that are written out.
func (m *materializer) written(n *readNode) (readWays, error) {
	r := m.b.reader(m.s.f, n.ways)
	x := r.readWays(n.addr, n.sharedOut, true)
	return x, r.check()
}

// outs sets ways out of which only the places are known, or those of the body around that are the node's as well.
func (m *materializer) outs(n *readNode, w *Ways) error {
	for n.sharedOut {
		n = &m.b.nodes[n.parent]
	}
	if n.ways != 0 {
		x, err := m.written(n)
		if err != nil {
			return err
		}
		for i := range x.out {
			w.Out = append(w.Out, x.out[i].Way)
		}
	} else if n.outCount > 0 {
		r := m.b.reader(m.s.f, n.outs)
		w.Out = r.outs(int(n.outCount), n.addr, true)
		if err := r.check(); err != nil {
			return err
		}
	}
	for i := range w.Out {
		y := &w.Out[i]
		var err error
		if y.Symbol, y.Offset, err = m.symbol(y.Probe, noText, 0); err != nil {
			return err
		}
	}
	return nil
}

func (m *materializer) list(list []readWay) (out []Way, err error) {
	for i := range list {
		x := &list[i]
		w := x.Way
		if w.Symbol, w.Offset, err = m.symbol(w.Probe, x.symbol, x.offset); err != nil {
			return nil, err
		}
		if x.refused != noText {
			if w.Refused, err = m.s.textOf(x.refused); err != nil {
				return nil, err
			}
		}
		for _, b := range x.before {
			if b.Symbol, err = m.s.textOf(b.symbol); err != nil {
				return nil, err
			}
			w.Before = append(w.Before, b.Before)
		}
		if x.values {
			w.Values = new(Values)
			if w.Values.Params, err = m.s.list(x.list); err != nil {
				return nil, err
			}
			if err := m.frameAndResult(w.Values, x.frame, x.result); err != nil {
				return nil, err
			}
		}
		out = append(out, w)
	}
	return out, nil
}
