// Package cname makes identifiers and comments of C, and of languages like it, from names
// and texts of an image.
package cname

import (
	"slices"
	"strings"
)

// reserved are C's keywords, which a variable of another language may be named.
var reserved = strings.Fields(`auto break case char const continue default do double else enum extern float for goto
	if inline int long register restrict return short signed sizeof static struct switch typedef union unsigned
	void volatile while _Bool _Complex _Imaginary`)

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

// OneLine replaces control characters, so that a comment stays on its line.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, text)
}

// Comment makes a text safe to write in a C comment: it stays on its line and does not end
// the comment.
func Comment(text string) string { return strings.ReplaceAll(OneLine(text), "*/", "*\\/") }
