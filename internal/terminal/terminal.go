// Package terminal prints texts that somebody else chose: the public package of this name says how and why.
package terminal

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns a text for one line: what a terminal shows as something else, or not at all, is
// replaced. That is what strconv.IsPrint says, and characters without a width.
func Text(s string) string { return replaced(s, "") }

// Line is Text for a line of source text: tabs stay.
func Line(s string) string { return replaced(s, "\t") }

func replaced(s, except string) string {
	if plain(s) {
		return s
	}
	begin := 0 // of what is replaced
	for begin < len(s) {
		r, n := utf8.DecodeRuneInString(s[begin:])
		if r == utf8.RuneError && n == 1 || !printable(r) && !strings.ContainsRune(except, r) {
			break
		}
		begin += n
	}
	if begin == len(s) {
		return s
	}
	var b strings.Builder
	b.WriteString(s[:begin])
	for i := begin; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			b.WriteString(`\x`)
			b.WriteString(strconv.FormatUint(uint64(s[i])|0x100, 16)[1:])
		case printable(r) || strings.ContainsRune(except, r):
			b.WriteString(s[i : i+n])
		default:
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		}
		i += n
	}
	return b.String()
}

// plain reports whether a text has nothing to replace, for most texts, which are ASCII.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func printable(r rune) bool {
	return strconv.IsPrint(r) && (r < utf8.RuneSelf || !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector))
}

// Fprintf is fmt.Fprintf for untrusted arguments: each is printed as Text returns it. The
// format is the caller's own. An error that errors.Join made has a line for each of its errors.
//
// There is no result: use a writer that remembers its error, as bufio.Writer does.
func Fprintf(w io.Writer, format string, args ...any) {
	if false {
		_ = fmt.Sprintf(format, args...) // "go vet" checks formats of functions that do this
	}
	character := strings.Contains(format, "c") // as which alone a number can be unsafe
	safe := make([]any, len(args))
	for i, a := range args {
		safe[i] = argument(a, character)
	}
	_, _ = fmt.Fprintf(w, format, safe...)
}

// argument returns an argument that is printed without what a terminal obeys. character says that a number may be printed as one.
func argument(a any, character bool) any {
	switch x := a.(type) {
	case string:
		if plain(x) {
			return a // x would be allocated again
		}
	case Styled:
		return x.rendered()
	case bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, uintptr, float32, float64:
		if !character {
			return a
		}
		return numeric{a}
	}
	return shown{a}
}

// numeric is an argument that can only be unsafe as a character.
type numeric struct{ v any }

// Format prints the value.
func (n numeric) Format(f fmt.State, verb rune) {
	if verb == 'c' {
		shown(n).Format(f, verb)
		return
	}
	_, _ = fmt.Fprintf(f, fmt.FormatString(f, verb), n.v)
}

// shown is an argument whose text is replaced.
type shown struct{ v any }

// Format prints the value by its verb, and then replaces. A width is that of the result.
func (s shown) Format(f fmt.State, verb rune) {
	if verb != 's' && verb != 'v' {
		_, _ = io.WriteString(f, Text(fmt.Sprintf(fmt.FormatString(f, verb), s.v)))
		return
	}
	directive := "%"
	for _, flag := range "+# " {
		if f.Flag(int(flag)) {
			directive += string(flag)
		}
	}
	if n, ok := f.Precision(); ok {
		directive += "." + strconv.Itoa(n)
	}
	text := ""
	if err, ok := s.v.(error); ok && directive == "%" {
		text = errorText(err)
	} else {
		text = Text(fmt.Sprintf(directive+string(verb), s.v))
	}
	width, _ := f.Width()
	pad := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
	if f.Flag('-') {
		text += pad
	} else {
		text = pad + text
	}
	_, _ = io.WriteString(f, text)
}

// errorText returns an error's text. The newlines between errors that were joined stay: they are not in
// a text of somebody else.
func errorText(err error) string {
	text := err.Error()
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		var whole, lines []string
		for _, part := range e.Unwrap() {
			whole, lines = append(whole, part.Error()), append(lines, errorText(part))
		}
		if text == strings.Join(whole, "\n") {
			return strings.Join(lines, "\n")
		}
	case interface{ Unwrap() error }:
		if in := e.Unwrap(); in != nil {
			if head, ok := strings.CutSuffix(text, in.Error()); ok {
				return Text(head) + errorText(in)
			}
		}
	}
	return Text(text)
}
