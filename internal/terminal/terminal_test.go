package terminal

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "",
		"plain text, ~ and \\n":             `plain text, ~ and \n`,
		"größe·функция·関数":                  "größe·функция·関数",
		"\x1b]0;owned\x07":                  `\x1b]0;owned\a`,
		"a\nb\r\tc\x00\x7f":                 `a\nb\r\tc\x00\x7f`,
		"\u009b31m\u0085":                   `\u009b31m\u0085`,
		"\u202a\u202e\u2066\u2069\u200e":    `\u202a\u202e\u2066\u2069\u200e`,
		"\u200b\u200d\ufeff\u034f\ufe0f":    `\u200b\u200d\ufeff\u034f\ufe0f`,
		"\u3164\u115f\U000e0001\U000e0100":  `\u3164\u115f\U000e0001\U000e0100`,
		"\u00a0\u2028\u2029\ue000\ufffe":    `\u00a0\u2028\u2029\ue000\ufffe`,
		"\xff\xc3(\xed\xa0\x80\xf4\x90\x80": `\xff\xc3(\xed\xa0\x80\xf4\x90\x80`,
		"a true \ufffd":                     "a true \ufffd",
	} {
		if got := Text(text); got != want {
			t.Errorf("Text(%q) = %s, want %s", text, got, want)
		}
	}
	if got := Line("\tx = 1;\r\x1b[m\v"); got != "\tx = 1;\\r\\x1b[m\\v" {
		t.Errorf("Line: %q", got)
	}
}

// TestTextLeavesNothing: of all characters those that stay are visible, and are what they look like.
func TestTextLeavesNothing(t *testing.T) {
	for r := range rune(unicode.MaxRune + 1) {
		s := string(r)
		if !utf8.ValidRune(r) || Text(s) != s {
			continue
		}
		if r != ' ' && !unicode.IsPrint(r) || unicode.In(r, unicode.Bidi_Control, unicode.Join_Control, unicode.C, unicode.Zl, unicode.Zp) {
			t.Errorf("%U stays", r)
		}
	}
}

type named string

func (n named) String() string { return string(n) }

func TestFprintf(t *testing.T) {
	const evil = "f\x1b[m\nforged"
	joined := errors.Join(errors.New("one "+evil), &fs.PathError{Op: "open", Path: "a\nb", Err: fs.ErrNotExist})
	for _, tt := range []struct {
		format string
		args   []any
		want   string
	}{
		{"%s|%v\n", []any{evil, evil}, `f\x1b[m\nforged|f\x1b[m\nforged` + "\n"},
		{"%q", []any{evil}, `"f\x1b[m\nforged"`},
		{"%q", []any{"\ufe0f"}, `"\ufe0f"`},
		{"%-8s|%8s|%.2s|", []any{"a\n", "\n", "a\nb"}, `a\n     |      \n|a\n|`},
		{"%-8s|%3d|%03d|%#x|%5.1f|%t|%c|%c", []any{"ab", 7, uint8(7), uint64(255), 1.25, true, 'x', '\x1b'}, `ab      |  7|007|0xff|  1.2|true|x|\x1b`},
		{"%v %s", []any{named(evil), []string{"a\n", "b"}}, `f\x1b[m\nforged [a\n b]`},
		{"%v", []any{[]byte("\n")}, "[10]"},
		{"%s", []any{[]byte("\n")}, `\n`},
		{"%v", []any{2 * time.Second}, "2s"},
		{"%d", []any{evil}, `%!d(string=f\x1b[m\nforged)`},
		{"%v\n", []any{joined}, `one f\x1b[m\nforged` + "\n" + `open a\nb: file does not exist` + "\n"},
		{"%v", []any{fmt.Errorf("%s: %w", evil, joined)}, `f\x1b[m\nforged: one f\x1b[m\nforged` + "\n" + `open a\nb: file does not exist`},
		{"%v", []any{fmt.Errorf("%w\n%w", fs.ErrExist, errors.New("x\ny"))}, "file already exists\nx\\ny"},
		{"%v", []any{fmt.Errorf("%w and\n%w", fs.ErrExist, errors.New("x\ny"))}, `file already exists and\nx\ny`},
		{"%v %v", []any{nil, error(nil)}, "<nil> <nil>"},
	} {
		var b strings.Builder
		Fprintf(&b, tt.format, tt.args...)
		if b.String() != tt.want {
			t.Errorf("Fprintf(%q, %q):\n%s, want\n%s", tt.format, tt.args, b.String(), tt.want)
		}
	}
}
