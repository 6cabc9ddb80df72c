package syntax

import (
	"strconv"
	"strings"
)

// Specials are the names after "$", except those with a number.
var Specials = []struct {
	Name string
	Kind ExprKind
}{
	{"retval", KindRetval}, {"comm", KindComm}, {"stack", KindStackAddr}, {"frame", KindFrame}, {"params", KindParams}, {"vars", KindVars},
	{"caller", KindCaller}, {"duration", KindDuration},
}

// Mentions reports whether an expression, or a part of it, is of a kind.
func (e *Expr) Mentions(kind ExprKind) bool {
	if e == nil {
		return false
	}
	for i := range e.Path {
		if e.Path[i].IndexBy.Mentions(kind) || e.Path[i].To.Mentions(kind) {
			return true
		}
	}
	return e.Kind == kind || e.A.Mentions(kind) || e.B.Mentions(kind)
}

// HasPath reports whether a kind of expression can have a type with members and elements.
func (k ExprKind) HasPath() bool {
	switch k {
	case KindVariable, KindArgument, KindRetval, KindCast, KindContainerOf, KindUnary, KindBinary:
		return true
	}
	return false
}

// String returns text that parses to an equal expression.
func (e Expr) String() string {
	var b strings.Builder
	switch e.Kind {
	case KindVariable:
		b.WriteString(e.Name)
	case KindRegister:
		b.WriteString("%" + e.Name)
	case KindSymbol:
		b.WriteString("@" + e.Name)
		if n := int64(e.Number); n > 0 {
			b.WriteString("+0x" + strconv.FormatInt(n, 16))
		} else if n < 0 {
			b.WriteString("-0x" + strconv.FormatUint(-e.Number, 16))
		}
	case KindAddress:
		b.WriteString("@0x" + strconv.FormatUint(e.Number, 16))
	case KindImmediate:
		b.WriteString(`\` + strconv.FormatInt(int64(e.Number), 10))
	case KindNumber, KindFloat, KindWide:
		b.WriteString(e.Name)
	case KindTask:
		b.WriteString("$" + e.Name)
	case KindString, KindUnary, KindBinary, KindCast, KindSizeof, KindContainerOf, KindOffset:
		e.write(&b)
	case KindStack:
		b.WriteString("$stack" + strconv.FormatUint(e.Number, 10))
	case KindArgument:
		b.WriteString("$arg" + strconv.FormatUint(e.Number, 10))
	default:
		for _, v := range Specials {
			if v.Kind == e.Kind {
				b.WriteString("$" + v.Name)
			}
		}
	}
	for i := range e.Path {
		b.WriteString(e.Path[i].text())
	}
	return b.String()
}

func (p Step) text() string {
	switch p.Kind {
	case StepDot:
		return "." + p.Member
	case StepArrow:
		return "->" + p.Member
	}
	from, to := strconv.FormatInt(p.Index, 10), ""
	if p.IndexBy != nil {
		from = p.IndexBy.String()
	}
	if p.Kind == StepRange {
		to = ".." + p.To.String()
		if strings.Contains(from, "@") {
			to = " " + to // a symbol may have periods
		}
	}
	return "[" + from + to + "]"
}

// ArgName returns the name of an argument without a given name: that of its variable, or of the
// last member on its path.
func (e Expr) ArgName() string {
	for i := len(e.Path) - 1; i >= 0; i-- {
		if m := e.Path[i].Member; m != "" {
			return m
		}
	}
	switch e.Kind {
	case KindVariable, KindRegister, KindTask:
		return e.Name
	case KindUnary, KindCast:
		return e.A.ArgName()
	case KindBinary, KindNumber, KindFloat, KindWide, KindString:
		return "value"
	case KindSizeof:
		return "size"
	case KindContainerOf:
		return e.Type.Name[strings.LastIndexByte(e.Type.Name, ' ')+1:]
	case KindOffset:
		return "memory"
	case KindSymbol:
		return strings.Map(func(r rune) rune {
			if r == '.' || r == '$' {
				return '_'
			}
			return r
		}, e.Name)
	case KindAddress:
		return "memory"
	case KindImmediate:
		return "value"
	}
	return strings.TrimPrefix(Expr{Kind: e.Kind, Number: e.Number}.String(), "$")
}

// String returns the name as C writes it.
func (t TypeName) String() string {
	if t.Pointers == 0 {
		return t.Name
	}
	return t.Name + " " + strings.Repeat("*", t.Pointers)
}

// Constant returns the value of an expression that is a number with or without a sign.
func (e *Expr) Constant() (n uint64, is bool) {
	switch {
	case len(e.Path) > 0:
	case e.Kind == KindNumber:
		return e.Number, true
	case e.Kind == KindUnary && e.Name == "-" && e.A.Kind == KindNumber && e.A.Number <= 1<<63:
		return -e.A.Number, true
	}
	return 0, false
}

// write writes an expression of operators, without the path after it.
func (e *Expr) write(b *strings.Builder) {
	switch e.Kind {
	case KindString:
		b.WriteString(quote(e.Name))
	case KindSizeof:
		b.WriteString("sizeof(" + e.Type.String() + ")")
	case KindContainerOf:
		b.WriteString("container_of(" + e.A.String() + "," + e.Type.String() + "," + strings.TrimPrefix(Expr{Path: e.Member}.String(), ".") + ")")
	case KindOffset:
		sign, n := "+", e.Number
		if int64(n) < 0 {
			sign, n = "-", -n
		}
		if e.User {
			sign += "u"
		}
		b.WriteString(sign + strconv.FormatUint(n, 10) + "(" + e.A.String() + ")")
	default:
		text := ""
		switch e.Kind {
		case KindUnary:
			text = e.Name + e.A.operand()
		case KindCast:
			text = "(" + e.Type.String() + ")" + e.A.operand()
		default:
			text = e.A.operand()
			if e.A.Kind == KindSymbol && e.A.Number == 0 && (e.Name == "+" || e.Name == "-") {
				text = "(" + text + ")" // or what follows would be the symbol's offset
			}
			text += e.Name + e.B.operand()
		}
		if len(e.Path) > 0 {
			text = "(" + text + ")"
		}
		b.WriteString(text)
	}
}

// operand returns the text of an expression as an operand of another one.
func (e *Expr) operand() string {
	if len(e.Path) == 0 && (e.Kind == KindUnary || e.Kind == KindBinary || e.Kind == KindCast || e.Kind == KindOffset || e.Kind == KindImmediate) {
		return "(" + e.String() + ")"
	}
	return e.String()
}

// quote returns a text in quotes as stringText reads it. A semicolon would end an option.
func quote(text string) string {
	return strings.ReplaceAll(strconv.QuoteToASCII(text), ";", `\x3b`)
}

// Conjuncts returns the expressions that the operator && combines at the top: all of them must be
// true.
func (e *Expr) Conjuncts() []*Expr { return e.conjuncts(nil) }

func (e *Expr) conjuncts(to []*Expr) []*Expr {
	if e.Kind == KindBinary && e.Name == "&&" && len(e.Path) == 0 {
		return e.B.conjuncts(e.A.conjuncts(to))
	}
	return append(to, e)
}

// String returns the type's name, such as "u32", or "" for no type.
func (t TypeSpec) String() string {
	name := ""
	switch t.Kind {
	case TypeNone:
		return ""
	case TypeBitfield:
		return "b" + strconv.Itoa(t.Bits) + "@" + strconv.Itoa(t.Offset) + "/" + strconv.Itoa(t.Container)
	case TypeSymbol:
		name = "symbol"
	case TypeUnsigned, TypeSigned, TypeHex:
		for c, k := range NumberTypes {
			if k == t.Kind {
				name = string(c)
			}
		}
		if t.Bits != 0 {
			name += strconv.Itoa(t.Bits)
		}
	default:
		for n, k := range TypeNames {
			if k == t.Kind {
				name = n
			}
		}
	}
	if t.Count > 0 {
		name += "[" + strconv.Itoa(t.Count) + "]"
	}
	return name
}

// TypeNames are the types without a number.
var TypeNames = map[string]TypeKind{
	"char": TypeChar, "bool": TypeBool, "string": TypeString, "ustring": TypeUString, "hex": TypeBytes, "symbol": TypeSymbol, "symstr": TypeSymbol,
}

// NumberTypes are the types of numbers, by their letter.
var NumberTypes = map[byte]TypeKind{'u': TypeUnsigned, 's': TypeSigned, 'x': TypeHex}
