package terminal

import (
	"strings"
	"testing"
)

func TestStyled(t *testing.T) {
	for _, c := range []struct {
		s    Styled
		want string
	}{
		{Styled{"a\x1b[2Jb", "32"}, "\x1b[32ma\\x1b[2Jb\x1b[0m"},
		{Styled{"a\nb", ""}, `a\nb`},
		{Styled{"", "1;31"}, ""},
		{Styled{"a", "2J\x1b"}, "a"}, // no parameters of SGR
	} {
		var b strings.Builder
		Fprintf(&b, "%s", c.s)
		if b.String() != c.want {
			t.Errorf("%q: got %q, want %q", c.s, b.String(), c.want)
		}
	}
}
