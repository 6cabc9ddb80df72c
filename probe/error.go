package probe

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// An Error is about one place in the text of a definition.
//
// Printed with %v it is one line. Printed with %+v it goes on with the line of
// the definition that it is about, and a caret under the place.
type Error struct {
	Text   string // the whole definition
	Column int    // where in Text, in bytes, from 1; at most one after its end
	Msg    string // what is wrong there

	err error // what Msg wraps, or nil
}

// Errorf returns an *Error about the place pos in d.Text, one of the positions
// of d's parts. It is for those who find out later what is wrong with a
// definition, for example that a function has no such variable. The format may
// wrap an error with %w.
func Errorf(d *Definition, pos int, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{
		Text:   d.Text,
		Column: min(max(pos, 0), len(d.Text)) + 1,
		Msg:    err.Error(),
		err:    errors.Unwrap(err),
	}
}

func (e *Error) Error() string {
	return fmt.Sprintf("column %d: %s: definition %q", e.Column, e.Msg, e.Text)
}

// Unwrap returns the error that Errorf wrapped, or nil.
func (e *Error) Unwrap() error { return e.err }

// Caret returns the line of the definition that the error is about and, below
// it, a line with a caret under the place. Tabs are kept, so that the caret
// stands where it should however wide they are shown.
func (e *Error) Caret() string {
	at := min(max(e.Column-1, 0), len(e.Text))
	start := strings.LastIndexByte(e.Text[:at], '\n') + 1
	line, _, _ := strings.Cut(e.Text[start:], "\n")

	var b strings.Builder
	b.WriteString(line + "\n")
	for before := line[:at-start]; before != ""; {
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

// Format implements fmt.Formatter.
func (e *Error) Format(f fmt.State, verb rune) {
	switch {
	case verb == 'v' && f.Flag('+'):
		_, _ = io.WriteString(f, e.Error()+"\n"+e.Caret())
	case verb == 'q':
		fmt.Fprintf(f, "%q", e.Error())
	default:
		_, _ = io.WriteString(f, e.Error())
	}
}
