package plan

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// Values that have others inside are decoded to these.
type (
	object struct {
		members []member
		tuple   bool // its members have no names
	}
	member struct {
		name  string // "" for what C calls anonymous, and for a class that is inherited
		value any    // nil if the bytes end before
	}
	// list is an array, or what a slice refers to.
	list struct {
		elements []any
		more     uint64 // so many elements of a slice were not fetched
		cut      bool   // an array has more
	}
	// variant is one of an enum of Rust.
	variant struct {
		name    string
		payload any // or nil
	}
)

// maxShown is how many bytes of an object's, or a list's, members are printed.
const maxShown = 4096

// String prints an object with its members: in braces with their names, or in parentheses without.
func (o *object) String() string {
	var b strings.Builder
	open, end := "{", "}"
	if o.tuple {
		open, end = "(", ")"
	}
	b.WriteString(open)
	for i, m := range o.members {
		if i > 0 {
			b.WriteString(", ")
		}
		if b.Len() > maxShown {
			b.WriteString("...")
			break
		}
		if m.name != "" && !o.tuple {
			b.WriteString(m.name + "=")
		}
		b.WriteString(show(m.value))
	}
	return b.String() + end
}

// String prints a list as [1, 2, 3, ... 4 more].
func (l *list) String() string {
	var b strings.Builder
	for i, x := range l.elements {
		if i > 0 {
			b.WriteString(", ")
		}
		if b.Len() > maxShown {
			b.WriteString("...")
			break
		}
		b.WriteString(show(x))
	}
	switch {
	case l.more > 0 && len(l.elements) > 0:
		b.WriteString(", ")
		fallthrough
	case l.more > 0:
		b.WriteString("... " + strconv.FormatUint(l.more, 10) + " more")
	case l.cut:
		b.WriteString(", ...")
	}
	return "[" + b.String() + "]"
}

// String prints a variant as Rust writes it: None, Some(5), Card{number=4711, month=6}.
func (v *variant) String() string {
	if v.payload == nil {
		return v.name
	}
	return v.name + show(v.payload)
}

// appendJSON appends a decoded value as JSON. Members without a name are those of the object they are in; a variant is its name, or an
// object with its name and what it has; of a slice with more elements than were fetched the last element is {"more":N}.
func appendJSON(to []byte, x any) []byte {
	switch x := x.(type) {
	case nil:
		return append(to, "null"...)
	case *object:
		if x.tuple {
			return appendTuple(to, x)
		}
		return append(appendMembers(append(to, '{'), x, true), '}')
	case *list:
		to = append(to, '[')
		for i, e := range x.elements {
			if i > 0 {
				to = append(to, ',')
			}
			to = appendJSON(to, e)
		}
		if x.more > 0 {
			if len(x.elements) > 0 {
				to = append(to, ',')
			}
			to = append(strconv.AppendUint(append(to, `{"more":`...), x.more, 10), '}')
		}
		return append(to, ']')
	case *variant:
		if x.payload == nil {
			return appendJSON(to, x.name)
		}
		to = append(appendJSON(append(to, '{'), x.name), ':')
		return append(appendJSON(to, x.payload), '}')
	case char:
		if x >= 0x80 {
			return strconv.AppendUint(to, uint64(x), 10)
		}
		return appendJSON(to, string(rune(x)))
	case letter:
		return appendJSON(to, string(rune(x)))
	case literal:
		if x == "?" {
			return append(to, "null"...)
		}
		return appendJSON(to, string(x))
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return appendJSON(to, show(x))
		}
	}
	b, err := json.Marshal(x)
	if err != nil {
		return append(to, "null"...) // of int64, uint64, float64, bool and string none is an error
	}
	return append(to, b...)
}

// appendMembers appends the members of an object, and reports nothing of those without names but their own members.
func appendMembers(to []byte, o *object, first bool) []byte {
	for _, m := range o.members {
		inner, is := m.value.(*object)
		if m.name == "" && is {
			n := len(to)
			to = appendMembers(to, inner, first)
			first = first && len(to) == n
			continue
		}
		if !first {
			to = append(to, ',')
		}
		first = false
		to = append(appendJSON(to, m.name), ':')
		to = appendJSON(to, m.value)
	}
	return to
}

// appendTuple appends the members of a tuple: an array, or the one that it has.
func appendTuple(to []byte, o *object) []byte {
	if len(o.members) == 1 {
		return appendJSON(to, o.members[0].value)
	}
	l := list{elements: make([]any, len(o.members))}
	for i, m := range o.members {
		l.elements[i] = m.value
	}
	return appendJSON(to, &l)
}
