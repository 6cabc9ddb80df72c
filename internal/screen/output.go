// Package screen is where answers go, and how they look there: standard output and standard error, which let nothing through that a
// terminal obeys; colors by what a part of an answer is; tables that fit, bars, a pager, and progress.
package screen

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/term"

	"github.com/bpfprologue/bpfprologue/internal/terminal"
)

// Whatever the tool prints goes through these two. Texts of others are made safe before, by
// terminal.Fprintf, which alone can tell a newline in a name from one of the tool's own; what was
// forgotten there is not obeyed by a terminal either.
var (
	Stdout io.Writer = &Printed{w: os.Stdout}
	Stderr io.Writer = &Printed{w: os.Stderr}
)

// drawn is standard error for progress, which is drawn over and over. No untrusted text is in it.
var drawn io.Writer = os.Stderr

// Redraw draws a text in the place of what is on the screen, line by line: a screen that is cleared before flickers. A line that is longer than
// the screen goes on in the next one, so it is cut.
func Redraw(text string) {
	const home, endLine, below = "\x1b[H", "\x1b[K", "\x1b[J"
	width := StdoutWidth()
	var b strings.Builder
	b.WriteString(home)
	for line := range strings.Lines(text) {
		line = terminal.Text(strings.TrimSuffix(line, "\n"))
		if r := []rune(line); width > 0 && len(r) > width {
			line = string(r[:width])
		}
		b.WriteString(line + endLine + "\n")
	}
	b.WriteString(below)
	_, _ = io.WriteString(os.Stdout, b.String()) // failing to draw is no reason to stop
}

// OnTerminal reports whether somebody sees what is drawn.
func OnTerminal() bool { return term.IsTerminal(int(os.Stderr.Fd())) }

// IsStdout reports whether a path leads to what standard output is.
func IsStdout(path string) bool {
	there, err := os.Stat(path)
	out, outErr := os.Stdout.Stat()
	return err == nil && outErr == nil && os.SameFile(there, out)
}

// StdoutTerminal reports whether somebody reads what is printed as it comes.
func StdoutTerminal() bool { return term.IsTerminal(int(os.Stdout.Fd())) }

// StdoutWidth returns how many characters a line of the terminal has, or 0 if it does not say.
func StdoutWidth() int {
	width, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// StdoutHeight returns how many lines the terminal has, or 0 if standard output is none.
func StdoutHeight() int {
	_, height, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 0
	}
	return max(height, 1)
}

// SetColored lets the tool's own colors through.
func SetColored(w io.Writer) {
	if p, ok := w.(*Printed); ok {
		p.colored = true
	}
}

// GiveTerminal gives a command the terminal. What it prints there is its own affair.
func GiveTerminal(c *exec.Cmd) { c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stderr, os.Stderr }

// giveScreen gives a pager the screen.
func giveScreen(c *exec.Cmd) { c.Stdout, c.Stderr = os.Stdout, os.Stderr }

// Flush flushes what was printed, with an error before. A writer's failure is reported once.
func Flush(w *bufio.Writer, err error) error {
	failed := w.Flush()
	if failed != nil && errors.Is(err, failed) {
		return err
	}
	return errors.Join(err, failed)
}
