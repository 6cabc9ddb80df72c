package pack

import (
	"encoding/binary"
	"errors"
	"strconv"

	"github.com/bpfprologue/bpfprologue/internal/packfile"
)

var errTooManyTypes = errors.New("the image has too many types for a pack")

// settle finds out which nodes are one type: those that nothing tells apart, neither they themselves nor what they are made
// of. Nodes begin as one if they look the same alone, and are told apart by what they refer to until nothing changes.
func (t *typeTable) settle() {
	ids := make(map[string]uint32)
	class, next := make([]uint32, len(t.nodes)), make([]uint32, len(t.nodes))
	var b []byte
	for i := range t.nodes {
		b = t.nodes[i].appendAlone(b[:0])
		class[i] = intern(ids, b)
	}
	for n := 0; n != len(ids); {
		n = len(ids)
		clear(ids)
		for i := range t.nodes {
			b = binary.AppendUvarint(b[:0], uint64(class[i]))
			t.nodes[i].eachRef(func(r *ref) {
				c := uint64(*r)
				if *r >= t.bound {
					c = uint64(t.bound) + uint64(class[*r-t.bound])
				}
				b = binary.AppendUvarint(b, c)
			})
			next[i] = intern(ids, b)
		}
		class, next = next, class
	}
	t.classes, t.final = class, make([]uint32, len(ids))
}

func intern(ids map[string]uint32, k []byte) uint32 {
	id, known := ids[string(k)]
	if !known {
		id = uint32(len(ids))
		ids[string(k)] = id
	}
	return id
}

// appendAlone appends all of a node but the types that it is made of.
func (n *node) appendAlone(b []byte) []byte {
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	number := func(v uint64) { b = binary.AppendUvarint(b, v) }
	flag := func(is bool) { b = strconv.AppendBool(b, is) }
	number(uint64(n.kind))
	text(n.name)
	number(uint64(n.size))
	flag(n.kflag)
	number(uint64(n.enc))
	number(uint64(n.count))
	text(n.tag)
	flag(n.plain)
	number(uint64(len(n.members)))
	for i := range n.members {
		m := &n.members[i]
		text(m.name)
		number(m.off)
		number(m.bits)
	}
	for _, v := range n.values {
		text(v.Name)
		number(uint64(v.Value))
	}
	return b
}

func (n *node) eachRef(f func(*ref)) {
	f(&n.elem)
	for i := range n.members {
		f(&n.members[i].typ)
	}
}

// number returns the number that a type has in the pack. Types get theirs when they are first asked for, and what they are
// made of right after them: so the numbers depend on the order of the questions alone.
func (t *typeTable) numberOf(id packfile.TypeID) packfile.TypeID {
	if uint32(id) < t.bound {
		return id
	}
	todo := []ref{uint32(id)}
	for len(todo) > 0 {
		r := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if r < t.bound || t.final[t.classes[r-t.bound]] != 0 {
			continue
		}
		t.order = append(t.order, r-t.bound)
		t.final[t.classes[r-t.bound]] = t.bound + uint32(len(t.order)-1)
		at := len(todo)
		t.nodes[r-t.bound].eachRef(func(r *ref) { todo = append(todo, *r) })
		for i, j := at, len(todo)-1; i < j; i, j = i+1, j-1 {
			todo[i], todo[j] = todo[j], todo[i]
		}
	}
	return packfile.TypeID(t.final[t.classes[uint32(id)-t.bound]])
}

// write writes all types that have numbers.
func (t *typeTable) write(w *btfWriter) {
	for _, r := range t.first {
		t.numberOf(packfile.TypeID(r)) // it may be no site's
	}
	to := func(r ref) uint32 { return uint32(t.numberOf(packfile.TypeID(r))) }
	index := uint32(0)
	if t.base != nil {
		index = t.base.index
	}
	if index == 0 {
		// It is no node's part, and so has the number after theirs.
		index = t.bound + uint32(len(t.order))
	}
	for _, i := range t.order {
		n := &t.nodes[i]
		switch n.kind {
		case kindInt:
			w.head(n.name, n.kind, false, 0, n.size)
			w.u32(n.enc<<24 | min(8*n.size, 0xff))
		case kindFloat:
			w.head(n.name, n.kind, false, 0, n.size)
		case kindFwd:
			w.head(n.name, n.kind, n.count != 0, 0, 0)
		case kindArray:
			w.head("", n.kind, false, 0, 0)
			w.u32(to(n.elem), index, n.count)
		case kindStruct, kindUnion:
			w.record(n, to)
		case kindEnum, kindEnum64:
			w.enum(n)
		default:
			w.head(n.name, n.kind, false, 0, to(n.elem))
		}
	}
	if index == t.bound+uint32(len(t.order)) {
		w.head("__ARRAY_SIZE_TYPE__", kindInt, false, 0, 4)
		w.u32(32)
	}
	for k, i := range t.order {
		n := &t.nodes[i]
		tag := func(name string) {
			w.head(name, kindDeclTag, false, 0, t.bound+uint32(k))
			w.u32(1<<32 - 1)
		}
		if n.tag != "" {
			tag(n.tag)
		}
		if n.plain {
			tag(packfile.TagPlain)
		}
	}
	for _, r := range t.first {
		w.head(packfile.TagFirst, kindDeclTag, false, 0, to(r))
		w.u32(1<<32 - 1)
	}
}

// record writes a structure or union. Members that BTF has no place for are left out: bit-fields from 2 MiB on.
func (w *btfWriter) record(n *node, to func(ref) uint32) {
	fields := false
	for i := range n.members {
		fields = fields || n.members[i].bits != 0
	}
	kept := make([]*member, 0, len(n.members))
	for i := range n.members {
		m := &n.members[i]
		if limit := uint64(1) << 32; !fields && m.off < limit || fields && m.off < 1<<24 && m.bits < 1<<8 {
			kept = append(kept, m)
		}
	}
	kept = kept[:min(len(kept), maxVlen)]
	w.head(n.name, n.kind, fields, len(kept), n.size)
	for _, m := range kept {
		w.u32(w.text(m.name), to(m.typ), uint32(m.off|m.bits<<24))
	}
}

func (w *btfWriter) enum(n *node) {
	values := n.values[:min(len(n.values), maxVlen)]
	w.head(n.name, n.kind, n.kflag, len(values), n.size)
	for _, v := range values {
		w.u32(w.text(v.Name), uint32(v.Value))
		if n.kind == kindEnum64 {
			w.u32(uint32(uint64(v.Value) >> 32))
		}
	}
}
