package types

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/dw"
)

// maxSpelled is how many bytes of a name are in a type's spelling: every type that is made of another
// has its name, and the longest names that compilers make of templates are not read by anybody.
const maxSpelled = 4096

// spelled returns the name as it is in spellings.
func (t *Type) spelled() string {
	if len(t.Name) <= maxSpelled {
		return t.Name
	}
	return strings.ToValidUTF8(t.Name[:maxSpelled], "") + "..."
}

// String spells a type as C does: "struct page *", "const char *", "int (*)()". Of a name of more than
// 4,096 bytes it has the beginning. It is "?" if the type cannot be read any more.
func (t *Type) String() string {
	if known := t.text.Load(); known != nil {
		return *known
	}
	text := ""
	err := t.guard(func() error {
		prefix, suffix := t.spell(0)
		text = prefix + suffix
		return nil
	})
	if err != nil {
		return "?"
	}
	t.text.Store(&text)
	return text
}

// spell returns what a declaration with this type has before and after the declared
// name.
func (t *Type) spell(depth int) (prefix, suffix string) {
	if depth > maxDepth {
		return "...", ""
	}
	elem := func() (*Type, string, string) {
		el, err := t.Elem()
		if err != nil {
			return VoidType, "?", ""
		}
		p, s := el.spell(depth + 1)
		return el, p, s
	}
	switch t.Kind {
	case Struct, Union, Class, Enum:
		word := recordWords[t.Kind]
		switch {
		case t.Name == "" && t.elemForm == dw.FormRefSig8:
			_, p, s := elem() // only a declaration
			return p, s
		case t.Name == "":
			return word + " {...}", ""
		}
		if t.src != nil && !t.src.tagged(t) {
			return t.spelled(), ""
		}
		return word + " " + t.spelled(), ""
	case Pointer:
		el, p, s := elem()
		mark := t.mark()
		if el.Kind == Func || el.Kind == Array {
			return p + " (" + mark, ")" + s
		}
		if p[len(p)-1] != '*' && p[len(p)-1] != '(' {
			p += " "
		}
		return p + mark, s
	case Qualified:
		word := qualifierWords[t.tag]
		el, p, s := elem()
		if el.Kind == Pointer {
			return p + " " + word, s
		}
		return word + " " + p, s
	case Func:
		_, p, s := elem()
		return p, "()" + s
	case MemberPointer:
		return t.src.memberPointer(t, depth)
	case Array:
		_, p, s := elem()
		dims := ""
		n, _ := t.src.dimensions(t)
		for _, d := range n {
			dims += dimension(d)
		}
		return p, dims + s
	}
	if t.Name != "" {
		return t.spelled(), ""
	}
	if t.Kind == Void {
		return "void", ""
	}
	return fmt.Sprintf("type %#x", uint32(t.tag)), ""
}

// dimension spells a dimension of an array.
func dimension(n int64) string {
	if n < 0 {
		return "[]"
	}
	return "[" + strconv.FormatInt(n, 10) + "]"
}

// Word returns what the type itself adds to a spelling: "struct", "union", "class" or "enum", or "" in
// languages that have none of these before a name; "*", "&" or "&&" for what points; "const", "volatile",
// "restrict" or "_Atomic" for what is qualified; "" for others.
func (t *Type) Word() string {
	switch t.Kind {
	case Struct, Union, Class, Enum:
		if t.Name != "" && t.src != nil && !t.src.tagged(t) {
			return ""
		}
		return recordWords[t.Kind]
	case Pointer:
		return t.mark()
	case Qualified:
		return qualifierWords[t.tag]
	}
	return ""
}

var recordWords = map[Kind]string{Struct: "struct", Union: "union", Class: "class", Enum: "enum"}

var qualifierWords = map[dw.Tag]string{dw.TagConstType: "const", dw.TagVolatileType: "volatile", dw.TagRestrictType: "restrict", dw.TagAtomicType: "_Atomic"}

// mark is what a pointer or a C++ reference is spelled with.
func (t *Type) mark() string {
	switch t.tag {
	case dw.TagReferenceType:
		return "&"
	case dw.TagRvalueRefType:
		return "&&"
	}
	return "*"
}
