// Package terminal prints texts that somebody else chose: names in an image, the name of a task, a
// string in a process, a path, an error that has one of these in it. A terminal obeys some of their
// characters: an escape sequence sets its title or answers in the user's name, a carriage return
// overwrites what was printed, a control for the direction of writing shows something else than is
// there, and a newline begins a line that looks like one of the program's own.
//
//	terminal.Fprintf(w, "%s %s\n", hit.Comm, site)
//
// The package writes such characters as Go does in string constants: \n, \x1b, \u202e, and \xff for a
// byte that is not of UTF-8. Other texts stay as they are, including backslashes; use JSON if the
// difference matters.
package terminal

import (
	"io"

	"github.com/bpfprologue/bpfprologue/internal/terminal"
)

// Text returns a text for one line: what a terminal shows as something else, or not at all, is
// replaced. That is what strconv.IsPrint says, and characters without a width.
func Text(s string) string { return terminal.Text(s) }

// Fprintf is fmt.Fprintf for untrusted arguments: each is printed as Text returns it. The
// format is the caller's own. An error that errors.Join made has a line for each of its errors.
//
// There is no result: use a writer that remembers its error, as bufio.Writer does.
func Fprintf(w io.Writer, format string, args ...any) { terminal.Fprintf(w, format, args...) }
