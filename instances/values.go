package instances

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// Value is what a program was given for one argument.
type Value struct {
	*Argument
	Lost bool   // its err bit was set: it was not fetched at this hit
	Data []byte // in the machine's byte order; 8 bytes for a number
}

// Values are the arguments of one hit at a site: err and the record as the program got
// them, or its three arguments one behind the other. The data is not copied.
func (p *Plan) Values(site int, err uint64, data []byte) []Value {
	s := &p.Sites[site]
	out := make([]Value, len(s.Args))
	for i := range s.Args {
		v := Value{Argument: &s.Args[i], Lost: err&(1<<i) != 0}
		from, to := 8*i, 8*i+8
		if p.Convention == prologue.Record && s.Instance >= 0 {
			f := p.Instances[s.Instance].Prologue.Layout.Fields[i]
			from, to = f.Offset, f.Offset+f.Size
			if v.Kind == prologue.Object {
				to = min(to, from+v.Size) // without what fills it up
			}
		}
		v.Data = data[min(from, len(data)):min(to, len(data))]
		out[i] = v
	}
	return out
}

// Uint is a number as the program finds it: extended to 64 bits.
func (v *Value) Uint() uint64 {
	if len(v.Data) < 8 {
		return 0
	}
	return binary.NativeEndian.Uint64(v.Data)
}

// String prints the value as its type says: a number, a character, a quoted string,
// a structure with its members. A value that was not fetched is "?".
func (v *Value) String() string {
	if v.Lost {
		return "?"
	}
	switch v.Type.Kind {
	case probe.Hex, probe.SymbolOf:
		if v.Type.Count == 0 {
			return "0x" + strconv.FormatUint(v.Uint(), 16)
		}
	case probe.Char:
		if v.Type.Count == 0 {
			return quoteChar(byte(v.Uint()))
		}
	case probe.Bool:
		if v.Type.Count == 0 {
			return strconv.FormatBool(v.Uint() != 0)
		}
	case probe.Unsigned, probe.Bitfield:
		if v.Type.Count == 0 {
			return strconv.FormatUint(v.Uint(), 10)
		}
	case probe.Signed:
		if v.Type.Count == 0 {
			return strconv.FormatInt(int64(v.Uint()), 10)
		}
	case probe.String, probe.UString:
		return quote(v.Data)
	}
	if v.Type.Count > 0 {
		return v.elements()
	}
	if v.Kind == prologue.Comm {
		return quote(v.Data)
	}
	return format(v.Variable.Type, v.Data, 0)
}

// elements prints an array of the definition's type.
func (v *Value) elements() string {
	n := len(v.Data) / v.Type.Count
	parts := make([]string, 0, v.Type.Count)
	size := max(elementBits(v.Type)/8, 1)
	for i := 0; i < v.Type.Count && (i+1)*size <= len(v.Data) && n > 0; i++ {
		u := number(v.Data[i*size : (i+1)*size])
		switch v.Type.Kind {
		case probe.Hex, probe.SymbolOf:
			parts = append(parts, "0x"+strconv.FormatUint(u, 16))
		case probe.Signed:
			parts = append(parts, strconv.FormatInt(extended(u, size), 10))
		case probe.Char:
			parts = append(parts, quoteChar(byte(u)))
		case probe.Bool:
			parts = append(parts, strconv.FormatBool(u != 0))
		default:
			parts = append(parts, strconv.FormatUint(u, 10))
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// number is what up to 8 bytes are in the machine's order.
func number(b []byte) uint64 {
	var all [8]byte
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		copy(all[:], b)
	} else {
		copy(all[8-min(len(b), 8):], b)
	}
	return binary.NativeEndian.Uint64(all[:])
}

// extended reads the low size bytes of a number as signed.
func extended(u uint64, size int) int64 {
	if size >= 8 {
		return int64(u)
	}
	shift := 64 - 8*size
	return int64(u<<shift) >> shift
}

// maxFormatDepth bounds structures in structures, and maxFormat what is printed.
const (
	maxFormatDepth = 8
	maxFormat      = 4096
)

// format prints an object of a type.
func format(t *dwarfloc.Type, b []byte, depth int) string {
	r, err := t.Resolve()
	if err != nil || depth > maxFormatDepth {
		return fmt.Sprintf("%x", b)
	}
	size := int(r.Size)
	if size < 0 || size > len(b) {
		size = len(b)
	}
	obj := b[:size]
	switch r.Kind {
	case dwarfloc.TypePointer:
		return "0x" + strconv.FormatUint(number(obj), 16)
	case dwarfloc.TypeBool:
		return strconv.FormatBool(number(obj) != 0)
	case dwarfloc.TypeChar:
		// "unsigned char" and "signed char" are C's small numbers.
		if c := byte(number(obj)); r.Name == "char" && c >= ' ' && c < 0x7f {
			return quoteChar(c)
		}
	case dwarfloc.TypeEnum:
		v := extended(number(obj), size)
		if !r.Signed {
			v = int64(number(obj))
		}
		if name, err := r.Enumerator(v); err == nil && name != "" {
			return name
		}
	case dwarfloc.TypeStruct, dwarfloc.TypeUnion, dwarfloc.TypeClass:
		return formatMembers(r, obj, depth)
	case dwarfloc.TypeArray:
		return formatElements(r, obj, depth)
	case dwarfloc.TypeInt:
	default:
		return fmt.Sprintf("%x", obj)
	}
	if size > 8 {
		return fmt.Sprintf("%x", obj)
	}
	if r.Signed {
		return strconv.FormatInt(extended(number(obj), size), 10)
	}
	return strconv.FormatUint(number(obj), 10)
}

func formatMembers(t *dwarfloc.Type, b []byte, depth int) string {
	members, err := t.Members()
	if err != nil {
		return fmt.Sprintf("%x", b)
	}
	var out strings.Builder
	out.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			out.WriteString(", ")
		}
		if out.Len() > maxFormat {
			out.WriteString("...")
			break
		}
		if m.Name != "" {
			out.WriteString(m.Name + "=")
		}
		at := int(m.BitOffset / 8)
		if at >= len(b) {
			out.WriteByte('?')
			continue
		}
		if m.BitSize == 0 {
			out.WriteString(format(m.Type, b[at:], depth+1))
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
	out.WriteByte('}')
	return out.String()
}

func formatElements(t *dwarfloc.Type, b []byte, depth int) string {
	el, n, err := t.Count()
	if err != nil {
		return fmt.Sprintf("%x", b)
	}
	size, err := el.ByteSize()
	if err != nil || size <= 0 {
		return fmt.Sprintf("%x", b)
	}
	if r, err := el.Resolve(); err == nil && r.Kind == dwarfloc.TypeChar && r.Name == "char" && printable(b) {
		return quote(b)
	}
	var parts []string
	total := 0
	for i := int64(0); (n < 0 || i < n) && (i+1)*size <= int64(len(b)); i++ {
		parts = append(parts, format(el, b[i*size:(i+1)*size], depth+1))
		if total += len(parts[i]); total > maxFormat {
			parts = append(parts, "...")
			break
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// printable reports whether an array of characters is text, ended by NUL or not.
func printable(b []byte) bool {
	for i, c := range b {
		if c == 0 {
			return i > 0
		}
		if c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}

// quote prints bytes up to the first NUL.
func quote(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return strconv.Quote(s)
}

func quoteChar(c byte) string {
	if c < 0x80 {
		return strconv.QuoteRune(rune(c))
	}
	return strconv.Itoa(int(c))
}
