package screen

import (
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/bpfprologue/bpfprologue/internal/terminal"
)

// Table is rows of cells in columns. On a terminal its rows are no longer than a line of it, if that takes no more than
// to shorten cells in their middle. Those of the last column, which have the answer, are always whole.
type Table struct {
	Width  int    // of a line in characters; 0: lines have any length
	Indent string // before each row
	rows   [][]terminal.Styled
	line   []byte // what printOne has printed last
}

const (
	gap      = 2  // between two columns
	shortest = 12 // a column that is not wider is not shortened
)

// Row adds a row. Cells are strings or terminal.Styled. All cells of a column but the last have one role, or their
// sequences would count as characters.
func (t *Table) Row(cells ...any) {
	row := make([]terminal.Styled, len(cells))
	for i, c := range cells {
		switch c := c.(type) {
		case terminal.Styled:
			row[i] = terminal.Styled{Text: terminal.Text(c.Text), SGR: c.SGR}
		case string:
			row[i] = terminal.Styled{Text: terminal.Text(c)}
		}
	}
	t.rows = append(t.rows, row)
}

// Print writes the rows, and forgets them.
func (t *Table) Print(w io.Writer) error {
	if t.Width > 0 {
		t.fit()
	}
	if len(t.rows) == 1 { // as most sites have: there is nothing to align
		return t.printOne(w)
	}
	out := tabwriter.NewWriter(w, 0, 0, gap, ' ', 0)
	for _, row := range t.rows {
		terminal.Fprintf(out, "%s", t.Indent)
		for i, c := range row {
			if i > 0 {
				terminal.Fprintf(out, "\t")
			}
			terminal.Fprintf(out, "%s", c)
		}
		terminal.Fprintf(out, "\n")
	}
	t.rows = nil
	return out.Flush()
}

// printOne is Print for one row.
func (t *Table) printOne(w io.Writer) error {
	line := append(t.line[:0], t.Indent...)
	for i, c := range t.rows[0] {
		if i > 0 {
			line = append(line, strings.Repeat(" ", gap)...)
		}
		line = c.Append(line)
	}
	t.line, t.rows = append(line, '\n'), t.rows[:0]
	_, err := w.Write(t.line)
	return err
}

// fit shortens cells until every row fits.
func (t *Table) fit() {
	var widths []int
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.Text))
		}
	}
	total := len(t.Indent) + gap*(len(widths)-1)
	for _, w := range widths {
		total += w
	}
	for total > t.Width {
		widest := 0
		for i := range widths[:len(widths)-1] {
			if widths[i] > widths[widest] {
				widest = i
			}
		}
		if len(widths) == 1 || widths[widest] <= shortest {
			break
		}
		widths[widest]--
		total--
	}
	for _, row := range t.rows {
		for i := range row[:min(len(row), len(widths)-1)] {
			row[i].Text = shortened(row[i].Text, widths[i])
		}
	}
}

// shortened returns a text of at most n characters, with the beginning and the end of s.
func shortened(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	head := (n - 1) * 2 / 3
	return strings.TrimRight(string(r[:head]), " ") + "…" + string(r[len(r)-(n-1-head):])
}
