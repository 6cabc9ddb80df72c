package plan

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/argument"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// Value is the value of one argument at one hit.
type Value struct {
	*Argument
	Lost bool   // it was not fetched at this hit: its err bit was set, and not for a doubt (Argument.Doubt), nor because it is NULL
	Data []byte // in the machine's byte order; 8 bytes for a number

	null  bool
	parts map[string]any // decoded, by their paths: see Options.Parts
	path  string         // of a part itself
}

// Values returns the arguments of one hit at a site, which is an index in Plan.Sites. err and
// data are what the program got: data is the record, or its up to three arguments, 8 bytes
// each, one after the other. The values refer to data.
func (p *Plan) Values(site int, err uint64, data []byte) []Value {
	s := &p.Sites[site]
	out := make([]Value, len(s.Args))
	lost := err &^ p.doubtful(site, err, data)
	value := func(a *Argument, i int) Value {
		v := Value{Argument: a, Lost: lost&(1<<i) != 0}
		from, to := 8*i, 8*i+8
		if p.Convention == prologue.ConventionRecord && s.Instance >= 0 {
			f := p.Instances[s.Instance].Prologue.Layout.Fields[i]
			from, to = f.Offset, f.Offset+f.Size
			if v.Kind == prologue.KindObject {
				to = min(to, from+v.Size) // without its padding
			}
		}
		v.Data = data[min(from, len(data)):min(to, len(data))]
		return v
	}
	for i := range s.Args {
		out[i] = value(&s.Args[i], i)
	}
	for i := len(s.parts) - 1; i >= 0; i-- { // elements are behind what has them
		part := &s.parts[i]
		v, of := value(&part.Argument, len(s.Args)+i), &out[part.of]
		switch {
		case v.Lost && (part.path == "" || !part.Fetched()):
			continue // an object has the bytes of the part itself
		case part.path == "":
			of.null = of.Lost && v.word() == 0
			of.Lost = of.Lost && !of.null
			continue
		}
		if of.parts == nil {
			of.parts = make(map[string]any)
		}
		if of.parts[part.path] = literal("?"); !v.Lost {
			v.parts, v.path = of.parts, part.path
			of.parts[part.path] = v.decode()
		}
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
	text := "NULL"
	if !v.null {
		text = show(v.decode())
	}
	if v.Doubt() != reasons.None {
		return "~" + text
	}
	return text
}

// Any returns the value as a Go value: an int64, uint64 or float64 for a number, a bool, or a
// string. Characters and strings are returned without quotes; addresses,
// and numbers that these types do not hold, as String prints them. Structures, arrays and slices are
// a json.RawMessage. It is nil for a value that was not fetched, and for NULL.
func (v Value) Any() any {
	if v.Lost || v.null {
		return nil
	}
	switch x := v.decode().(type) {
	case *object, *list, *variant:
		return json.RawMessage(appendJSON(nil, x))
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
	d := decoder{parts: v.parts, left: maxNodes}
	return d.decode(v.Variable.Type, v.Data, "", 0)
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

// elements decodes an array of the definition's type.
func (v *Value) elements() *list {
	n := len(v.Data) / v.Type.Count
	out := new(list)
	size := max(argument.ElementBits(v.Type)/8, 1)
	for i := 0; i < v.Type.Count && (i+1)*size <= len(v.Data) && n > 0; i++ {
		u := number(v.Data[i*size : (i+1)*size])
		x := converted(v.Type.Kind, u, size)
		if x == nil {
			x = u
		}
		out.elements = append(out.elements, x)
	}
	return out
}

// slice decodes the elements of a slice that were fetched, and how many more there are.
func (v *Value) slice() any {
	el, err := argument.Element(v.Variable)
	if err != nil || el == nil || len(v.Data) < 8 || v.Size <= 0 {
		return rawBytes(v.Data)
	}
	n, b := v.word(), v.Data[8:]
	out, d := new(list), decoder{parts: v.parts, left: maxNodes}
	for i := 0; uint64(i) < n && (i+1)*v.Size <= min(len(b), v.MaxBytes); i++ {
		out.elements = append(out.elements, d.decode(el, b[i*v.Size:(i+1)*v.Size], v.path+"["+strconv.Itoa(i)+"]", 1))
	}
	out.more = n - uint64(len(out.elements))
	return out
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
