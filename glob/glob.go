// Package glob selects names by pattern, as perf does.
//
// Compile compiles one pattern for matching many names:
//
//	p, err := glob.Compile("tcp_*msg")
//	p.Match("tcp_sendmsg") // true
//
// ParseFilter parses expressions over patterns, as in perf probe's --filter option:
//
//	f, err := glob.ParseFilter("tcp_* & !(*_init | *_exit)")
//
// Both return a Matcher.
//
// # Patterns
//
// A pattern must match the whole name. Its special characters are those of
// perf's strglobmatch (tools/perf/util/string.c in the Linux source):
//
//	"*"        any sequence of characters, even an empty one
//	"?"        exactly one character
//	"[a-cx]"   one character of a class of characters and ranges
//	"[!a-cx]"  one character that is not of that class
//	"\"        the next character stands for itself
//
// As in perf, a character is a byte. Inside a class only "]" and "-" are
// special: the first character (after a "!") always stands for itself, even
// "]", a "-" before the closing "]" stands for itself, and so does a
// backslash. As in perf, the end of a range may start the next one:
// "[a-c-e]" is "[a-e]".
//
// For some malformed patterns, which perf accepts but which match nothing or something else,
// Compile returns an error: an empty pattern, a class without its "]", a range with its ends
// in the wrong order, a backslash at the very end.
package glob

import (
	"fmt"
	"strings"
)

// A Matcher selects names. Compile and ParseFilter make them.
type Matcher interface {
	// Match reports whether the matcher selects name.
	Match(name string) bool

	// String returns the text that compiles to an equal matcher.
	String() string

	// Literal returns the only name that the matcher selects, with escapes resolved, and
	// true; or false if it may select several names. A caller with an index can look up that
	// name instead of trying every name.
	Literal() (string, bool)
}

// An Error says where a pattern or a filter is malformed.
type Error struct {
	Text   string // the whole pattern or filter
	Column int    // where in Text, in bytes, from 1
	Msg    string // the error
}

func (e *Error) Error() string {
	return fmt.Sprintf("column %d: %s: pattern %q", e.Column, e.Msg, e.Text)
}

func errorAt(text string, offset int, format string, args ...any) error {
	return &Error{Text: text, Column: offset + 1, Msg: fmt.Sprintf(format, args...)}
}

// Plain returns a pattern without its special characters and classes, with escapes resolved,
// for comparison with similar names. The pattern need not compile.
func Plain(pattern string) string {
	if !strings.ContainsAny(pattern, `*?[\`) {
		return pattern
	}
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '*', '?':
		case '[':
			if end, ok := classEnd(pattern, i); ok {
				i = end - 1
			}
		case '\\':
			if i++; i < len(pattern) {
				b.WriteByte(pattern[i])
			}
		default:
			b.WriteByte(pattern[i])
		}
	}
	return b.String()
}
