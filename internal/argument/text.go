package argument

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/compute"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/prologue"
	"github.com/bpfprologue/bpfprologue/types"
)

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

// counted makes the argument the string that a structure or class is, in languages whose
// strings have a length. always is set if the definition asks for a string; else only types
// that are nothing but strings count. ok is false for other types.
func (a *argument) counted(t *types.Type, always bool) (ok bool, err error) {
	if !isRecord(t) {
		return false, nil
	}
	for i := range texts {
		x := &texts[i]
		if !always && !slices.Contains(x.types, unqualified(t.Name)) {
			continue
		}
		chars, err := compute.Follow(a.variable, steps(x.chars))
		if err != nil {
			return false, err
		}
		length, err := compute.Follow(a.variable, steps(x.length))
		if err != nil {
			return false, err
		}
		if chars.Wrong != nil || length.Wrong != nil {
			continue
		}
		if is, err := pointsToChars(chars); err != nil || !is {
			return false, err
		}
		if is, err := isLength(length); err != nil || !is {
			return false, err
		}
		return true, a.setCounted(chars, length)
	}
	return false, nil
}

// countedOrPointed is counted for what the definition calls a string, or a pointer to one.
func (a *argument) countedOrPointed(t *types.Type) (ok bool, err error) {
	if t.Kind != types.Pointer {
		return a.counted(t, true)
	}
	el, err := element(t)
	if err != nil || !isRecord(el) {
		return false, err
	}
	object, err := compute.Follow(a.variable, []syntax.Step{{Kind: syntax.StepIndex}})
	if err != nil || object.Wrong != nil {
		return false, err
	}
	pointer := a.variable
	a.variable = object
	if ok, err = a.counted(el, true); !ok || err != nil {
		a.variable = pointer
	}
	return ok, err
}

func steps(members []string) []syntax.Step {
	out := make([]syntax.Step, len(members))
	for i, m := range members {
		out[i] = syntax.Step{Kind: syntax.StepDot, Member: m}
	}
	return out
}

// pointsToChars reports whether a variable is a pointer to characters.
func pointsToChars(v *dwarfloc.Variable) (bool, error) {
	t, err := v.Type.Resolve()
	if err != nil || t.Kind != types.Pointer {
		return false, err
	}
	el, err := element(t)
	return err == nil && character(el), err
}

// isLength reports whether a variable is as wide as the lengths that prologues read.
func isLength(v *dwarfloc.Variable) (bool, error) {
	t, err := v.Type.Resolve()
	return err == nil && t.Kind == types.Int && t.Size == 8, err
}

// setCounted makes the argument the string at an address, with a length.
func (a *argument) setCounted(chars, length *dwarfloc.Variable) error {
	if a.Kind != prologue.KindUserString {
		a.Kind = prologue.KindString
	}
	a.Size, a.Signed = 0, false
	whole := a.variable
	switch {
	case !length.Located():
		a.lose(loc.Reason{Code: length.Reason.Code, Detail: "the string's length is not located"})
		return nil
	case chars.Loc.Kind == loc.KindImplicitPointer:
		a.Reason = loc.Reason{}
		a.variable = chars
		err := a.followObject()
		a.variable = whole
		if n := length.Loc; err == nil && n.Kind == loc.KindConstant && a.Loc.Kind == loc.KindBytes {
			a.Loc.Bytes = a.Loc.Bytes[:min(uint64(len(a.Loc.Bytes)), n.Expr.K)]
			a.Size = len(a.Loc.Bytes)
			return nil
		}
		a.lose(chars.Reason)
		return err
	case !chars.Located():
		a.lose(chars.Reason)
		return nil
	}
	a.Reason = loc.Reason{}
	a.variable = chars
	a.follow()
	if a.Loc.Kind == loc.KindMemory {
		a.Length = length.Loc
		whole = reached(whole)
	}
	a.variable = whole
	return nil
}
