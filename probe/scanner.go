package probe

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A scanner reads the text of one definition from left to right.
type scanner struct {
	text   string
	pos    int
	nested int // in so many parentheses: white space there ends nothing
	depth  int // of expressions
	casted int // where the operand of the last cast begins: a register there leaves its path to the cast, which says of what type it is
}

// white is the white space that separates the parts of a definition.
const white = " \t\n\v\f\r"

func isSpace(b byte) bool { return strings.IndexByte(white, b) >= 0 }

func isLetter(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || b == '_'
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

// identifierLen returns the length of the C identifier that s begins with.
func identifierLen(s string) int {
	n := 0
	for n < len(s) && (isLetter(s[n]) || n > 0 && isDigit(s[n])) {
		n++
	}
	return n
}

// numberLen returns the length of the letters and digits that s begins with.
func numberLen(s string) int {
	n := 0
	for n < len(s) && (isDigit(s[n]) || isLetter(s[n])) {
		n++
	}
	return n
}

func (s *scanner) rest() string { return s.text[s.pos:] }

func (s *scanner) atEnd() bool { return s.pos == len(s.text) }

// atWordEnd reports whether white space or the end follows.
func (s *scanner) atWordEnd() bool { return s.atEnd() || isSpace(s.text[s.pos]) }

// at reports whether the text goes on with prefix.
func (s *scanner) at(prefix string) bool { return strings.HasPrefix(s.rest(), prefix) }

// accept steps over prefix if the text goes on with it.
func (s *scanner) accept(prefix string) bool {
	if !s.at(prefix) {
		return false
	}
	s.pos += len(prefix)
	return true
}

func (s *scanner) skipSpace() {
	for !s.atEnd() && isSpace(s.text[s.pos]) {
		s.pos++
	}
}

// identifier steps over a C identifier and returns it, or returns "".
func (s *scanner) identifier() string {
	n := identifierLen(s.rest())
	s.pos += n
	return s.text[s.pos-n : s.pos]
}

// word returns the text up to the next white space without a backslash before it, without
// stepping over it.
func (s *scanner) word() string {
	rest := s.rest()
	if n := indexPlain(rest, white); n >= 0 {
		return rest[:n]
	}
	return rest
}

// indexPlain returns where the first of some characters is that has no backslash before it,
// or -1. Nor is it one of the two colons of a qualified name.
func indexPlain(text, chars string) int {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case strings.HasPrefix(text[i:], "::"): // of a qualified name
			i++
		case strings.IndexByte(chars, text[i]) >= 0:
			return i
		}
	}
	return -1
}

// found describes the text at the scanner's position for a message.
func (s *scanner) found() string {
	rest := s.rest()
	if rest == "" {
		return "the end"
	}
	switch rest[0] {
	case ' ':
		return "a space"
	case '\t':
		return "a tab"
	case '\n':
		return "a new line"
	}
	_, n := utf8.DecodeRuneInString(rest)
	for _, token := range []string{"->", "::"} {
		if strings.HasPrefix(rest, token) {
			n = len(token)
		}
	}
	// A number or a name as a whole, with the one character that introduces
	// it in "$retval", "%return" and "@symbol".
	m := 0
	if strings.IndexByte("$%@", rest[0]) >= 0 {
		m = 1
	}
	for m < len(rest) && (isLetter(rest[m]) || isDigit(rest[m])) {
		m++
	}
	return fmt.Sprintf("%q", rest[:max(n, m)])
}

// errorf returns an error at the position pos.
func (s *scanner) errorf(pos int, format string, args ...any) error {
	return &Error{Text: s.text, Column: pos + 1, Msg: fmt.Sprintf(format, args...)}
}

// expected returns an error at the scanner's position.
func (s *scanner) expected(what string) error {
	return s.errorf(s.pos, "expected %s, found %s", what, s.found())
}
