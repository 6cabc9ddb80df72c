package probe

import (
	"math"
	"strconv"
	"strings"
)

// point parses FUNC, SRC and OFFSET or %return.
func (s *scanner) point() (Point, error) {
	p := Point{Pos: s.pos}
	const aFunction = "a function name or pattern"
	const aLine = "a line (FUNC:LINE or FILE:LINE) is"
	switch {
	case s.at("%"):
		return p, s.unsupported(aFunction, "a statically defined event is")
	case !s.atEnd() && isDigit(s.text[s.pos]):
		return p, s.unsupported(aFunction, "an address is")
	}

	var err error
	p.Function, err = s.pattern(aFunction, func(b byte) bool {
		return isLetter(b) || isDigit(b) || b == '.' || b == '$' || b >= 0x80
	})
	if err != nil {
		return p, err
	}
	behind := `"@SRC", "+OFFSET", "%return" or a space behind the function`
	switch {
	case s.at("/"):
		return p, s.unsupported(behind, aLine)
	case s.at("::"):
		return p, s.unsupported(behind, "a qualified name is")
	case s.accept("@"):
		p.Source, err = s.pattern("the path or pattern of a source file", func(b byte) bool {
			return strings.IndexByte("@+%:", b) < 0
		})
		if err != nil {
			return p, err
		}
		behind = `"+OFFSET", "%return" or a space behind the source file`
	}

	switch {
	case s.at(":"):
		return p, s.unsupported(behind, aLine)
	case s.accept("+"):
		if p.Offset, err = s.offset(); err != nil {
			return p, err
		}
		behind = "a space behind the offset"
	case s.at("%"):
		at := s.pos
		s.pos++
		if s.identifier() != "return" {
			s.pos = at
			return p, s.expected(behind)
		}
		p.Return = true
		behind = `a space behind "%return"`
	}
	if !s.atWordEnd() {
		return p, s.expected(behind)
	}
	return p, nil
}

// pattern steps over a pattern whose plain characters are those that isPlain
// reports.
func (s *scanner) pattern(what string, isPlain func(byte) bool) (string, error) {
	start := s.pos
	for !s.atWordEnd() {
		switch b := s.text[s.pos]; {
		case b == '\\':
			s.pos++
			if s.atWordEnd() {
				return "", s.expected("a character behind the backslash")
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
				return "", s.errorf(s.pos, "expected a class with its %q, found %q", "]", s.word())
			}
			s.pos = first + 1 + n + 1
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

// offset parses the number behind "+".
func (s *scanner) offset() (uint64, error) {
	start := s.pos
	digits := s.rest()[:numberLen(s.rest())]
	if digits == "" || !isDigit(digits[0]) {
		return 0, s.expected("an offset in bytes")
	}
	number, base := digits, 10
	if hex, ok := strings.CutPrefix(digits, "0x"); ok {
		number, base = hex, 16
	} else if len(digits) > 1 && digits[0] == '0' {
		// To perf this is octal, to others decimal.
		return 0, s.errorf(start, "expected a decimal offset without leading zeros, or one in hexadecimal with 0x, found %q", digits)
	}
	offset, err := strconv.ParseUint(number, base, 64)
	if err != nil {
		if err.(*strconv.NumError).Err == strconv.ErrRange {
			return 0, s.errorf(start, "expected an offset of no more than %#x, found %q", uint64(math.MaxUint64), digits)
		}
		return 0, s.errorf(start, "expected an offset in bytes, decimal or hexadecimal with 0x, found %q", digits)
	}
	s.pos += len(digits)
	return offset, nil
}
