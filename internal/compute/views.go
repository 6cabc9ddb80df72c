package compute

import (
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// Structures of languages and their libraries that stand for what they refer to: texts with a length, and elements in a row.

// text is where a string type of a language has its characters and their number.
type text struct {
	types  []string // names of types that are strings; others need the definition to say so
	chars  []string // members that lead to the address of the characters
	length []string
}

// texts are the strings of Go (cmd/link, dwarf.go), Rust (library/alloc and the compiler's
// debug information of fat pointers), and C++ (libstdc++, bits/basic_string.h, string_view).
var texts = []text{
	{[]string{"string"}, []string{"str"}, []string{"len"}},
	{[]string{"&str", "&mut str"}, []string{"data_ptr"}, []string{"length"}},
	{[]string{"String"}, []string{"vec", "buf", "inner", "ptr", "pointer", "pointer"}, []string{"vec", "len"}},
	{[]string{"String"}, []string{"vec", "buf", "ptr", "pointer", "pointer"}, []string{"vec", "len"}},
	{[]string{"basic_string<char, std::char_traits<char>, std::allocator<char> >", "basic_string<char>"}, []string{"_M_dataplus", "_M_p"}, []string{"_M_string_length"}},
	{[]string{"basic_string_view<char, std::char_traits<char> >", "basic_string_view<char>"}, []string{"_M_str"}, []string{"_M_len"}},
	{nil, []string{"array"}, []string{"len"}},                                     // a slice of Go
	{nil, []string{"buf", "inner", "ptr", "pointer", "pointer"}, []string{"len"}}, // Vec
	{nil, []string{"buf", "ptr", "pointer", "pointer"}, []string{"len"}},          // Vec before Rust 1.82
	{[]string{"Box<str>", "Box<str, alloc::alloc::Global>"}, []string{"data_ptr"}, []string{"length"}},
}

// TextOf returns the address of the characters of a variable of type t that is a string with a length, and their number; nil of other
// types. always is set if the definition asks for a string; else only types that are nothing but strings count.
func TextOf(v *dwarfloc.Variable, t *types.Type, always bool) (chars, length *dwarfloc.Variable, err error) {
	if !isRecord(t) {
		return nil, nil, nil
	}
	name, err := viewName(t)
	if err != nil {
		return nil, nil, err
	}
	for i := range texts {
		x := &texts[i]
		if !always && !slices.Contains(x.types, name) {
			continue
		}
		if chars, err = Follow(v, steps(x.chars)); err != nil {
			return nil, nil, err
		}
		if length, err = Follow(v, steps(x.length)); err != nil {
			return nil, nil, err
		}
		if chars.Wrong != nil || length.Wrong != nil {
			continue
		}
		if is, err := pointsToChars(chars); err != nil || !is {
			return nil, nil, err
		}
		if is, err := isLength(length); err != nil || !is {
			return nil, nil, err
		}
		return chars, length, nil
	}
	return nil, nil, nil
}

// sliceTypes are the types of Go, Rust and C++ that refer to elements in a row: a prefix of their
// names, the members that lead to the address of the first one, and to their number, or to where they end.
var sliceTypes = []struct {
	prefix             string
	first, length, end []string
}{
	{"[]", []string{"array"}, []string{"len"}, nil},
	{"&[", []string{"data_ptr"}, []string{"length"}, nil},
	{"&mut [", []string{"data_ptr"}, []string{"length"}, nil},
	{"Box<[", []string{"data_ptr"}, []string{"length"}, nil},
	{"Vec<", []string{"buf", "inner", "ptr", "pointer", "pointer"}, []string{"len"}, nil},
	{"Vec<", []string{"buf", "ptr", "pointer", "pointer"}, []string{"len"}, nil},
	{"vector<", []string{"_M_impl", "_M_start"}, nil, []string{"_M_impl", "_M_finish"}}, // libstdc++, bits/stl_vector.h
}

// SliceOf returns the pointer to the elements of a variable of type t that is a slice, their number and their type; el is nil
// of other types. Since Rust 1.82 a Vec has a pointer to u8; its parameter T is the type of
// the elements.
func SliceOf(v *dwarfloc.Variable, t *types.Type) (first, length *dwarfloc.Variable, el *types.Type, err error) {
	if !isRecord(t) {
		return nil, nil, nil, nil
	}
	name, err := viewName(t)
	if err != nil {
		return nil, nil, nil, err
	}
	for i := range sliceTypes {
		x := &sliceTypes[i]
		if !strings.HasPrefix(name, x.prefix) {
			continue
		}
		if first, err = Follow(v, steps(x.first)); err != nil {
			return nil, nil, nil, err
		}
		if length, err = Follow(v, steps(append(x.length, x.end...))); err != nil {
			return nil, nil, nil, err
		}
		if first.Wrong != nil || length.Wrong != nil {
			continue
		}
		p, err := first.Type.Resolve()
		if err != nil || p.Kind != types.Pointer {
			return nil, nil, nil, err
		}
		if el, err = p.Elem(); err != nil {
			return nil, nil, nil, err
		}
		if x.prefix == "Vec<" {
			if el, err = t.Parameter("T"); err != nil {
				return nil, nil, nil, err
			}
		}
		if x.end != nil {
			if length, err = distance(v.Site, first, length, el); err != nil || length == nil {
				return nil, nil, nil, err
			}
		}
		if is, err := isLength(length); err != nil || !is {
			return nil, nil, nil, err
		}
		return first, length, el, nil
	}
	return nil, nil, nil, nil
}

// distance returns how many elements are between two addresses, or nil if they have no size.
func distance(s *dwarfloc.Site, from, to *dwarfloc.Variable, el *types.Type) (*dwarfloc.Variable, error) {
	size, err := el.ByteSize()
	if err != nil || size <= 0 {
		return nil, err
	}
	out := *to
	out.Type, out.Loc = types.WordType, loc.Location{}
	ev := builder(s)
	var at [2]*loc.Expr
	for i, v := range []*dwarfloc.Variable{from, to} {
		if out.Reason = v.Reason; v.Located() {
			at[i], out.Reason = ev.Bits(&v.Loc, 0, 8*uint64(s.Image.Arch().WordSize))
		}
		if out.Reason.Code != reasons.None {
			return &out, nil
		}
	}
	out.Loc = ev.Value(ev.Binary(ops.UDiv, ev.Binary(ops.Sub, at[1], at[0]), ev.Const(uint64(size))))
	out.Loc.Rule = to.Loc.Rule
	return &out, nil
}

func steps(members []string) []syntax.Step {
	out := make([]syntax.Step, len(members))
	for i, m := range members {
		out[i] = syntax.Step{Kind: syntax.StepDot, Member: m}
	}
	return out
}

func isRecord(t *types.Type) bool {
	return t.Kind == types.Struct || t.Kind == types.Class
}

// pointsToChars reports whether a variable is a pointer to characters.
func pointsToChars(v *dwarfloc.Variable) (bool, error) {
	t, err := v.Type.Resolve()
	if err != nil || t.Kind != types.Pointer {
		return false, err
	}
	el, err := t.Elem()
	if err != nil {
		return false, err
	}
	el, err = el.Resolve()
	return err == nil && el.Size == 1 && (el.Kind == types.Char || el.Kind == types.Int), err
}

// isLength reports whether a variable is as wide as the lengths that prologues read.
func isLength(v *dwarfloc.Variable) (bool, error) {
	t, err := v.Type.Resolve()
	return err == nil && t.Kind == types.Int && t.Size == 8, err
}

// viewName returns the name by which the tables know a type: that of what it is declared as, for a string or a slice that a Go program declares
// (net.IP); else its own, without its modules. The name of a declared type has its package's and a dot; its members are those of the other.
func viewName(t *types.Type) (string, error) {
	if name, _, _ := strings.Cut(t.Name, "["); strings.Contains(name, ".") && !strings.Contains(name, "::") {
		switch members, err := t.MemberNames(); {
		case err != nil:
			return "", err
		case slices.Equal(members, []string{"str", "len"}):
			return "string", nil
		case slices.Equal(members, []string{"array", "len", "cap"}):
			return "[]", nil
		}
	}
	return unqualified(t.Name), nil
}

// unqualified returns the name of a type without its modules: "Box<[u16]>" for
// "alloc::boxed::Box<[u16]>".
func unqualified(name string) string {
	end := strings.IndexAny(name, "<[&")
	if end < 0 {
		end = len(name)
	}
	if i := strings.LastIndex(name[:end], "::"); i >= 0 {
		return name[i+2:]
	}
	return name
}
