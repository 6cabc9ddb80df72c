package oracle

import (
	"debug/dwarf"
	"fmt"
	"sort"
)

// Attributes that debug/dwarf has no names for.
const (
	attrGNULocviews  dwarf.Attr = 0x2137
	attrGNUEntryView dwarf.Attr = 0x2138
)

// maxChain limits chains of origins and of types, which may be loops in a damaged file.
const maxChain = 64

// node is an entry with its place in the tree.
type node struct {
	*dwarf.Entry
	parent   *node
	children []*node
	unit     *tree
}

// tree is a whole unit.
type tree struct {
	Unit
	root  *node
	nodes map[dwarf.Offset]*node
}

// Reader reads units. It is for one goroutine.
type Reader struct {
	f     *File
	d     *dwarf.Data
	trees map[uint64]*tree // the unit at hand, and those it refers to
}

// NewReader returns a reader of the file's units.
func (f *File) NewReader() (*Reader, error) {
	d, err := f.data()
	return &Reader{f: f, d: d}, err
}

// tree reads all entries of a unit.
func (r *Reader) tree(u Unit) (*tree, error) {
	if t := r.trees[u.Off]; t != nil {
		return t, nil
	}
	t := &tree{Unit: u, nodes: make(map[dwarf.Offset]*node)}
	rd := r.d.Reader()
	first := u.Off + headerSize(u)
	rd.Seek(dwarf.Offset(first))
	var cur *node
	for {
		e, err := rd.Next()
		if err != nil {
			return nil, fmt.Errorf("oracle: unit at %#x: %w", u.Off, err)
		}
		if e == nil {
			break
		}
		if e.Tag == 0 {
			if cur = cur.parent; cur == nil {
				break
			}
			continue
		}
		n := &node{Entry: e, parent: cur, unit: t}
		t.nodes[e.Offset] = n
		if cur == nil {
			t.root = n
		} else {
			cur.children = append(cur.children, n)
		}
		if e.Children {
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

// headerSize is the size of a unit's header (DWARF 5 section 7.5.1) without
// those of split units.
func headerSize(u Unit) uint64 {
	n, off := uint64(4), uint64(4)
	if u.Dwarf64 {
		n, off = 12, 8
	}
	n += 2 + off + 1
	if u.Version >= 5 {
		n++
	}
	if u.Type {
		n += 8 + off
	}
	return n
}

// at returns the entry at an offset.
func (r *Reader) at(off dwarf.Offset) (*node, error) {
	i := sort.Search(len(r.f.Units), func(i int) bool { return r.f.Units[i].End > uint64(off) })
	if i == len(r.f.Units) {
		return nil, fmt.Errorf("oracle: no unit has an entry at %#x", off)
	}
	t, err := r.tree(r.f.Units[i])
	if err != nil {
		return nil, err
	}
	n := t.nodes[off]
	if n == nil {
		return nil, fmt.Errorf("oracle: no entry starts at %#x", off)
	}
	return n, nil
}

// refer returns the entry that an attribute refers to, or nil without the attribute.
func (r *Reader) refer(n *node, attr dwarf.Attr) (*node, error) {
	off, ok := n.Val(attr).(dwarf.Offset)
	if !ok {
		return nil, nil
	}
	return r.at(off)
}

// inherit returns the value of an attribute, and the entry that has it: n itself or one of
// its origins.
func (r *Reader) inherit(n *node, attr dwarf.Attr) (*dwarf.Field, *node, error) {
	for range maxChain {
		if f := n.AttrField(attr); f != nil {
			return f, n, nil
		}
		next, err := r.refer(n, dwarf.AttrAbstractOrigin)
		if err == nil && next == nil {
			next, err = r.refer(n, dwarf.AttrSpecification)
		}
		if err != nil || next == nil {
			return nil, nil, err
		}
		n = next
	}
	return nil, nil, fmt.Errorf("oracle: origins of the entry at %#x do not end", n.Offset)
}
