package probe

import (
	"slices"
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/syntax"
)

// levels are the binary operators, those that bind least first, as in C. "~" compares a string with a
// pattern, as in the kernel's filters of events.
var levels = [][]string{
	{"||"}, {"&&"}, {"|"}, {"^"}, {"&"}, {"==", "!=", "~"}, {"<=", ">=", "<", ">"}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "%"},
}

// maxDepth bounds how deep expressions are nested.
const maxDepth = 64

// bare reports whether white space ends the expression.
func (s *scanner) bare() bool { return s.nested == 0 && s.depth <= 1 }

// binary parses an expression of operators of a level or above. Outside of parentheses white space
// ends it.
func (s *scanner) binary(level int, expecting string) (syntax.Expr, error) {
	if level == 0 {
		if s.depth++; s.depth > maxDepth {
			return syntax.Expr{}, s.errorf(s.pos, "expected at most %d expressions in each other", maxDepth)
		}
		defer func() { s.depth-- }()
	}
	if level == len(levels) {
		return s.unary(expecting)
	}
	if s.nested > 0 {
		s.skipSpace()
	}
	at := s.pos
	e, err := s.binary(level+1, expecting)
	for n := 0; err == nil; n++ {
		op := s.operator(level)
		if op == "" {
			return e, nil
		}
		if n == maxConjuncts {
			return e, s.errorf(at, "expected at most %d operators in a row", maxConjuncts)
		}
		if s.nested > 0 {
			s.skipSpace()
		}
		a := e
		var b syntax.Expr
		s.depth++ // a number may follow
		b, err = s.binary(level+1, "an operand after "+strconv.Quote(op))
		s.depth--
		e = syntax.Expr{Kind: syntax.KindBinary, Name: op, A: &a, B: &b, Pos: at}
	}
	return e, err
}

// operator steps over an operator of a level and returns it, or returns "".
func (s *scanner) operator(level int) string {
	at := s.pos
	if s.nested > 0 {
		s.skipSpace()
	}
	for _, op := range levels[level] {
		if !s.at(op) {
			continue
		}
		// "|" is not the first half of "||", "<" not that of "<<", "-" not that of "->".
		after := s.rest()[len(op):]
		switch op {
		case "|", "&":
			if strings.HasPrefix(after, op) {
				continue
			}
		case "<", ">":
			if strings.HasPrefix(after, op) || strings.HasPrefix(after, "=") {
				continue
			}
		case "-":
			if strings.HasPrefix(after, ">") {
				continue
			}
		}
		s.pos += len(op)
		return op
	}
	s.pos = at
	return ""
}

// unary parses an operand with the operators before it.
func (s *scanner) unary(expecting string) (syntax.Expr, error) {
	at := s.pos
	if isOffset(s.rest()) {
		e := syntax.Expr{Kind: syntax.KindOffset, Pos: at}
		return e, s.offset(&e)
	}
	for _, op := range []string{"-", "~", "!", "*", "&"} {
		if s.at(op) && !s.at("->") {
			if s.depth++; s.depth > maxDepth {
				return syntax.Expr{}, s.errorf(at, "expected at most %d expressions in each other", maxDepth)
			}
			defer func() { s.depth-- }()
			s.pos++
			if s.nested > 0 {
				s.skipSpace()
			}
			a, err := s.unary("an operand after " + strconv.Quote(op))
			return syntax.Expr{Kind: syntax.KindUnary, Name: op, A: &a, Pos: at}, err
		}
	}
	return s.primary(expecting)
}

// isOffset reports whether a text begins with perf's +OFFSET( or -OFFSET(.
func isOffset(text string) bool {
	if text == "" || text[0] != '+' && text[0] != '-' {
		return false
	}
	digits := strings.TrimPrefix(text[1:], "u")
	n := numberLen(digits)
	return n > 0 && isDigit(digits[0]) && strings.HasPrefix(digits[n:], "(")
}

// offset parses perf's memory at an offset.
func (s *scanner) offset(e *syntax.Expr) (err error) {
	negative := s.accept("-")
	if !negative {
		s.accept("+")
	}
	e.User = s.accept("u")
	if e.Number, err = s.number("an offset in bytes"); err != nil {
		return err
	}
	if negative {
		e.Number = -e.Number
	}
	e.A, err = s.inside("an expression for an address")
	return err
}

// inside parses "(EXPRESSION)".
func (s *scanner) inside(expecting string) (*syntax.Expr, error) {
	if err := s.open(); err != nil {
		return nil, err
	}
	defer func() { s.nested-- }()
	e, err := s.binary(0, expecting)
	if err != nil {
		return nil, err
	}
	return &e, s.closing(")")
}

// open steps over "(".
func (s *scanner) open() error {
	if !s.accept("(") {
		return s.expected(`"("`)
	}
	s.nested++
	s.skipSpace()
	return nil
}

// closing steps over white space and a sign.
func (s *scanner) closing(sign string) error {
	s.skipSpace()
	if !s.accept(sign) {
		return s.expected("an operator or " + strconv.Quote(sign))
	}
	return nil
}

// atPath reports whether a step of a path follows.
func (s *scanner) atPath() bool { return s.at("->") || s.at(".") || s.at("[") }

// parentheses parses a cast, or an expression in parentheses.
func (s *scanner) parentheses() (e syntax.Expr, err error) {
	at := s.pos
	if t, ok := s.cast(); ok {
		if s.nested > 0 {
			s.skipSpace()
		}
		if s.depth++; s.depth > maxDepth {
			return e, s.errorf(at, "expected at most %d expressions in each other", maxDepth)
		}
		defer func() { s.depth-- }()
		s.casted = s.pos
		a, err := s.unary("what is cast to " + t.String())
		return syntax.Expr{Kind: syntax.KindCast, Type: t, A: &a, Pos: at}, err
	}
	in, err := s.inside("an expression")
	if err != nil {
		return e, err
	}
	return *in, nil
}

// words of C's own types, as far as they can begin one.
var typeWords = []string{
	"struct", "union", "enum", "class", "const", "void", "char", "short", "int", "long", "signed", "unsigned", "float", "double", "bool", "_Bool",
	"u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "size_t", "ssize_t",
}

// cast steps over "(TYPE)" if that is what follows: a type that begins with one of C's words, that
// ends with "*", or a name with an operand after it.
func (s *scanner) cast() (t syntax.TypeName, ok bool) {
	at := s.pos
	defer func() {
		if !ok {
			s.pos = at
		}
	}()
	s.accept("(")
	s.skipSpace()
	if identifierLen(s.rest()) == 0 {
		return t, false
	}
	sure := slices.Contains(typeWords, s.rest()[:identifierLen(s.rest())])
	t = s.typeName()
	s.skipSpace()
	if !s.accept(")") || t.Name == "" {
		return t, false
	}
	if sure || t.Pointers > 0 {
		return t, true
	}
	// "(a)-b" is a difference, "(a)b" a cast.
	next := scanner{text: s.text, pos: s.pos, nested: s.nested}
	if next.nested > 0 {
		next.skipSpace()
	}
	return t, !next.atEnd() && (isLetter(next.text[next.pos]) || strings.IndexByte(`($@"`, next.text[next.pos]) >= 0)
}

// typeName parses the name of a type, with the "*" after it.
func (s *scanner) typeName() syntax.TypeName {
	t := syntax.TypeName{Pos: s.pos}
	var words []string
	for {
		s.skipSpace()
		end := s.pos
		w := s.identifier()
		if w == "" {
			s.pos = end
			break
		}
		if w != "const" && w != "volatile" {
			words = append(words, w)
		}
	}
	t.Name = strings.Join(words, " ")
	for {
		s.skipSpace()
		if !s.accept("*") {
			return t
		}
		t.Pointers++
	}
}

// calls are the names that stand for something else before "(".
var calls map[string]func(*scanner, *syntax.Expr) error

func init() {
	calls = map[string]func(*scanner, *syntax.Expr) error{"sizeof": (*scanner).sizeof, "container_of": (*scanner).containerOf}
}

// sizeof parses "(TYPE)".
func (s *scanner) sizeof(e *syntax.Expr) error {
	*e = syntax.Expr{Kind: syntax.KindSizeof, Pos: e.Pos}
	if err := s.open(); err != nil {
		return err
	}
	defer func() { s.nested-- }()
	if e.Type = s.typeName(); e.Type.Name == "" {
		return s.expected("a type")
	}
	return s.closing(")")
}

// containerOf parses "(POINTER, TYPE, MEMBER)".
func (s *scanner) containerOf(e *syntax.Expr) error {
	*e = syntax.Expr{Kind: syntax.KindContainerOf, Pos: e.Pos}
	if err := s.open(); err != nil {
		return err
	}
	defer func() { s.nested-- }()
	a, err := s.binary(0, "a pointer to a member")
	if err != nil {
		return err
	}
	e.A = &a
	if err := s.closing(","); err != nil {
		return err
	}
	s.skipSpace()
	if e.Type = s.typeName(); e.Type.Name == "" || e.Type.Pointers > 0 {
		return s.errorf(e.Type.Pos, "expected the type of a structure, found %q", e.Type.String())
	}
	s.skipSpace()
	if !s.accept(",") {
		return s.expected(`"," after the type`)
	}
	s.skipSpace()
	m := syntax.Expr{Path: []syntax.Step{{Kind: syntax.StepDot, Pos: s.pos}}, Kind: syntax.KindVariable}
	if m.Path[0].Member = s.identifier(); m.Path[0].Member == "" {
		return s.expected("the name of a member")
	}
	if err := s.path(&m); err != nil {
		return err
	}
	e.Member = m.Path
	return s.closing(")")
}

// maxText bounds the text that a string is compared with.
const maxText = 63

// stringText parses a text in quotes, with Go's escapes.
func (s *scanner) stringText(e *syntax.Expr) error {
	quoted, err := strconv.QuotedPrefix(s.rest())
	text := ""
	if err == nil {
		text, err = strconv.Unquote(quoted)
	}
	switch {
	case err != nil:
		return s.errorf(s.pos, "expected a text that ends with %q", `"`)
	case strings.IndexByte(text, 0) >= 0 || len(text) > maxText:
		return s.errorf(s.pos, "expected a text of at most %d bytes, without NUL", maxText)
	}
	s.pos += len(quoted)
	e.Kind, e.Name = syntax.KindString, text
	return nil
}

// character parses a character of C, which is a number.
func (s *scanner) character(e *syntax.Expr) error {
	c, multibyte, tail, err := strconv.UnquoteChar(s.rest()[1:], '\'')
	if err != nil || multibyte || c > 0x7f || !strings.HasPrefix(tail, "'") {
		return s.errorf(s.pos, "expected a character of ASCII in quotes, found %s", s.found())
	}
	s.pos = len(s.text) - len(tail) + 1
	e.Kind, e.Number, e.Name = syntax.KindNumber, uint64(c), strconv.Itoa(int(c))
	return nil
}
