// Package cname makes identifiers and comments of C, and of languages like it, from names
// and texts of an image. Whoever made the image chose them.
package cname

import (
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/terminal"
)

// reserved are C's keywords, which a variable of another language may be named: those of C23 too, those
// of GCC, and the macros that compilers have for Linux.
var reserved = strings.Fields(`auto break case char const continue default do double else enum extern float for goto
	if inline int long register restrict return short signed sizeof static struct switch typedef union unsigned
	void volatile while _Bool _Complex _Imaginary
	_Alignas _Alignof _Atomic _BitInt _Generic _Noreturn _Static_assert _Thread_local alignas alignof bool constexpr
	false nullptr static_assert thread_local true typeof typeof_unqual asm linux unix`)

// Word replaces all but letters, digits and underscores, and puts an underscore before a
// digit that comes first.
func Word(name string) string {
	w := strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	if w == "" || w[0] >= '0' && w[0] <= '9' {
		w = "_" + w
	}
	return w
}

// Identifier is Word for names that must not be a keyword of C.
func Identifier(name string) string {
	id := Word(name)
	if slices.Contains(reserved, id) {
		id += "_"
	}
	return id
}

// OneLine makes a text safe to write in a comment that ends with its line: the text has only what is
// visible, and nothing at its end that continues the comment on the next line, as a backslash does, and
// the trigraph for one. No language has a character then that it refuses even in comments, as Go does
// with U+FEFF and NUL.
func OneLine(text string) string {
	text = terminal.Text(text)
	if strings.HasSuffix(text, `\`) || strings.HasSuffix(text, "??/") {
		text += "."
	}
	return text
}

// Comment makes a text safe to write in a C comment: it stays on its line and does not end
// the comment, or begin another, of which compilers warn.
func Comment(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(OneLine(text), "*/", `*\/`), "/*", `/\*`)
}
