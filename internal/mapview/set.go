package mapview

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/bpfprologue/bpfprologue/internal/suggest"
)

// Set sets a variable, an entry of a map, or a member of one, before a collection is loaded:
//
//	limit=100
//	config.flags=0x10
//	table[3]=-1
//	counts[read].max=4096
//	names.7="init"
//
// After the name of a map comes the key, in brackets or after a dot; members and elements follow. A
// value is what its type says: a number in any of Go's notations, the name of an enumerator, true or
// false, a character in single quotes, a text, with or without quotes. What is not set of an entry is 0.
//
// The error names what is unknown, with the nearest names, or why a value does not fit.
func Set(spec *ebpf.CollectionSpec, assignment string) error {
	left, value, ok := cutAssignment(assignment)
	if !ok {
		return fmt.Errorf("%q: expected NAME=VALUE or MAP[KEY]=VALUE", assignment)
	}
	path, err := parsePath(left)
	if err != nil {
		return fmt.Errorf("%q: %w", assignment, err)
	}
	if v := spec.Variables[path[0]]; v != nil {
		if v.Type == nil {
			return fmt.Errorf("%q: the object has no type of %s", assignment, path[0])
		}
		data := make([]byte, v.Size())
		copy(data, v.Value)
		if err := assign(v.Type.Type, data, path[0], path[1:], value); err != nil {
			return fmt.Errorf("%q: %w", assignment, err)
		}
		return v.Set(data)
	}
	m := spec.Maps[path[0]]
	if m == nil || isSection(path[0]) {
		names := slices.Collect(maps.Keys(spec.Variables))
		for n := range spec.Maps {
			if !isSection(n) {
				names = append(names, n)
			}
		}
		return fmt.Errorf("%q: no variable or map %q%s", assignment, path[0], nearest(path[0], names))
	}
	if err := setEntry(m, path, value); err != nil {
		return fmt.Errorf("%q: %w", assignment, err)
	}
	return nil
}

// cutAssignment cuts at the first = that is not in a key.
func cutAssignment(text string) (left, right string, ok bool) {
	depth, quoted := 0, false
	for i, c := range text {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == '=' && depth == 0:
			return text[:i], text[i+1:], i > 0
		}
	}
	return "", "", false
}

// parsePath splits a name, and what follows it after dots and in brackets. Sections begin with a dot.
func parsePath(text string) (path []string, err error) {
	rest := text
	for first := true; rest != ""; first = false {
		switch {
		case rest[0] == '[' && !first:
			end := strings.IndexByte(rest, ']')
			if strings.HasPrefix(rest, `["`) {
				if end = strings.Index(rest, `"]`) + 1; end == 0 {
					end = -1
				}
			}
			if end < 0 {
				return nil, fmt.Errorf("a bracket is not closed")
			}
			path, rest = append(path, rest[1:end]), rest[end+1:]
			continue
		case rest[0] == '.' && !first:
			rest = rest[1:]
		case !first:
			return nil, fmt.Errorf("expected a dot or a bracket at %q", rest)
		}
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			end = len(rest)
		}
		if end == 0 {
			return nil, fmt.Errorf("a name is missing")
		}
		path, rest = append(path, rest[:end]), rest[end:]
	}
	return path, nil
}

// setEntry sets an entry of a map.
func setEntry(m *ebpf.MapSpec, path []string, value string) error {
	if len(path) < 2 {
		return fmt.Errorf("%s is a map: say which entry, as %s[KEY]=VALUE", path[0], path[0])
	}
	perCPU := false
	switch m.Type {
	case ebpf.Array, ebpf.Hash, ebpf.LRUHash:
	case ebpf.PerCPUArray, ebpf.PerCPUHash, ebpf.LRUCPUHash:
		perCPU = true // the first processor has it, so that the sum is that
	default:
		return fmt.Errorf("%s is of the type %v: its entries cannot be set", path[0], m.Type)
	}
	key := make([]byte, m.KeySize)
	if err := assign(m.Key, key, path[0]+"'s key", nil, path[1]); err != nil {
		return err
	}
	if i := word(key); (m.Type == ebpf.Array || m.Type == ebpf.PerCPUArray) && i >= uint64(m.MaxEntries) {
		return fmt.Errorf("%s has the entries 0 to %d", path[0], m.MaxEntries-1)
	}
	data := make([]byte, m.ValueSize)
	at := slices.IndexFunc(m.Contents, func(e ebpf.MapKV) bool { k, ok := e.Key.([]byte); return ok && string(k) == string(key) })
	if at >= 0 {
		switch old := m.Contents[at].Value.(type) {
		case []byte:
			copy(data, old)
		case [][]byte:
			copy(data, old[0])
		}
	}
	if err := assign(m.Value, data, path[0]+"["+path[1]+"]", path[2:], value); err != nil {
		return err
	}
	e := ebpf.MapKV{Key: key, Value: data}
	if perCPU {
		e.Value = [][]byte{data}
	}
	if at >= 0 {
		m.Contents[at] = e
	} else {
		m.Contents = append(m.Contents, e)
	}
	return nil
}

// assign writes the value of what path leads to into an object of a type. where is what is said of it.
func assign(t btf.Type, b []byte, where string, path []string, value string) error {
	t = under(t)
	if t == nil {
		if n := len(b); n != 1 && n != 2 && n != 4 && n != 8 || len(path) > 0 {
			return fmt.Errorf("%s has %d bytes, and the object does not say of which type", where, len(b))
		}
		t = &btf.Int{Size: uint32(len(b))}
	}
	if n, err := btf.Sizeof(t); err != nil || n > len(b) {
		return fmt.Errorf("%s: its type has %d bytes, and it has %d", where, n, len(b))
	} else {
		b = b[:n]
	}
	if len(path) == 0 {
		return assignScalar(t, b, where, value)
	}
	var all []btf.Member
	switch t := t.(type) {
	case *btf.Struct:
		all = t.Members
	case *btf.Union:
		all = t.Members
	case *btf.Array:
		i, err := strconv.ParseUint(path[0], 0, 32)
		if err != nil || i >= uint64(t.Nelems) {
			return fmt.Errorf("%s has the elements 0 to %d, not %q", where, int64(t.Nelems)-1, path[0])
		}
		size, err := btf.Sizeof(t.Type)
		if err != nil {
			return err
		}
		return assign(t.Type, b[int(i)*size:], fmt.Sprintf("%s[%d]", where, i), path[1:], value)
	default:
		return fmt.Errorf("%s has no members", where)
	}
	var names []string
	if m, at := findMember(all, path[0], 0, &names); m != nil {
		if int(at+m.BitfieldSize+7)/8 > len(b) {
			return fmt.Errorf("%s.%s is beyond its %d bytes", where, path[0], len(b))
		}
		where += "." + path[0]
		if m.BitfieldSize > 0 {
			return assignBits(m, b, int(at), where, path[1:], value)
		}
		return assign(m.Type, b[at/8:], where, path[1:], value)
	}
	return fmt.Errorf("%s has no member %q%s", where, path[0], nearest(path[0], names))
}

// findMember finds a member, also in structures without a name, and its offset in bits.
func findMember(all []btf.Member, name string, base btf.Bits, names *[]string) (*btf.Member, btf.Bits) {
	for i := range all {
		m := &all[i]
		if m.Name == name && name != "" {
			return m, base + m.Offset
		}
		if m.Name != "" {
			*names = append(*names, m.Name)
			continue
		}
		var inner []btf.Member
		switch t := under(m.Type).(type) {
		case *btf.Struct:
			inner = t.Members
		case *btf.Union:
			inner = t.Members
		}
		if found, at := findMember(inner, name, base+m.Offset, names); found != nil {
			return found, at
		}
	}
	return nil, 0
}

// assignBits writes a bit-field.
func assignBits(m *btf.Member, b []byte, at int, where string, path []string, value string) error {
	t, ok := under(m.Type).(*btf.Int)
	if !ok || len(path) > 0 || m.BitfieldSize > 32 || binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return fmt.Errorf("%s is a bit-field that cannot be set", where)
	}
	u, err := parseInt(value, int(m.BitfieldSize), t.Encoding == btf.Signed)
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	for i := range int(m.BitfieldSize) {
		bit := at + i
		b[bit/8] = b[bit/8]&^(1<<(bit%8)) | byte(u>>i&1)<<(bit%8)
	}
	return nil
}

// assignScalar writes a number, an enumerator or a text.
func assignScalar(t btf.Type, b []byte, where, value string) error {
	switch t := t.(type) {
	case *btf.Int:
		u, err := parseNumber(t, value, 8*len(b))
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		store(b, u)
		return nil
	case *btf.Enum:
		names := make([]string, len(t.Values))
		for i, v := range t.Values {
			if names[i] = v.Name; v.Name == value {
				store(b, v.Value)
				return nil
			}
		}
		u, err := parseInt(value, 8*len(b), t.Signed)
		if err != nil {
			return fmt.Errorf("%s: no enumerator %q%s", where, value, nearest(value, names))
		}
		store(b, u)
		return nil
	case *btf.Float:
		x, err := strconv.ParseFloat(value, 8*len(b))
		if err != nil {
			return fmt.Errorf("%s: %q is no number", where, value)
		}
		if len(b) == 4 {
			store(b, uint64(math.Float32bits(float32(x))))
		} else {
			store(b, math.Float64bits(x))
		}
		return nil
	case *btf.Pointer:
		return fmt.Errorf("%s is a pointer", where)
	case *btf.Array:
		if _, ok := characters(t, nil); !ok {
			return fmt.Errorf("%s is an array: set its elements, as [0]", where)
		}
		if text, err := strconv.Unquote(value); err == nil {
			value = text
		}
		if len(value) > len(b) {
			return fmt.Errorf("%s has %d bytes, and %q has %d", where, len(b), value, len(value))
		}
		clear(b)
		copy(b, value)
		return nil
	case *btf.Struct, *btf.Union:
		return fmt.Errorf("%s is a structure: set its members, as .NAME", where)
	}
	return fmt.Errorf("%s is of a type whose values cannot be set", where)
}

func parseNumber(t *btf.Int, value string, bits int) (uint64, error) {
	switch {
	case bits > 64:
		return 0, fmt.Errorf("a number of %d bits", bits)
	case value == "true" && t.Encoding == btf.Bool:
		return 1, nil
	case value == "false" && t.Encoding == btf.Bool:
		return 0, nil
	case t.Encoding == btf.Bool:
		return parseInt(value, 1, false)
	case bits == 8 && len(value) > 2 && value[0] == '\'':
		if text, err := strconv.Unquote(value); err == nil && len(text) == 1 {
			return uint64(text[0]), nil
		}
	}
	return parseInt(value, bits, t.Encoding == btf.Signed)
}

// parseInt parses a number that fits into some bits.
func parseInt(value string, bits int, isSigned bool) (uint64, error) {
	if isSigned {
		n, err := strconv.ParseInt(value, 0, 64)
		if err != nil || signed(uint64(n), bits) != n {
			return 0, fmt.Errorf("%q is no signed number of %d bits", value, bits)
		}
		return uint64(n), nil
	}
	n, err := strconv.ParseUint(value, 0, 64)
	if err != nil || bits < 64 && n>>bits != 0 {
		return 0, fmt.Errorf("%q is no unsigned number of %d bits", value, bits)
	}
	return n, nil
}

// store writes the low bytes of a number in the machine's order.
func store(b []byte, u uint64) {
	var all [8]byte
	binary.NativeEndian.PutUint64(all[:], u)
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		copy(b, all[:])
	} else {
		copy(b, all[8-min(len(b), 8):])
	}
}

// nearest returns the names that were probably meant, or all.
func nearest(name string, names []string) string {
	if near := suggest.Nearest(name, slices.Values(names), 3); len(near) > 0 {
		return "; did you mean " + strings.Join(near, ", ") + "?"
	}
	slices.Sort(names)
	const most = 20
	if len(names) > most {
		names = append(names[:most:most], "...")
	}
	if len(names) == 0 {
		return ""
	}
	return "; there are " + strings.Join(names, ", ")
}
