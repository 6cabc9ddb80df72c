package plan

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/bpfprologue/bpfprologue/internal/argument"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/prologue"
	"github.com/bpfprologue/bpfprologue/types"
)

// Value is the value of one argument at one hit.
type Value struct {
	*Argument
	Lost bool   // it was not fetched at this hit: its err bit was set, and not for a doubt (Argument.Doubt)
	Data []byte // in the machine's byte order; 8 bytes for a number
}

// Values returns the arguments of one hit at a site, which is an index in Plan.Sites. err and
// data are what the program got: data is the record, or its up to three arguments, 8 bytes
// each, one after the other. The values refer to data.
func (p *Plan) Values(site int, err uint64, data []byte) []Value {
	s := &p.Sites[site]
	out := make([]Value, len(s.Args))
	lost := err &^ p.doubtful(site, err, data)
	for i := range s.Args {
		v := Value{Argument: &s.Args[i], Lost: lost&(1<<i) != 0}
		from, to := 8*i, 8*i+8
		if p.Convention == prologue.ConventionRecord && s.Instance >= 0 {
			f := p.Instances[s.Instance].Prologue.Layout.Fields[i]
			from, to = f.Offset, f.Offset+f.Size
			if v.Kind == prologue.KindObject {
				to = min(to, from+v.Size) // without its padding
			}
		}
		v.Data = data[min(from, len(data)):min(to, len(data))]
		out[i] = v
	}
	return out
}

// doubtful returns the bits of err that are set because an argument may not be what was passed: it was fetched.
func (p *Plan) doubtful(site int, err uint64, data []byte) uint64 {
	switch {
	case p.Doubt != DoubtKeep:
		return 0
	case p.Convention != prologue.ConventionRecord:
		return err >> prologue.DoubtShift & (1<<prologue.MaxArgs - 1)
	}
	if in := p.Sites[site].Instance; in >= 0 {
		if at := p.Instances[in].Prologue.Layout.Doubts.Offset; at+8 <= len(data) {
			return binary.NativeEndian.Uint64(data[at:])
		}
	}
	return 0
}

// word returns a number as the program gets it: extended to 64 bits. It is 0 for values of
// fewer than 8 bytes.
func (v *Value) word() uint64 {
	if len(v.Data) < 8 {
		return 0
	}
	return binary.NativeEndian.Uint64(v.Data)
}

// String prints the value by its type: a number, a character, a quoted string,
// a structure with its members. A value that was not fetched is "?", and "~" is before one that may not be what was passed.
func (v Value) String() string {
	if v.Lost {
		return "?"
	}
	if v.Doubt() != reasons.None {
		return "~" + show(v.decode())
	}
	return show(v.decode())
}

// Any returns the value as a Go value: an int64, uint64 or float64 for a number, a bool, or a
// string. Characters and strings are returned without quotes; addresses, structures and
// arrays, and numbers that these types do not hold, as String prints them. It is nil for a
// value that was not fetched.
func (v Value) Any() any {
	if v.Lost {
		return nil
	}
	switch x := v.decode().(type) {
	case char:
		if x >= 0x80 {
			return uint64(x)
		}
		return string(rune(x))
	case letter:
		return string(rune(x))
	case literal:
		return string(x)
	default:
		return x
	}
}

// decode decodes the value by the definition's type, or else by the variable's own.
func (v *Value) decode() any {
	switch {
	case v.Type.Kind == syntax.TypeBytes && v.Kind == prologue.KindSlice:
		return v.bytes()
	case v.Kind == prologue.KindSlice:
		return v.slice()
	case v.Type.Kind == syntax.TypeBytes:
		return literal(hex.EncodeToString(v.Data[:min(len(v.Data), max(v.Size, 0))]))
	case v.Length.Kind != loc.KindNone && v.Kind != prologue.KindObject:
		return strings.TrimRight(string(v.Data), "\x00") // it may have others inside
	case v.Kind == prologue.KindString || v.Kind == prologue.KindUserString:
		return text(v.Data)
	case v.Type.Count > 0:
		return v.elements()
	}
	if x := converted(v.Type.Kind, v.word(), 8); x != nil {
		return x
	}
	if v.Kind == prologue.KindComm {
		return text(v.Data)
	}
	return decode(v.Variable.Type, v.Data, 0)
}

// converted converts a number of size bytes to a definition's type. It returns nil if that is
// not a type of numbers.
func converted(kind syntax.TypeKind, u uint64, size int) any {
	switch kind {
	case syntax.TypeHex, syntax.TypeSymbol:
		return hexText(u)
	case syntax.TypeChar:
		return char(u)
	case syntax.TypeBool:
		return u != 0
	case syntax.TypeUnsigned, syntax.TypeBitfield:
		return u
	case syntax.TypeSigned:
		return extended(u, size)
	}
	return nil
}

// elements prints an array of the definition's type.
func (v *Value) elements() literal {
	n := len(v.Data) / v.Type.Count
	parts := make([]string, 0, v.Type.Count)
	size := max(argument.ElementBits(v.Type)/8, 1)
	for i := 0; i < v.Type.Count && (i+1)*size <= len(v.Data) && n > 0; i++ {
		u := number(v.Data[i*size : (i+1)*size])
		x := converted(v.Type.Kind, u, size)
		if x == nil {
			x = u
		}
		parts = append(parts, show(x))
	}
	return literal("[" + strings.Join(parts, ", ") + "]")
}

// slice prints the elements of a slice that were fetched, and how many more there are.
func (v *Value) slice() literal {
	el, err := argument.Element(v.Variable)
	if err != nil || el == nil || len(v.Data) < 8 || v.Size <= 0 {
		return rawBytes(v.Data)
	}
	n, b := v.word(), v.Data[8:]
	var parts []string
	for i := 0; uint64(i) < n && (i+1)*v.Size <= min(len(b), v.MaxBytes); i++ {
		parts = append(parts, show(decode(el, b[i*v.Size:(i+1)*v.Size], 1)))
	}
	if more := n - uint64(len(parts)); more > 0 {
		parts = append(parts, fmt.Sprintf("... %d more", more))
	}
	return literal("[" + strings.Join(parts, ", ") + "]")
}

// bytes prints the bytes of elements that were fetched, and how many elements more there are.
func (v *Value) bytes() literal {
	if len(v.Data) < 8 || v.Size <= 0 {
		return rawBytes(v.Data)
	}
	n, b := v.word(), v.Data[8:]
	fetched := min(n, uint64(min(len(b), v.MaxBytes)/v.Size))
	text := hex.EncodeToString(b[:int(fetched)*v.Size])
	if more := n - fetched; more > 0 {
		text += fmt.Sprintf("... %d more", more)
	}
	return literal(text)
}

// maxFormatDepth bounds the nesting of structures, and maxFormat the bytes that are printed.
const (
	maxFormatDepth = 8
	maxFormat      = 4096
)

// object returns the bytes of an object of a type, which others may follow.
func object(t *types.Type, b []byte) []byte {
	if t.Size >= 0 && t.Size < int64(len(b)) {
		return b[:t.Size]
	}
	return b
}

// decode decodes an object of a type.
func decode(t *types.Type, b []byte, depth int) any {
	r, err := t.Resolve()
	if err != nil || depth > maxFormatDepth {
		return rawBytes(b)
	}
	obj := object(r, b)
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
		if x, ok := variant(r, obj, depth); ok {
			return x
		}
		all, err := r.Members()
		if err != nil {
			return rawBytes(obj)
		}
		return members(all, obj, depth, "{}")
	case types.Array:
		return array(r, obj, depth)
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

// members prints an object with its members: in braces with their names, or in parentheses
// without.
func members(all []types.Member, b []byte, depth int, brackets string) literal {
	var out strings.Builder
	out.WriteByte(brackets[0])
	for i, m := range all {
		if i > 0 {
			out.WriteString(", ")
		}
		if out.Len() > maxFormat {
			out.WriteString("...")
			break
		}
		if m.Name != "" && brackets == "{}" {
			out.WriteString(m.Name + "=")
		}
		at := int(m.BitOffset / 8)
		if at >= len(b) {
			out.WriteByte('?')
			continue
		}
		if m.BitSize == 0 {
			out.WriteString(show(decode(m.Type, b[at:], depth+1)))
			continue
		}
		// A bit-field of up to 64 bits is in at most 9 bytes.
		lead := m.BitOffset % 8
		v := number(b[at:min(at+8, len(b))]) >> lead
		if lead > 0 && at+8 < len(b) {
			v |= uint64(b[at+8]) << (64 - lead)
		}
		shift := 64 - min(m.BitSize, 64)
		if r, err := m.Type.Resolve(); err == nil && r.Signed {
			out.WriteString(strconv.FormatInt(int64(v<<shift)>>shift, 10))
		} else {
			out.WriteString(strconv.FormatUint(v<<shift>>shift, 10))
		}
	}
	out.WriteByte(brackets[1])
	return literal(out.String())
}

// array prints an array with its elements, or returns the text of an array of characters.
func array(t *types.Type, b []byte, depth int) any {
	el, n, err := t.Count()
	if err != nil {
		return rawBytes(b)
	}
	size, err := el.ByteSize()
	if err != nil || size <= 0 {
		return rawBytes(b)
	}
	if r, err := el.Resolve(); err == nil && r.Kind == types.Char && r.Name == "char" && printable(b) {
		return text(b)
	}
	var parts []string
	total := 0
	for i := int64(0); (n < 0 || i < n) && (i+1)*size <= int64(len(b)); i++ {
		parts = append(parts, show(decode(el, b[i*size:(i+1)*size], depth+1)))
		if total += len(parts[i]); total > maxFormat {
			parts = append(parts, "...")
			break
		}
	}
	return literal("[" + strings.Join(parts, ", ") + "]")
}
