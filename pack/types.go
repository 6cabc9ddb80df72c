package pack

import (
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/packfile"
	"github.com/bpfprologue/bpfprologue/types"
)

// ref is a type while a pack is made: 0 is void, what is less than types.bound a type of the image's own BTF, and
// others are nodes.
type ref = uint32

// node is a type that the image's own BTF does not have.
type node struct {
	kind    uint32
	name    string
	size    uint32 // bytes; for kindInt, kindFloat, structures, unions and enumerations
	kflag   bool   // signed, for enumerations; a union, for kindFwd
	enc     uint32 // of kindInt
	elem    ref
	count   uint32 // elements of an array
	members []member
	values  []types.Enumerator
	tag     string // a declaration tag, or ""
	plain   bool   // it is spelled without "struct", "union" or "enum"
}

type member struct {
	name      string
	typ       ref
	off, bits uint64 // bits
}

// typeTable holds the types that sites name, and all that can be reached from them. In the debug information each unit has
// types of its own: those that nothing tells apart become one.
type typeTable struct {
	mu    sync.Mutex
	base  *matcher // nil if the image has no BTF of its own
	bound ref
	nodes []node
	known map[*types.Type]ref
	inner map[key]ref // nodes for what is between types, by contents
	first []ref       // see ambiguous

	classes []uint32 // of nodes, when all are there
	final   []uint32 // numbers of classes in the pack; 0 if not given yet
	order   []uint32 // nodes in the order of their numbers
}

// key tells types apart that are made of one other.
type key struct {
	kind  uint32
	elem  ref
	count uint32
	name  string
}

func newTypes(base *table) *typeTable {
	t := &typeTable{bound: 1, known: make(map[*types.Type]ref), inner: make(map[key]ref)}
	if base != nil {
		t.base, t.bound = newMatcher(base), uint32(len(base.at))
	}
	return t
}

// of returns a type as sites name it, until all are known. A nil type is void.
func (t *typeTable) of(x *types.Type) (packfile.TypeID, error) {
	if x == nil {
		return 0, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r, err := t.ref(x)
	return packfile.TypeID(r), err
}

func (t *typeTable) add(n node) ref {
	t.nodes = append(t.nodes, n)
	return t.bound + uint32(len(t.nodes)-1)
}

// made returns the type of a kind that is made of another.
func (t *typeTable) made(k key) ref {
	if t.base != nil {
		if id, ok := t.base.made[k]; ok {
			return id
		}
	}
	r, ok := t.inner[k]
	if !ok {
		r = t.add(node{kind: k.kind, elem: k.elem, count: k.count, name: k.name})
		t.inner[k] = r
	}
	return r
}

// ref returns a type. Types that form a circle do so through structures, which are known before their members are.
func (t *typeTable) ref(x *types.Type) (ref, error) {
	if r, ok := t.known[x]; ok {
		return r, nil
	}
	r, err := t.read(x)
	if err == nil {
		t.known[x] = r
	}
	return r, err
}

// maxTypes bounds the types of a pack: a file's size bounds those of the debug information, but not how often
// they are reached.
const maxTypes = 1 << 22

func (t *typeTable) read(x *types.Type) (ref, error) {
	if len(t.nodes) > maxTypes {
		return 0, errTooManyTypes
	}
	switch x.Kind {
	case types.Void:
		if x.Name == "" || x.Name == "void" {
			return 0, nil
		}
		return t.made(key{kind: kindTypedef, name: x.Name}), nil
	case types.Int, types.Char, types.Bool, types.Float:
		return t.number(x), nil
	case types.Pointer:
		el, err := t.elem(x)
		if err != nil {
			return 0, err
		}
		switch x.Word() {
		case "&":
			el = t.made(key{kind: kindTypeTag, name: packfile.TagReference, elem: el})
		case "&&":
			el = t.made(key{kind: kindTypeTag, name: packfile.TagRvalueReference, elem: el})
		}
		return t.made(key{kind: kindPtr, elem: el}), nil
	case types.Qualified:
		el, err := t.elem(x)
		if err != nil {
			return 0, err
		}
		switch x.Word() {
		case "const":
			return t.made(key{kind: kindConst, elem: el}), nil
		case "volatile":
			return t.made(key{kind: kindVolatile, elem: el}), nil
		case "restrict":
			return t.made(key{kind: kindRestrict, elem: el}), nil
		}
		return t.made(key{kind: kindTypeTag, name: packfile.TagAtomic, elem: el}), nil
	case types.Typedef:
		el, err := t.elem(x)
		if err != nil {
			return 0, err
		}
		k := key{kind: kindTypedef, name: x.Name, elem: el}
		if t.base != nil && t.base.made[k] == 0 {
			if id, err := t.base.typedef(x); id != 0 || err != nil {
				return id, err
			}
		}
		return t.made(k), nil
	case types.Func:
		el, err := t.elem(x)
		return t.made(key{kind: kindProto, elem: el}), err
	case types.Array:
		el, n, err := x.Count()
		if err != nil {
			return 0, err
		}
		r, err := t.ref(el)
		return t.made(key{kind: kindArray, elem: r, count: uint32(min(max(n, 0), 1<<32-1))}), err
	case types.Struct, types.Union, types.Class:
		return t.record(x)
	case types.Enum:
		return t.enum(x)
	case types.Complex:
		return t.opaque(x, packfile.TagComplex), nil
	case types.MemberPointer:
		return t.opaque(x, packfile.TagMemberPointer), nil
	}
	return t.opaque(x, packfile.TagOther), nil
}

func (t *typeTable) elem(x *types.Type) (ref, error) {
	el, err := x.Elem()
	if err != nil {
		return 0, err
	}
	return t.ref(el)
}

// opaque returns a structure without members for what BTF has no kind for.
func (t *typeTable) opaque(x *types.Type, tag string) ref {
	return t.add(node{kind: kindStruct, name: x.String(), size: uint32(max(x.Size, 0)), tag: tag})
}

func (t *typeTable) number(x *types.Type) ref {
	if x.Size < 0 || x.Size > 1<<10 {
		return t.opaque(x, packfile.TagOther)
	}
	if t.base != nil {
		if id, ok := t.base.number(x); ok {
			return id
		}
	}
	if x.Kind == types.Float {
		return t.add(node{kind: kindFloat, name: x.Name, size: uint32(x.Size)})
	}
	n := node{kind: kindInt, name: x.Name, size: uint32(x.Size)}
	if x.Signed {
		n.enc |= intSigned
	}
	switch x.Kind {
	case types.Char:
		n.enc |= intChar
	case types.Bool:
		n.enc |= intBool
	}
	return t.add(n)
}

// record returns a structure, union or class.
func (t *typeTable) record(x *types.Type) (ref, error) {
	if t.base != nil {
		if id, err := t.base.record(x); id != 0 || err != nil {
			return id, err
		}
	}
	full := x
	if x.Size < 0 {
		var err error
		if full, err = x.Complete(); err != nil {
			return 0, err
		}
	}
	if full.Size < 0 {
		return t.made(key{kind: kindFwd, name: x.Name, count: b2u(x.Kind == types.Union)}), nil
	}
	if full != x {
		return t.ref(full)
	}
	n := node{kind: kindStruct, name: x.Name, size: uint32(min(x.Size, 1<<32-1)), plain: x.Name != "" && x.Word() == ""}
	switch x.Kind {
	case types.Union:
		n.kind = kindUnion
	case types.Class:
		n.tag = packfile.TagClass
	}
	r := t.add(n)
	t.known[x] = r // its members may name it
	members, err := x.Members()
	if err != nil {
		return 0, err
	}
	list := make([]member, 0, len(members))
	for i := range members {
		m := &members[i]
		typ, err := t.ref(m.Type)
		if err != nil {
			return 0, err
		}
		list = append(list, member{m.Name, typ, m.BitOffset, m.BitSize})
	}
	t.nodes[r-t.bound].members = list
	return r, nil
}

func (t *typeTable) enum(x *types.Type) (ref, error) {
	full := x
	if x.Size < 0 {
		var err error
		if full, err = x.Complete(); err != nil {
			return 0, err
		}
	}
	if full.Size < 0 {
		return t.made(key{kind: kindFwd, name: x.Name}), nil // BTF has no other one without a size
	}
	values, err := full.Enumerators()
	if err != nil {
		return 0, err
	}
	if t.base != nil {
		if id := t.base.enum(full, values); id != 0 {
			return id, nil
		}
	}
	n := node{kind: kindEnum, name: full.Name, size: uint32(max(full.Size, 0)), kflag: full.Signed, values: values, plain: full.Name != "" && full.Word() == ""}
	for _, v := range values {
		if v.Value != int64(int32(v.Value)) && v.Value != int64(uint32(v.Value)) {
			n.kind = kindEnum64
		}
	}
	return t.add(n), nil
}

func b2u(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}
