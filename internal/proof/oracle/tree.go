package oracle

import (
	"fmt"
	"sort"
)

// maxChain limits chains of origins and of types, which may be loops in a damaged file.
const maxChain = 64

// node is an entry with its place in the tree.
type node struct {
	*entry
	parent   *node
	children []*node
	unit     *tree
}

// tree is a whole unit.
type tree struct {
	Unit
	r     *Reader
	root  *node
	nodes map[ref]*node
}

// Reader reads units. It is for one goroutine.
type Reader struct {
	f       *File
	trees   map[uint64]*tree             // the unit at hand, and those it refers to
	abbrevs map[uint64]map[uint64]*shape // by offset and code

	unit  Unit // that Around read
	sites map[uint64]*Site
}

// NewReader returns a reader of the file's units.
func (f *File) NewReader() (*Reader, error) {
	return &Reader{f: f}, nil
}

// tree reads all entries of a unit.
func (r *Reader) tree(u Unit) (*tree, error) {
	if t := r.trees[u.Off]; t != nil {
		return t, nil
	}
	t := &tree{Unit: u, r: r, nodes: make(map[ref]*node)}
	shapes, err := r.shapes(u.abbrevs)
	if err != nil {
		return nil, err
	}
	c := r.f.cursor(r.f.sections[".debug_info"][:u.End], u.first)
	var cur *node
	for c.p < u.End {
		at := ref(c.p)
		code := c.uleb()
		if code == 0 {
			if cur == nil {
				break
			}
			if cur = cur.parent; cur == nil {
				break
			}
			continue
		}
		s := shapes[code]
		if s == nil {
			return nil, fmt.Errorf("oracle: unit at %#x: entry at %#x: no abbreviation %d", u.Off, uint64(at), code)
		}
		e, err := t.entry(&c, s, at)
		if err != nil {
			return nil, fmt.Errorf("oracle: unit at %#x: %w", u.Off, err)
		}
		n := &node{entry: e, parent: cur, unit: t}
		t.nodes[at] = n
		if cur == nil {
			t.root = n
		} else {
			cur.children = append(cur.children, n)
		}
		if err := t.indices(e); err != nil {
			return nil, fmt.Errorf("oracle: unit at %#x: %w", u.Off, err)
		}
		if s.children {
			cur = n
		} else if cur == nil {
			break
		}
	}
	if t.root == nil {
		return nil, fmt.Errorf("oracle: unit at %#x has no entries", u.Off)
	}
	if r.trees == nil {
		r.trees = make(map[uint64]*tree)
	}
	r.trees[u.Off] = t
	return t, nil
}

// at returns the entry at an offset.
func (r *Reader) at(off ref) (*node, error) {
	i := sort.Search(len(r.f.Units), func(i int) bool { return r.f.Units[i].End > uint64(off) })
	if i == len(r.f.Units) {
		return nil, fmt.Errorf("oracle: no unit has an entry at %#x", uint64(off))
	}
	t, err := r.tree(r.f.Units[i])
	if err != nil {
		return nil, err
	}
	n := t.nodes[off]
	if n == nil {
		return nil, fmt.Errorf("oracle: no entry starts at %#x", uint64(off))
	}
	return n, nil
}

// refer returns the entry that an attribute refers to, or nil without the attribute.
func (r *Reader) refer(n *node, attr attr) (*node, error) {
	off, ok := n.Val(attr).(ref)
	if !ok {
		return nil, nil
	}
	return r.at(off)
}

// inherit returns the value of an attribute, and the entry that has it: n itself or one of
// its origins.
func (r *Reader) inherit(n *node, attr attr) (*field, *node, error) {
	for range maxChain {
		if f := n.field(attr); f != nil {
			return f, n, nil
		}
		next, err := r.refer(n, attrAbstractOrigin)
		if err == nil && next == nil {
			next, err = r.refer(n, attrSpecification)
		}
		if err != nil || next == nil {
			return nil, nil, err
		}
		n = next
	}
	return nil, nil, fmt.Errorf("oracle: origins of the entry at %#x do not end", uint64(n.Offset))
}
