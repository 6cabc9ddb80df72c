package pack

import (
	"github.com/bpfprologue/bpfprologue/types"
)

// matcher finds the types of the debug information among those of an image's own BTF, which pahole has made of the same
// debug information: each type once, however many units describe it. So if the BTF has one structure of a name, that is
// the one; of several, it is the one with the same members, whose types are the same in turn.
type matcher struct {
	*table
	made   map[key]ref
	byName map[named][]ref
	index  uint32 // the type of array indices
}

type named struct {
	kind uint32
	name string
	size uint32
}

func newMatcher(t *table) *matcher {
	m := &matcher{table: t, made: make(map[key]ref), byName: make(map[named][]ref)}
	for id := uint32(1); id < uint32(len(t.at)); id++ {
		k := key{kind: t.kind(id), elem: t.size(id), name: t.name(id)}
		switch k.kind {
		case kindPtr, kindConst, kindVolatile, kindRestrict, kindTypedef, kindTypeTag:
		case kindProto:
			k.name = ""
		case kindFwd:
			k.elem, k.count = 0, b2u(t.kflag(id))
		case kindArray:
			k = key{kind: kindArray, elem: t.word(id, 0), count: t.word(id, 2)}
			if m.index == 0 {
				m.index = t.word(id, 1)
			}
		case kindInt, kindFloat, kindEnum, kindEnum64:
			m.byName[named{k.kind, k.name, t.size(id)}] = append(m.byName[named{k.kind, k.name, t.size(id)}], id)
			continue
		case kindStruct, kindUnion:
			n := named{kind: k.kind, name: k.name}
			if n.name == "" {
				n.size = t.size(id)
			}
			m.byName[n] = append(m.byName[n], id)
			continue
		default:
			continue
		}
		if _, known := m.made[k]; !known {
			m.made[k] = id
		}
		if k.kind == kindTypedef {
			n := named{kind: kindTypedef, name: k.name}
			m.byName[n] = append(m.byName[n], id)
		}
	}
	return m
}

// number finds an integer, a character, a truth value or a floating-point number. pahole does not say which integers are
// characters: their names do.
func (m *matcher) number(x *types.Type) (ref, bool) {
	kind := uint32(kindInt)
	if x.Kind == types.Float {
		kind = kindFloat
	}
	for _, id := range m.byName[named{kind, x.Name, uint32(x.Size)}] {
		if kind == kindFloat || m.sameInt(x, id) {
			return id, true
		}
	}
	return 0, false
}

func (m *matcher) sameInt(x *types.Type, id ref) bool {
	enc := m.word(id, 0) >> 24
	isBool := x.Kind == types.Bool
	return isBool == (enc&intBool != 0) && (isBool || x.Signed == (enc&intSigned != 0)) && m.word(id, 0)&0xff == uint32(8*x.Size)
}

// typedef finds a typedef; 0 means that there is none. Only the results of functions are compared, and so a pointer to a
// function may be that of another typedef.
func (m *matcher) typedef(x *types.Type) (ref, error) {
	for _, id := range m.byName[named{kind: kindTypedef, name: x.Name}] {
		c := comparison{m: m, assumed: make(map[pair]bool)}
		if same, err := c.same(x, id, 0); same || err != nil {
			return id, err
		}
	}
	return 0, nil
}

// record finds a structure, union or class; 0 means that there is none.
func (m *matcher) record(x *types.Type) (ref, error) {
	all := m.records(x)
	switch {
	case len(all) == 0:
		return 0, nil
	case len(all) == 1 && x.Name != "" && (x.Size < 0 || uint32(x.Size) == m.size(all[0])):
		return all[0], nil
	case x.Size < 0:
		full, err := x.Complete()
		if err != nil || full.Size < 0 {
			return 0, err
		}
		x = full
	}
	for _, id := range all {
		c := comparison{m: m, assumed: make(map[pair]bool)}
		if same, err := c.same(x, id, 0); same || err != nil {
			return id, err
		}
	}
	return 0, nil
}

// records returns the records with the name of a type, or of those without a name the ones of its size.
func (m *matcher) records(x *types.Type) []ref {
	n := named{kind: kindStruct, name: x.Name}
	if x.Kind == types.Union {
		n.kind = kindUnion
	}
	if n.name == "" {
		n.size = uint32(max(x.Size, 0))
	}
	return m.byName[n]
}

// enum finds an enumeration; 0 means that there is none.
func (m *matcher) enum(x *types.Type, values []types.Enumerator) ref {
	for _, kind := range []uint32{kindEnum, kindEnum64} {
		for _, id := range m.byName[named{kind, x.Name, uint32(max(x.Size, 0))}] {
			if m.sameEnum(x, values, id) {
				return id
			}
		}
	}
	return 0
}

func (m *matcher) sameEnum(x *types.Type, values []types.Enumerator, id ref) bool {
	if m.vlen(id) != len(values) || m.name(id) != x.Name || int64(m.size(id)) != x.Size {
		return false
	}
	for i, v := range values {
		name, value := m.enumerator(id, i)
		if unused := 64 - 8*min(max(x.Size, 1), 8); name != v.Name || uint64(value^v.Value)<<unused != 0 {
			return false
		}
	}
	return true
}

// comparison compares a type of the debug information with one of the BTF, assuming that pairs that are being compared are
// equal.
type comparison struct {
	m       *matcher
	assumed map[pair]bool
}

type pair struct {
	x  *types.Type
	id ref
}

// maxDepth bounds how deep types are nested that are compared.
const maxDepth = 200

func (c *comparison) same(x *types.Type, id ref, depth int) (bool, error) {
	m := c.m
	if id >= uint32(len(m.at)) || depth > maxDepth {
		return false, nil
	}
	kind := m.kind(id)
	made := func(want uint32, to ref) (bool, error) {
		if kind != want {
			return false, nil
		}
		el, err := x.Elem()
		if err != nil {
			return false, err
		}
		return c.same(el, to, depth+1)
	}
	elem := func(want uint32) (bool, error) {
		if id == 0 {
			return false, nil
		}
		return made(want, m.size(id))
	}
	switch x.Kind {
	case types.Void:
		return id == 0, nil
	case types.Int, types.Char, types.Bool:
		return kind == kindInt && m.name(id) == x.Name && int64(m.size(id)) == x.Size && m.sameInt(x, id), nil
	case types.Float:
		return kind == kindFloat && m.name(id) == x.Name && int64(m.size(id)) == x.Size, nil
	case types.Pointer:
		return elem(kindPtr)
	case types.Func:
		return elem(kindProto)
	case types.Typedef:
		if kind == kindTypedef && m.name(id) != x.Name {
			return false, nil
		}
		return elem(kindTypedef)
	case types.Qualified:
		return elem(map[string]uint32{"const": kindConst, "volatile": kindVolatile, "restrict": kindRestrict}[x.Word()])
	case types.Array:
		if kind != kindArray {
			return false, nil
		}
		el, n, err := x.Count()
		if err != nil || uint32(max(n, 0)) != m.word(id, 2) {
			return false, err
		}
		return c.same(el, m.word(id, 0), depth+1)
	case types.Enum:
		if kind != kindEnum && kind != kindEnum64 {
			return false, nil
		}
		values, err := x.Enumerators()
		return err == nil && m.sameEnum(x, values, id), err
	case types.Struct, types.Union, types.Class:
		return c.sameRecord(x, id, depth)
	}
	return false, nil
}

func (c *comparison) sameRecord(x *types.Type, id ref, depth int) (bool, error) {
	m := c.m
	isUnion := x.Kind == types.Union
	kind := m.kind(id)
	if id == 0 || m.name(id) != x.Name {
		return false, nil
	}
	if kind == kindFwd {
		return x.Size < 0 && m.kflag(id) == isUnion, nil
	}
	if kind != kindStruct && kind != kindUnion || (kind == kindUnion) != isUnion {
		return false, nil
	}
	if x.Size < 0 {
		return true, nil // pahole has found the definition
	}
	if int64(m.size(id)) != x.Size {
		return false, nil
	}
	if all := m.records(x); x.Name != "" && len(all) == 1 {
		return true, nil
	}
	p := pair{x, id}
	if c.assumed[p] {
		return true, nil
	}
	c.assumed[p] = true
	members, err := x.Members()
	if err != nil || len(members) != m.vlen(id) {
		return false, err
	}
	for i := range members {
		name, typ, off, bits := m.member(id, i)
		if have := &members[i]; have.Name != name || have.BitOffset != off || have.BitSize != bits {
			return false, nil
		}
		if same, err := c.same(members[i].Type, typ, depth+1); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}
