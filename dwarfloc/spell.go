package dwarfloc

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
	text := ""
	err := t.guard(func() error {
		prefix, suffix := t.spell(0)
		text = prefix + suffix
		return nil
	})
	if err != nil {
		return "?"
	}
	return text
}

// spell returns what a declaration with this type has before and after the declared
// name.
func (t *Type) spell(depth int) (prefix, suffix string) {
	if depth > maxTypeDepth {
		return "...", ""
	}
	elem := func() (*Type, string, string) {
		el, err := t.Elem()
		if err != nil {
			return voidType, "?", ""
		}
		p, s := el.spell(depth + 1)
		return el, p, s
	}
	switch t.Kind {
	case TypeStruct, TypeUnion, TypeClass, TypeEnum:
		word := recordWords[t.Kind]
		switch {
		case t.Name == "" && t.elem.Form == dw.FormRefSig8:
			_, p, s := elem() // only a declaration
			return p, s
		case t.Name == "":
			return word + " {...}", ""
		}
		if t.plain || t.u != nil && !dw.IsC(t.u.language()) {
			return t.spelled(), ""
		}
		return word + " " + t.spelled(), ""
	case TypePointer:
		el, p, s := elem()
		mark := t.mark()
		if el.Kind == TypeFunc || el.Kind == TypeArray {
			return p + " (" + mark, ")" + s
		}
		if p[len(p)-1] != '*' && p[len(p)-1] != '(' {
			p += " "
		}
		return p + mark, s
	case TypeQualified:
		word := qualifierWords[t.tag]
		el, p, s := elem()
		if el.Kind == TypePointer {
			return p + " " + word, s
		}
		return word + " " + p, s
	case TypeFunc:
		_, p, s := elem()
		return p, "()" + s
	case TypeMemberPointer:
		if t.b != nil {
			return t.spelled(), "" // as a pack has it
		}
		el, p, s := elem()
		if of := t.containing() + "::*"; el.Kind == TypeFunc {
			return p + " (" + of, ")" + s
		} else {
			return p + " " + of, s
		}
	case TypeArray:
		_, p, s := elem()
		dims := ""
		if t.b != nil {
			dims = dimension(t.count)
		} else if e, err := t.u.Entry(t.off); err == nil {
			n, _ := t.dims(e)
			for _, d := range n {
				dims += dimension(d)
			}
		}
		return p, dims + s
	}
	if t.Name != "" {
		return t.spelled(), ""
	}
	if t.Kind == TypeVoid {
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

// containing returns the name of the class of a pointer to a member.
func (t *Type) containing() string {
	if t.b != nil {
		return t.Name
	}
	e, err := t.u.Entry(t.off)
	if err != nil {
		return "?"
	}
	var class dw.Value
	if err := e.Attrs(func(a dw.Attr, v dw.Value) {
		if a == dw.AttrContainingType {
			class = v
		}
	}); err != nil {
		return "?"
	}
	c, err := t.u.typeOf(class)
	if err != nil {
		return "?"
	}
	return c.Name
}

// Word returns what the type itself adds to a spelling: "struct", "union", "class" or "enum", or "" in
// languages that have none of these before a name; "*", "&" or "&&" for what points; "const", "volatile",
// "restrict" or "_Atomic" for what is qualified; "" for others.
func (t *Type) Word() string {
	switch t.Kind {
	case TypeStruct, TypeUnion, TypeClass, TypeEnum:
		if t.Name != "" && t.u != nil && !dw.IsC(t.u.language()) {
			return ""
		}
		return recordWords[t.Kind]
	case TypePointer:
		return t.mark()
	case TypeQualified:
		return qualifierWords[t.tag]
	}
	return ""
}

var recordWords = map[TypeKind]string{TypeStruct: "struct", TypeUnion: "union", TypeClass: "class", TypeEnum: "enum"}

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
