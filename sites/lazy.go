package sites

import (
	"strings"

	"github.com/bpfprologue/bpfprologue/glob"
)

// lazy is a pattern for the text of a source line, like perf's lazy patterns: white space in
// the line and in the pattern is ignored. It is safe for concurrent use.
type lazy struct{ p glob.Matcher }

// compileLazy compiles a lazy pattern. The error is a *glob.Error.
func compileLazy(pattern string) (lazy, error) {
	p, err := glob.Compile(withoutSpace(pattern))
	return lazy{p}, err
}

// match reports whether the pattern matches the whole line.
func (l lazy) match(line string) bool {
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
