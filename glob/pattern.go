package glob

import (
	"strings"
)

// pattern is one compiled glob pattern.
type pattern struct {
	text string

	// The parts between the stars: one segment for a pattern without a star,
	// and always a first and a last one, perhaps empty, for a pattern with
	// stars. Because a segment matches texts of one length only, the leftmost
	// place where a middle segment fits is always as good as any later one.
	// So matching never backtracks, and patterns with many stars are not slow.
	segments []segment

	min int // length of the shortest name that can match, in bytes
}

// A segment matches len(text) bytes.
type segment struct {
	text string

	// For a segment with "?" or classes, the class at each position, or nil
	// where text holds the character itself. A nil slice is the common case,
	// for which the functions of package strings suffice.
	classes []*class
}

// A class is a set of bytes.
type class [4]uint64

func (c *class) add(b byte)      { c[b>>6] |= 1 << (b & 63) }
func (c *class) has(b byte) bool { return c[b>>6]&(1<<(b&63)) != 0 }

func (c *class) complement() {
	for i := range c {
		c[i] = ^c[i]
	}
}

var anyByte = &class{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}

// Compile compiles a pattern. The Matcher is safe for concurrent use. The error is an
// *Error.
func Compile(pattern string) (Matcher, error) {
	p, err := compile(pattern)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func compile(expr string) (*pattern, error) {
	if expr == "" {
		return nil, errorAt(expr, 0, "expected a pattern, found the end")
	}
	p := &pattern{text: expr}

	var text []byte
	var classes []*class
	wild := false
	flush := func() {
		s := segment{text: string(text)}
		if wild {
			s.classes = classes
		}
		p.segments = append(p.segments, s)
		p.min += len(text)
		text, classes, wild = nil, nil, false
	}
	char := func(b byte, c *class) {
		text = append(text, b)
		classes = append(classes, c)
		wild = wild || c != nil
	}

	for i := 0; i < len(expr); {
		switch expr[i] {
		case '*':
			// A run of stars is one star.
			if i == 0 || len(text) > 0 {
				flush()
			}
			i++
		case '?':
			char(0, anyByte)
			i++
		case '[':
			end, ok := classEnd(expr, i)
			if !ok {
				return nil, errorAt(expr, i, `expected a class with its %q (in a name "[" needs a backslash), found %q`, "]", expr[i:])
			}
			c, err := compileClass(expr, i, end)
			if err != nil {
				return nil, err
			}
			char(0, c)
			i = end
		case '\\':
			if i+1 == len(expr) {
				return nil, errorAt(expr, i+1, "expected a character after the backslash, found the end")
			}
			char(expr[i+1], nil)
			i += 2
		default:
			char(expr[i], nil)
			i++
		}
	}
	flush()
	return p, nil
}

// classEnd returns the offset after the "]" of the class that starts at
// offset i of pattern.
func classEnd(pattern string, i int) (end int, ok bool) {
	i++
	if i < len(pattern) && pattern[i] == '!' {
		i++
	}
	i++ // the first character never closes the class
	if i >= len(pattern) {
		return 0, false
	}
	n := strings.IndexByte(pattern[i:], ']')
	if n < 0 {
		return 0, false
	}
	return i + n + 1, true
}

// compileClass compiles pattern[start:end], which includes both brackets.
func compileClass(pattern string, start, end int) (*class, error) {
	c := new(class)
	i, last := start+1, end-1
	negated := pattern[i] == '!'
	if negated {
		i++
	}
	c.add(pattern[i])
	for i++; i < last; {
		if pattern[i] != '-' || i+1 == last {
			c.add(pattern[i])
			i++
			continue
		}
		lo, hi := pattern[i-1], pattern[i+1]
		if lo > hi {
			return nil, errorAt(pattern, i-1, "expected a range from low to high, found %q", pattern[i-1:i+2])
		}
		for b := int(lo); b <= int(hi); b++ {
			c.add(byte(b))
		}
		i += 2
	}
	if negated {
		c.complement()
	}
	return c, nil
}

// Match reports whether the pattern matches the whole of name.
func (p *pattern) Match(name string) bool {
	if len(name) < p.min {
		return false
	}
	first := &p.segments[0]
	if len(p.segments) == 1 {
		return len(name) == p.min && first.matchAt(name, 0)
	}
	last := &p.segments[len(p.segments)-1]
	lo, hi := len(first.text), len(name)-len(last.text)
	if !first.matchAt(name, 0) || !last.matchAt(name, hi) {
		return false
	}
	for i := 1; i < len(p.segments)-1; i++ {
		s := &p.segments[i]
		at := s.index(name[lo:hi])
		if at < 0 {
			return false
		}
		lo += at + len(s.text)
	}
	return true
}

// matchAt reports whether s matches name at offset at; name is long enough.
func (s *segment) matchAt(name string, at int) bool {
	name = name[at : at+len(s.text)]
	if s.classes == nil {
		return name == s.text
	}
	for i, c := range s.classes {
		if c == nil {
			if name[i] != s.text[i] {
				return false
			}
		} else if !c.has(name[i]) {
			return false
		}
	}
	return true
}

// index returns the first offset in name where s matches, or -1.
func (s *segment) index(name string) int {
	if s.classes == nil {
		return strings.Index(name, s.text)
	}
	for at := 0; at+len(s.text) <= len(name); at++ {
		if s.matchAt(name, at) {
			return at
		}
	}
	return -1
}

// Literal returns the only name that matches, with escapes resolved, and true if the pattern
// has no "*", "?" or class.
func (p *pattern) Literal() (string, bool) {
	if len(p.segments) > 1 || p.segments[0].classes != nil {
		return "", false
	}
	return p.segments[0].text, true
}

// String returns the text that the pattern was compiled from.
func (p *pattern) String() string { return p.text }
