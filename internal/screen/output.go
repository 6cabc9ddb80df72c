// Package screen is where answers go, and how they look there: standard output and standard error, which let nothing through that a
// terminal obeys; colors by what a part of an answer is; tables that fit, bars, a pager, and progress.
package screen

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"unicode/utf8"

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

// Raw is standard output for what moves a table to the top of a terminal.
var Raw io.Writer = os.Stdout

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

// Lend lends a command the terminal. What it prints there is its own affair.
func Lend(c *exec.Cmd) { c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stderr, os.Stderr }

// lendScreen lends a pager the screen.
func lendScreen(c *exec.Cmd) { c.Stdout, c.Stderr = os.Stdout, os.Stderr }

// Printed is a writer that prints all but lines and tabs as terminal.Text does.
type Printed struct {
	mu   sync.Mutex // warnings come from any goroutine
	w    io.Writer
	rest []byte // the beginning of a character, whose end the next Write has

	colored bool  // the tool's own colors are obeyed
	err     error // of the first Write that failed
}

// NewPrinted returns a writer that lets the tool's own colors through, or none.
func NewPrinted(w io.Writer, colored bool) *Printed { return &Printed{w: w, colored: colored} }

// Failed returns the error of the first Write that failed.
func (p *Printed) Failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *Printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := b
	if len(p.rest) > 0 {
		all = append(p.rest, b...)
	}
	whole := wholeCharacters(all)
	p.rest = append([]byte(nil), all[whole:]...)
	if _, err := p.w.Write(p.safe(all[:whole])); err != nil {
		p.err = cmp.Or(p.err, err)
		return 0, err
	}
	return len(b), nil
}

// wholeCharacters returns the length of a text without the character that it ends in, if that is not
// all there.
func wholeCharacters(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if at := len(b) - n; utf8.RuneStart(b[at]) {
			if utf8.FullRune(b[at:]) {
				return len(b)
			}
			return at
		}
	}
	return len(b)
}

// safe returns a text of several lines without what a terminal obeys, but for the tool's colors.
func (p *Printed) safe(b []byte) []byte {
	if harmless(b) {
		return b
	}
	lines := strings.Split(string(b), "\n")
	for i := range lines {
		lines[i] = p.safeLine(lines[i])
	}
	return []byte(strings.Join(lines, "\n"))
}

// Flush flushes what was printed, with an error before. A writer's failure is reported once.
func Flush(w *bufio.Writer, err error) error {
	failed := w.Flush()
	if failed != nil && errors.Is(err, failed) {
		return err
	}
	return errors.Join(err, failed)
}

// harmless reports whether a text has only printable ASCII, newlines and tabs. Hundreds of megabytes
// are looked at, eight bytes at a time: of each, what is below the blank and above the tilde.
func harmless(b []byte) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for len(b) >= 8 {
		w := binary.LittleEndian.Uint64(b)
		if (w|(w+ones)|(w-ones*' ')&^w)&highs != 0 {
			for _, c := range b[:8] {
				if c != '\n' && c != '\t' && c < ' ' || c > '~' {
					return false
				}
			}
		}
		b = b[8:]
	}
	for _, c := range b {
		if c != '\n' && c != '\t' && c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

func (p *Printed) safeLine(line string) string {
	if !p.colored {
		return terminal.Line(line)
	}
	var b strings.Builder
	for line != "" {
		n := strings.IndexByte(line[1:], '\x1b') + 1 // of what is before the next sequence
		if at := renditionAt(line); at > 0 {
			b.WriteString(line[:at])
			line = line[at:]
			continue
		}
		if n <= 0 {
			n = len(line)
		}
		b.WriteString(terminal.Line(line[:n]))
		line = line[n:]
	}
	return b.String()
}
