package plan

import (
	"fmt"
	"unicode/utf8"

	"github.com/bpfprologue/bpfprologue/types"
)

// Bounds of what is decoded: the nesting of structures, and members and elements in all. Members of a union share their bytes.
const (
	maxDepth = 8
	maxNodes = 8192
)

// decoder decodes one value.
type decoder struct {
	parts map[string]any // what members refer to, by their paths
	left  int
}

// bytesOf returns the bytes of an object of a type, which others may follow.
func bytesOf(t *types.Type, b []byte) []byte {
	if t.Size >= 0 && t.Size < int64(len(b)) {
		return b[:t.Size]
	}
	return b
}

// decode decodes an object of a type, which a path leads to.
func (d *decoder) decode(t *types.Type, b []byte, path string, depth int) any {
	if x, is := d.parts[path]; is {
		return x
	}
	d.left--
	r, err := t.Complete()
	if err != nil || depth > maxDepth || d.left < 0 {
		return rawBytes(b)
	}
	if r.Size < 0 && (r.IsRecord() || r.Kind == types.Enum) {
		return literal("?") // it is only declared: nobody knows what it is made of
	}
	obj := bytesOf(r, b)
	size := len(obj)
	switch r.Kind {
	case types.Pointer:
		return hexText(number(obj))
	case types.Bool:
		return number(obj) != 0
	case types.Char:
		if size == 4 && utf8.ValidRune(rune(number(obj))) {
			return letter(number(obj))
		}
		// "unsigned char" and "signed char" are C's small numbers.
		if c := byte(number(obj)); r.Name == "char" && c >= ' ' && c < 0x7f {
			return char(c)
		}
	case types.Enum:
		v := extended(number(obj), size)
		if !r.Signed {
			v = int64(number(obj))
		}
		if name, err := r.Enumerator(v); err == nil && name != "" {
			return literal(name)
		}
	case types.Float:
		if x, ok := float(r.Name, obj); ok {
			return x
		}
		return rawBytes(obj)
	case types.Complex:
		if x, ok := complexNumber(r.Name, obj); ok {
			return x
		}
		return rawBytes(obj)
	case types.MemberPointer:
		if size > 8 {
			// A function's address, or 1 plus its place in a table of virtual functions; and
			// what is added to "this".
			return literal(fmt.Sprintf("{%#x, %d}", number(obj[:size/2]), int64(number(obj[size/2:]))))
		}
		return extended(number(obj), size) // an offset, or -1
	case types.Struct, types.Union, types.Class:
		if x := d.variant(r, obj, depth); x != nil {
			return x
		}
		all, err := r.Members()
		if err != nil {
			return rawBytes(obj)
		}
		return d.members(all, obj, path, depth)
	case types.Array:
		return d.array(r, obj, depth)
	case types.Int:
	default:
		return rawBytes(obj)
	}
	switch {
	case size > 8:
		return wideInteger(obj, r.Signed)
	case r.Signed:
		return extended(number(obj), size)
	}
	return number(obj)
}

// members decodes an object with members.
func (d *decoder) members(all []types.Member, b []byte, path string, depth int) *object {
	out := new(object)
	for _, m := range all {
		at := int(m.BitOffset / 8)
		var x any
		switch {
		case at >= len(b):
		case m.BitSize == 0:
			below := ""
			if m.Name != "" && (path != "" || depth == 0) {
				below = path + "." + m.Name
			}
			x = d.decode(m.Type, b[at:], below, depth+1)
		default:
			x = bitField(&m, b[at:])
		}
		out.members = append(out.members, member{m.Name, x})
	}
	return out
}

// bitField decodes a bit-field of up to 64 bits, which is in at most 9 bytes.
func bitField(m *types.Member, b []byte) any {
	lead := m.BitOffset % 8
	v := number(b[:min(8, len(b))]) >> lead
	if lead > 0 && len(b) > 8 {
		v |= uint64(b[8]) << (64 - lead)
	}
	shift := 64 - min(m.BitSize, 64)
	if r, err := m.Type.Resolve(); err == nil && r.Signed {
		return int64(v<<shift) >> shift
	}
	return v << shift >> shift
}

// array decodes an array to its elements, or to the text that it is.
func (d *decoder) array(t *types.Type, b []byte, depth int) any {
	el, n, err := t.Count()
	if err != nil {
		return rawBytes(b)
	}
	size, err := el.ByteSize()
	switch {
	case err == nil && size < 0:
		return literal("?") // likewise
	case err != nil || size <= 0:
		return rawBytes(b)
	}
	if r, err := el.Resolve(); err == nil && r.Kind == types.Char && r.Name == "char" && printable(b) {
		return text(b)
	}
	out := new(list)
	for i := int64(0); (n < 0 || i < n) && (i+1)*size <= int64(len(b)); i++ {
		if d.left < 0 {
			out.cut = true
			break
		}
		out.elements = append(out.elements, d.decode(el, b[i*size:(i+1)*size], "", depth+1))
	}
	return out
}
