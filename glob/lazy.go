package glob

import (
	"strings"
)

// Lazy is a pattern for the text of a source line, like perf's lazy patterns: white space in
// the line and in the pattern is ignored. It is safe for concurrent use.
type Lazy struct{ p *pattern }

// CompileLazy compiles a lazy pattern. The error is an *Error.
func CompileLazy(pattern string) (*Lazy, error) {
	p, err := compile(withoutSpace(pattern))
	if err != nil {
		return nil, err
	}
	return &Lazy{p}, nil
}

// Match reports whether the pattern matches the whole line.
func (l *Lazy) Match(line string) bool {
	return l.p.Match(strings.Map(func(r rune) rune {
		if strings.ContainsRune(whiteSpace, r) {
			return -1
		}
		return r
	}, line))
}

// whiteSpace is C's isspace.
const whiteSpace = " \t\n\v\f\r"

// withoutSpace removes a pattern's white space, and backslashes that escape it.
func withoutSpace(pattern string) string {
	var b strings.Builder
	space := func(i int) bool { return i < len(pattern) && strings.IndexByte(whiteSpace, pattern[i]) >= 0 }
	for i := 0; i < len(pattern); i++ {
		switch {
		case space(i):
		case pattern[i] == '\\' && space(i+1):
			i++
		case pattern[i] == '\\' && i+1 < len(pattern):
			b.WriteString(pattern[i : i+2])
			i++
		default:
			b.WriteByte(pattern[i])
		}
	}
	return b.String()
}
