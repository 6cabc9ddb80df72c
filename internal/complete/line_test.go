package complete

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseLine(t *testing.T) {
	for _, c := range []struct {
		text  string
		words []string
		quote byte
	}{
		{"", []string{""}, 0},
		{"prolog-dump ", []string{"prolog-dump", ""}, 0},
		{"prolog-dump trace 'vfs_read fi", []string{"prolog-dump", "trace", "vfs_read fi"}, '\''},
		{"prolog-dump trace 'vfs_read file' ", []string{"prolog-dump", "trace", "vfs_read file", ""}, 0},
		{`p "a \$b \n c`, []string{"p", `a $b \n c`}, '"'},
		{`p a\ b'c d'"e"f`, []string{"p", "a bc def"}, 0},
		{"cd x && p -k vm", []string{"p", "-k", "vm"}, 0},
		{"p ''", []string{"p", ""}, 0},
		{`p x\`, []string{"p", "x"}, 0},
	} {
		l := ParseLine(c.text)
		if d := cmp.Diff(c.words, l.Words); d != "" || l.Quote != c.quote {
			t.Errorf("%q: quote %q, words (-want +got):\n%s", c.text, l.Quote, d)
		}
	}
}

// TestActs: what a shell would act on is told from what it leaves as it is.
func TestActs(t *testing.T) {
	for text, want := range map[string]byte{
		`a b 'c $d; *' "e|f"`: 0, `a\ b\$c`: 0, `a#b c~ d=e`: 0, "a $b": '$', `a "$b"`: '$', "a; b": ';', "a | b": '|', "a *.c": '*', "a > b": '>', "a ~/b": '~', "a # b": '#', "a `b`": '`',
	} {
		if l := ParseLine(text); l.Acts != want {
			t.Errorf("%s: %q, want %q", text, l.Acts, want)
		}
	}
}

func TestBash(t *testing.T) {
	for _, c := range []struct{ line, word, want string }{
		{"p 'vfs_read fi", "vfs_read file->", "vfs_read file->"},
		{`p "vfs_read $v`, "vfs_read $vars", `vfs_read \$vars`},
		{"p vfs_r", "vfs_read", "vfs_read"},
		{"p vfs_read:", "vfs_read:6", "6"},
		{"p app::f", "app::f<int>", `f\<int\>`},
	} {
		l := ParseLine(c.line)
		if got, ok := l.Bash(c.word); !ok || got != c.want {
			t.Errorf("%s: %q, %v, want %q", c.line, got, ok, c.want)
		}
	}
	for line, word := range map[string]string{"p 'a": "a'b", "p 'a'b": "abc"} {
		l := ParseLine(line)
		if got, ok := l.Bash(word); ok {
			t.Errorf("%s: %q", line, got)
		}
	}
}

// FuzzParseLine: what is typed is never lost, but for quotes, backslashes and what separates words; and what
// completes the last word leads to a line with that word.
func FuzzParseLine(f *testing.F) {
	for _, s := range []string{"p 'vfs_read fi", `p "a\$b`, `p a\ b'c d'"e"f`, "cd x && p -k vm", "p x:y=z"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l := ParseLine(text)
		if len(l.Words) == 0 {
			t.Fatal("no word")
		}
		last := l.Words[len(l.Words)-1]
		if l.Quote != '\'' || strings.ContainsAny(last, "'\n") {
			return
		}
		done, ok := l.Bash(last + "more")
		if !ok || done != last+"more" {
			t.Fatalf("%q: %q, %v", text, done, ok)
		}
		if again := ParseLine(text + "more' "); again.Words[len(again.Words)-2] != last+"more" {
			t.Fatalf("%q: %q", text, again.Words)
		}
	})
}
