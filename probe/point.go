package probe

import (
	"strconv"
	"strings"
)

// point parses a probe point.
func (s *scanner) point() (Point, error) {
	p := Point{Pos: s.pos, LinePos: s.pos}
	const aFunction = "a function name or pattern"
	switch {
	case s.at("%"), s.atStatic():
		return p, s.static(&p)
	case !s.atEnd() && isDigit(s.text[s.pos]):
		return p, s.address(&p)
	case s.atFile():
		return p, s.inFile(&p)
	}

	var err error
	if p.Function, err = s.pattern(aFunction, isPlain); err != nil {
		return p, err
	}
	after := `"@SRC", ":LINE", ";PATTERN", "+OFFSET", "%return", "%exit" or a space after the function (in a name any other sign needs a backslash)`
	switch {
	case s.accept("@"):
		if p.Source, err = s.source(); err != nil {
			return p, err
		}
		after = `":LINE", ";PATTERN", "+OFFSET", "%return", "%exit" or a space after the source file`
	}

	p.LinePos = s.pos + 1
	switch {
	case s.accept(":"):
		if err := s.line(&p, 0); err != nil {
			return p, err
		}
		after = "a space after the line"
	case s.accept(";"):
		if err := s.lazy(&p); err != nil {
			return p, err
		}
	case s.accept("+"):
		if p.Offset, err = s.number(`an offset in bytes (in a name "+" needs a backslash)`); err != nil {
			return p, err
		}
		after = "a space after the offset"
	case s.at("%"):
		at := s.pos
		s.pos++
		switch s.identifier() {
		case "return":
			p.Return = true
		case "exit":
			p.Exit = true
		default:
			s.pos = at
			return p, s.expected(after)
		}
		after = "a space after " + strconv.Quote(s.text[at:s.pos])
	}
	if !s.atWordEnd() {
		return p, s.expected(after)
	}
	return p, nil
}

// staticPrefix is what perf puts before the providers of statically defined probes.
const staticPrefix = "sdt_"

// atStatic reports whether the point is sdt_PROVIDER:NAME, which perf takes without the "%" too. A line's number begins with a digit.
func (s *scanner) atStatic() bool {
	_, name, ok := strings.Cut(s.word(), ":")
	return strings.HasPrefix(s.rest(), staticPrefix) && ok && name != "" && !isDigit(name[0])
}

// static parses %sdt_PROVIDER:NAME, %PROVIDER:NAME or %NAME.
func (s *scanner) static(p *Point) error {
	s.accept("%")
	s.accept(staticPrefix)
	const aName = "the provider or name of a statically defined probe, or a pattern"
	name, err := s.pattern(aName, isPlain)
	if err != nil {
		return err
	}
	p.Provider, p.Function = "*", name
	if s.accept(":") {
		p.Provider = name
		if p.Function, err = s.pattern("the name of a statically defined probe after its provider, or a pattern", isPlain); err != nil {
			return err
		}
	}
	if !s.atWordEnd() {
		return s.expected("a space after the statically defined probe")
	}
	return nil
}

// isPlain reports whether a character of a function's name stands for itself. Names that
// compilers write contain nearly all: "operator()<int>", "{closure#0}", "~set", "<T as U>",
// "github.com/x/y.(*T).M", "f[go.shape.int]".
func isPlain(b byte) bool { return b > ' ' && strings.IndexByte(special, b) < 0 }

// special are the characters that have a meaning in or after a function's pattern: in a name
// they need a backslash, as white space does.
const special = `@+%:;="\*?[`

// address parses the link-time address of an instruction.
func (s *scanner) address(p *Point) error {
	const what = "a function name or pattern, or an address in hexadecimal with 0x"
	if !s.at("0x") {
		return s.expected(what)
	}
	var err error
	if p.Address, err = s.number(what); err != nil {
		return err
	}
	p.HasAddr = true
	if !s.atWordEnd() {
		return s.expected("a space after the address")
	}
	return nil
}

// atFile reports whether the point begins with a source file, not a function. perf's rule
// (parse_perf_probe_point in tools/perf/util/probe-event.c, 6.1): there is a line or a
// lazy pattern, a period in the name, and none of "+@%".
func (s *scanner) atFile() bool {
	word := s.word()
	n := indexPlain(word, ":;")
	return n > 0 && strings.ContainsAny(word[:n], "./") && !strings.ContainsAny(word[:n], "+@%")
}

// source parses the path or pattern of a source file.
func (s *scanner) source() (string, error) {
	return s.pattern("the path or pattern of a source file", func(b byte) bool {
		return strings.IndexByte("@+%:;", b) < 0
	})
}

// inFile parses FILE:LINE and FILE;PATTERN.
func (s *scanner) inFile(p *Point) error {
	var err error
	if p.Source, err = s.source(); err != nil {
		return err
	}
	p.LinePos = s.pos + 1
	if s.accept(";") {
		return s.lazy(p)
	}
	if !s.accept(":") {
		return s.expected(`":LINE" or ";PATTERN" after the source file`)
	}
	if err := s.line(p, 1); err != nil {
		return err
	}
	if !s.atWordEnd() {
		return s.expected("a space after the line")
	}
	return nil
}

// line parses a line's number, first or more.
func (s *scanner) line(p *Point, first uint64) error {
	at := s.pos
	const what = "the number of a line"
	n, err := s.number(what)
	if err != nil {
		return err
	}
	if n < first || n >= 1<<31 {
		return s.errorf(at, "expected %s from %d on, found %q", what, first, s.text[at:s.pos])
	}
	p.Line, p.HasLine = int(n), true
	return nil
}

// lazy parses a lazy pattern, which ends at white space without a backslash.
func (s *scanner) lazy(p *Point) error {
	start := s.pos
	for !s.atWordEnd() {
		if s.text[s.pos] == '\\' && s.pos+1 < len(s.text) {
			s.pos++
		}
		s.pos++
	}
	if p.Lazy = s.text[start:s.pos]; p.Lazy == "" {
		return s.expected("a lazy pattern after the semicolon")
	}
	return nil
}

// pattern parses a pattern. isPlain reports which characters are plain.
func (s *scanner) pattern(what string, isPlain func(byte) bool) (string, error) {
	start := s.pos
	for !s.atWordEnd() {
		switch b := s.text[s.pos]; {
		case b == '\\':
			s.pos++
			if s.atEnd() {
				return "", s.expected("a character after the backslash")
			}
			s.pos++
		case b == '[':
			// As in package glob, the first character never closes the class.
			first := s.pos + 1
			if strings.HasPrefix(s.text[first:], "!") {
				first++
			}
			word := s.text[:s.pos+len(s.word())]
			n := -1
			if first < len(word) {
				n = strings.IndexByte(word[first+1:], ']')
			}
			if n < 0 {
				return "", s.errorf(s.pos, `expected a class with its %q (in a name "[" needs a backslash), found %q`, "]", s.word())
			}
			s.pos = first + 1 + n + 1
		case s.at("::"): // of a qualified name
			s.pos += 2
		case b == '*' || b == '?' || isPlain(b):
			s.pos++
		default:
			if s.pos == start {
				return "", s.expected(what)
			}
			return s.text[start:s.pos], nil
		}
	}
	if s.pos == start {
		return "", s.expected(what)
	}
	return s.text[start:s.pos], nil
}
