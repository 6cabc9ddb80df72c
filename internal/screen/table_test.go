package screen

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/terminal"
)

// TestOneRow: a row alone looks as it does below an equal one.
func TestOneRow(t *testing.T) {
	for _, cells := range [][]any{
		{"name", "type", "answer"}, {"", "a", ""}, {"a", ""}, {"größe·функция", "b"}, {"a\tb\nc", "d\v\fe", "f"}, {"one"},
		{terminal.Styled{Text: "a", SGR: "1"}, terminal.Styled{Text: "b\x1b[m", SGR: "32"}},
	} {
		for _, width := range []int{0, 9} {
			var one, two bytes.Buffer
			x := Table{Width: width, Indent: "    "}
			x.Row(cells...)
			if err := x.Print(&one); err != nil {
				t.Fatal(err)
			}
			x.Row(cells...)
			x.Row(cells...)
			if err := x.Print(&two); err != nil {
				t.Fatal(err)
			}
			if one.String()+one.String() != two.String() {
				t.Errorf("%q: got %q, want half of %q", cells, one.String(), two.String())
			}
		}
	}
	x := Table{}
	x.Row("a", "b")
	r, w := io.Pipe()
	wanted := errors.New("it is full")
	_ = r.CloseWithError(wanted)
	if err := x.Print(w); !errors.Is(err, wanted) {
		t.Errorf("got %v", err)
	}
}
