// Package caret marks a place in a text of one or more lines.
package caret

import (
	"strings"
	"unicode/utf8"

	"github.com/bpfprologue/bpfprologue/internal/terminal"
)

// Mark returns the line of text that contains a column and, below it, a line with a caret
// under that column. The column counts the bytes of the whole text from 1. Tabs are kept,
// so that the caret lines up however wide they are displayed; what else a terminal obeys is
// replaced, since the text may be the name of a section in an object file.
func Mark(text string, column int) string {
	at := min(max(column-1, 0), len(text))
	start := strings.LastIndexByte(text[:at], '\n') + 1
	line, _, _ := strings.Cut(text[start:], "\n")
	before, after := terminal.Line(line[:at-start]), terminal.Line(line[at-start:])

	var b strings.Builder
	b.WriteString(before + after + "\n")
	for before != "" {
		r, n := utf8.DecodeRuneInString(before)
		if r != '\t' {
			r = ' '
		}
		b.WriteRune(r)
		before = before[n:]
	}
	b.WriteByte('^')
	return b.String()
}
