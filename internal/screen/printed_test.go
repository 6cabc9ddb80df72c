package screen

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/terminal"
)

// TestForeignColors: only the tool's own sequences pass, and only where it colors.
func TestForeignColors(t *testing.T) {
	var b strings.Builder
	p := &Printed{w: &b, colored: true}
	var styled strings.Builder
	terminal.Fprintf(&styled, "%s", Look{Colored: true}.Styled(RoleName, "a"))
	own := styled.String()
	if own != "\x1b[36ma\x1b[0m" {
		t.Errorf("styled: %q", own)
	}
	if _, err := p.Write([]byte(own + "\x1b[8mhidden\x1b[2J\x1b]0;title\a\n")); err != nil {
		t.Fatal(err)
	}
	if want := own + `\x1b[8mhidden\x1b[2J\x1b]0;title\a` + "\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestTable(t *testing.T) {
	tab := Table{Width: 40, Indent: "  "}
	tab.Row("a", "const struct a_rather_long_name<with, arguments> *", "%rdi")
	tab.Row("another", "int", "a last column is whole, however long it is")
	var b strings.Builder
	if err := tab.Print(&b); err != nil {
		t.Fatal(err)
	}
	const want = "  a        const s…s> *  %rdi\n  another  int           a last column is whole, however long it is\n"
	if b.String() != want {
		t.Errorf("got:\n%swant:\n%s", b.String(), want)
	}
}

// TestPrinted: the writer behind everything passes lines, and characters in parts.
func TestPrinted(t *testing.T) {
	var b bytes.Buffer
	p := &Printed{w: &b}
	for _, part := range []string{"a\n\tä", "\xc3", "\xa4\x1b[m\xe2\x80", "\xaeb\xff\n", "\xf0\x9f\x98", "\x80"} {
		if _, err := io.WriteString(p, part); err != nil {
			t.Fatal(err)
		}
	}
	if want := "a\n\tää\\x1b[m\\u202eb\\xff\n\U0001f600"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}
