// Package mapview shows the maps and the variables of a BPF object by their types: keys and values as
// fields, the values of all processors added up, what is largest first. And it sets values before the
// object is loaded, as a command line says them.
//
//	err := mapview.Set(spec, "limits[read]=100")
//	c, err := ebpf.NewCollection(spec)
//	// ...
//	maps, err := mapview.Read(spec, c.Maps)
//	for _, m := range maps {
//		for _, e := range m.Entries {
//			fmt.Println(m.Name, e.Key, e.Value)
//		}
//	}
//
// Types come from the object's BTF. Without it a value is a number, or bytes. Numbers are in the
// machine's byte order.
package mapview

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/cilium/ebpf/btf"
)

// Value is a key, a value or a variable.
type Value struct {
	// Scalar is an int64, uint64, float64, bool, string or Enumerator; nil for a structure or an array.
	Scalar any
	// Address is set for a pointer: Scalar is a uint64.
	Address bool
	// Fields are the members of a structure, or of a union: all of it.
	Fields []Field
	// Elements are those of an array.
	Elements []*Value
}

// Enumerator is the name of a value of an enumeration.
type Enumerator string

// Field is a member.
type Field struct {
	Name  string
	Value *Value
}

// maxDepth bounds the nesting of types.
const maxDepth = 16

// maxElements is how many elements of an array are decoded.
const maxElements = 1 << 12

// word reads up to 8 bytes in the machine's order.
func word(b []byte) uint64 {
	var all [8]byte
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		copy(all[:], b)
	} else {
		copy(all[8-min(len(b), 8):], b)
	}
	return binary.NativeEndian.Uint64(all[:])
}

// signed returns the low bits of a number as a signed one.
func signed(u uint64, bits int) int64 {
	shift := 64 - min(bits, 64)
	return int64(u<<shift) >> shift
}

// decode decodes an object of a type, or of none.
func decode(t btf.Type, b []byte, depth int) *Value {
	t = under(t)
	if t == nil || depth > maxDepth {
		if n := len(b); n == 1 || n == 2 || n == 4 || n == 8 {
			return &Value{Scalar: word(b)}
		}
		return &Value{Scalar: fmt.Sprintf("%x", b)}
	}
	if n, err := btf.Sizeof(t); err != nil || n > len(b) {
		return decode(nil, b, depth)
	} else {
		b = b[:n]
	}
	switch t := t.(type) {
	case *btf.Int:
		return number(t, word(b), 8*len(b), b)
	case *btf.Enum:
		u := word(b)
		for _, v := range t.Values {
			if mask := uint64(math.MaxUint64) >> (64 - 8*min(len(b), 8)); v.Value&mask == u {
				return &Value{Scalar: Enumerator(v.Name)}
			}
		}
		if t.Signed {
			return &Value{Scalar: signed(u, 8*len(b))}
		}
		return &Value{Scalar: u}
	case *btf.Float:
		switch len(b) {
		case 4:
			return &Value{Scalar: float64(math.Float32frombits(uint32(word(b))))}
		case 8:
			return &Value{Scalar: math.Float64frombits(word(b))}
		}
	case *btf.Pointer:
		return &Value{Scalar: word(b), Address: true}
	case *btf.Struct:
		return members(t.Members, b, depth)
	case *btf.Union:
		return members(t.Members, b, depth)
	case *btf.Array:
		return array(t, b, depth)
	}
	return &Value{Scalar: fmt.Sprintf("%x", b)}
}

// number decodes an integer of some bits. Larger ones than 64 bits are bytes.
func number(t *btf.Int, u uint64, bits int, b []byte) *Value {
	switch {
	case len(b) > 8:
		return &Value{Scalar: fmt.Sprintf("%x", b)}
	case t.Encoding == btf.Bool:
		return &Value{Scalar: u != 0}
	case t.Encoding == btf.Signed:
		return &Value{Scalar: signed(u, bits)}
	}
	return &Value{Scalar: u}
}

func members(all []btf.Member, b []byte, depth int) *Value {
	out := &Value{Fields: []Field{}}
	for _, m := range all {
		at := int(m.Offset / 8)
		if at > len(b) {
			continue
		}
		if m.BitfieldSize > 0 {
			t, ok := under(m.Type).(*btf.Int)
			if !ok {
				t = &btf.Int{Size: 8}
			}
			u := word(b[at:min(at+8, len(b))]) >> (m.Offset % 8)
			u &= math.MaxUint64 >> (64 - min(uint(m.BitfieldSize), 64))
			out.Fields = append(out.Fields, Field{m.Name, number(t, u, int(m.BitfieldSize), nil)})
			continue
		}
		v := decode(m.Type, b[at:], depth+1)
		if m.Name == "" && v.Fields != nil {
			out.Fields = append(out.Fields, v.Fields...) // of a structure without a name
			continue
		}
		out.Fields = append(out.Fields, Field{m.Name, v})
	}
	return out
}

func array(t *btf.Array, b []byte, depth int) *Value {
	if text, ok := characters(t, b); ok {
		return &Value{Scalar: text}
	}
	size, err := btf.Sizeof(t.Type)
	if err != nil || size <= 0 {
		return &Value{Scalar: fmt.Sprintf("%x", b)}
	}
	out := &Value{Elements: []*Value{}}
	for i := 0; i < int(t.Nelems) && (i+1)*size <= len(b) && i < maxElements; i++ {
		out.Elements = append(out.Elements, decode(t.Type, b[i*size:(i+1)*size], depth+1))
	}
	return out
}

// characters returns the text of an array of characters: what is before its first NUL.
func characters(t *btf.Array, b []byte) (string, bool) {
	el, ok := under(t.Type).(*btf.Int)
	if !ok || el.Size != 1 || el.Name != "char" && el.Encoding != btf.Char {
		return "", false
	}
	text, _, _ := bytes.Cut(b, []byte{0})
	return string(text), true
}

// under returns a type without typedefs and qualifiers; nil for none.
func under(t btf.Type) btf.Type {
	if t == nil {
		return nil
	}
	if t = btf.UnderlyingType(t); t == btf.Type((*btf.Void)(nil)) {
		return nil
	}
	return t
}

// add adds a value of another processor: numbers are added up, member by member; of anything else the
// first that is not empty stays.
func (v *Value) add(o *Value) {
	switch x := v.Scalar.(type) {
	case int64:
		if y, ok := o.Scalar.(int64); ok {
			v.Scalar = x + y
		}
	case uint64:
		if y, ok := o.Scalar.(uint64); ok && !v.Address {
			v.Scalar = x + y
		} else if ok && x == 0 {
			v.Scalar = y
		}
	case float64:
		if y, ok := o.Scalar.(float64); ok {
			v.Scalar = x + y
		}
	case bool:
		if y, ok := o.Scalar.(bool); ok {
			v.Scalar = x || y
		}
	case string:
		if x == "" {
			v.Scalar = o.Scalar
		}
	}
	for i := range min(len(v.Fields), len(o.Fields)) {
		v.Fields[i].Value.add(o.Fields[i].Value)
	}
	for i := range min(len(v.Elements), len(o.Elements)) {
		v.Elements[i].add(o.Elements[i])
	}
}

// Number returns the value as a number. ok is false for one that is none.
func (v *Value) Number() (n float64, ok bool) {
	switch x := v.Scalar.(type) {
	case int64:
		return float64(x), true
	case uint64:
		return float64(x), true
	case float64:
		return x, true
	}
	return 0, false
}

// size is what entries are sorted by: the first number in a value.
func (v *Value) size() float64 {
	if n, ok := v.Number(); ok {
		return n
	}
	for _, f := range v.Fields {
		if _, isText := f.Value.Scalar.(string); !isText {
			return f.Value.size()
		}
	}
	sum := 0.0
	for _, e := range v.Elements {
		sum += e.size()
	}
	return sum
}

// empty reports whether a value is 0, in all of its members.
func (v *Value) empty() bool {
	switch x := v.Scalar.(type) {
	case int64:
		return x == 0
	case uint64:
		return x == 0
	case float64:
		return x == 0
	case bool:
		return !x
	case string:
		return strings.Trim(x, "0") == ""
	}
	for _, f := range v.Fields {
		if !f.Value.empty() {
			return false
		}
	}
	for _, e := range v.Elements {
		if !e.empty() {
			return false
		}
	}
	return true
}

// String prints the value: a number, a quoted string, a structure with its members in braces, an array
// in brackets, of which zeros at the end are left out.
func (v *Value) String() string {
	switch x := v.Scalar.(type) {
	case nil:
	case string:
		return strconv.Quote(x)
	case uint64:
		if v.Address {
			return "0x" + strconv.FormatUint(x, 16)
		}
		return strconv.FormatUint(x, 10)
	default:
		return fmt.Sprint(x)
	}
	var parts []string
	if v.Fields != nil {
		for _, f := range v.Fields {
			parts = append(parts, f.Name+"="+f.Value.String())
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	last := len(v.Elements)
	for last > 0 && v.Elements[last-1].empty() {
		last--
	}
	for _, e := range v.Elements[:last] {
		parts = append(parts, e.String())
	}
	if last < len(v.Elements) {
		parts = append(parts, fmt.Sprintf("%d zeros", len(v.Elements)-last))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// MarshalJSON writes a structure as an object with its members in their order, and an address as text.
func (v *Value) MarshalJSON() ([]byte, error) {
	switch x := v.Scalar.(type) {
	case nil:
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return json.Marshal(fmt.Sprint(x))
		}
		return json.Marshal(x)
	default:
		if v.Address {
			return json.Marshal(v.String())
		}
		return json.Marshal(x)
	}
	if v.Fields == nil {
		return json.Marshal(v.Elements)
	}
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range v.Fields {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(f.Name)
		if err != nil {
			return nil, err
		}
		value, err := f.Value.MarshalJSON()
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
