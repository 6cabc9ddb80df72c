package probe

import (
	"errors"
	"fmt"
	"io"

	"github.com/bpfprologue/bpfprologue/internal/caret"
)

// An Error is about one place in the text of a definition. %+v prints the place too, see
// Format.
type Error struct {
	Text   string // the whole definition
	Column int    // where in Text, in bytes, from 1; at most one after its end
	Msg    string // what is wrong there

	err error // what Msg wraps, or nil
}

// Errorf returns an *Error about the place pos in d.Text, one of the positions
// of d's parts. It is for errors that show only later, for example that a function has no
// such variable. The format may wrap an error with %w.
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

// Format implements fmt.Formatter: %v prints one line, %+v also the line of the definition
// and, below it, a caret under the place.
func (e *Error) Format(f fmt.State, verb rune) {
	switch {
	case verb == 'v' && f.Flag('+'):
		_, _ = io.WriteString(f, e.Error()+"\n"+caret.Mark(e.Text, e.Column))
	case verb == 'q':
		fmt.Fprintf(f, "%q", e.Error())
	default:
		_, _ = io.WriteString(f, e.Error())
	}
}
