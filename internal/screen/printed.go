package screen

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/bpfprologue/bpfprologue/internal/terminal"
)

// Printed is a writer that prints all but lines and tabs as terminal.Text does.
type Printed struct {
	mu   sync.Mutex // warnings come from any goroutine
	w    io.Writer
	rest []byte // the beginning of a character, whose end the next Write has
	out  []byte // what was written last

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
	out := p.out[:0]
	for len(b) > 0 {
		line, _, more := bytes.Cut(b, []byte{'\n'})
		if b = b[len(line):]; harmless(line) {
			out = append(out, line...)
		} else {
			out = append(out, p.safeLine(string(line))...)
		}
		if more {
			out, b = append(out, '\n'), b[1:]
		}
	}
	p.out = out
	return out
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
