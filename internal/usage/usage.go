// Package usage has the errors of whoever asks a question: that it is wrong, and what else could be asked.
package usage

import (
	"fmt"
	"strings"
)

// Error is an error of the command line: the tool was not asked a question that it knows.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an Error.
func Errorf(format string, args ...any) error { return &Error{fmt.Errorf(format, args...)} }

// Choose returns the value that a flag names; the error lists the names.
func Choose[T any](flag, value string, names []string, values []T) (T, error) {
	for i, n := range names {
		if n == value {
			return values[i], nil
		}
	}
	var zero T
	return zero, Errorf("--%s %q: unknown; it is one of %s", flag, value, strings.Join(names, ", "))
}

// Advised is an error with what a user can do about it.
type Advised struct {
	error
	Advice string
}

// Advise adds advice to an error.
func Advise(err error, advice string) error { return &Advised{err, advice} }

func (e *Advised) Unwrap() error { return e.error }
