package glob

import (
	"slices"
	"strings"
	"testing"
)

func TestFilterMatch(t *testing.T) {
	names := []string{"foo", "foobar", "fizzbar", "bar", "bard", "init"}
	for _, tt := range []struct {
		filter string
		want   string
	}{
		{"foo*", "foo foobar"},
		{"foo* | bar*", "foo foobar bar bard"},
		{"!foo* & *bar", "fizzbar bar"},
		{"!(foo* | bar*)", "fizzbar init"},
		{"!foo* | *bar", "foobar fizzbar bar bard init"},
		{"foo* & !*bar", "foo"},
		{"foo*&!*bar", "foo"},
		{"  foo*\t&\n!*bar ", "foo"},
		{"init | *bar & foo*", "foobar init"},
		{"(init | *bar) & foo*", "foobar"},
		{"foo* & *bar | init", "foobar init"},
		{"!!foo", "foo"},
		{"! ( ! foo )", "foo"},
		{"[!f]*", "bar bard init"},
		{"![!f]*", "foo foobar fizzbar"},
		{"[fb]* & !*[!r]", "foobar fizzbar bar"},
	} {
		f, err := ParseFilter(tt.filter)
		if err != nil {
			t.Errorf("ParseFilter(%q): %v", tt.filter, err)
			continue
		}
		var got []string
		for _, name := range names {
			if f.Match(name) {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, strings.Fields(tt.want)) {
			t.Errorf("%q selects %q, want %q", tt.filter, got, tt.want)
		}
	}
}

func TestFilterOperatorsAsCharacters(t *testing.T) {
	for _, tt := range []struct {
		filter, name string
	}{
		{`operator\!`, "operator!"},
		{`operator\(\)`, "operator()"},
		{`operator\ new`, "operator new"},
		{`a\&b\|c`, "a&b|c"},
		{"a[&|]b", "a|b"},
		{"a[ ()]b", "a b"},
		{"a[]!]b", "a!b"},
		{`a\\|x`, `a\`},
	} {
		f, err := ParseFilter(tt.filter)
		if err != nil {
			t.Errorf("ParseFilter(%q): %v", tt.filter, err)
		} else if !f.Match(tt.name) {
			t.Errorf("%q does not match %q", tt.filter, tt.name)
		}
	}
}

func TestFilterString(t *testing.T) {
	for _, tt := range []struct{ filter, want string }{
		{"foo*", "foo*"},
		{" ( ( foo* ) ) ", "foo*"},
		{"a&b|c", "a & b | c"},
		{"a&(b|c)", "a & (b | c)"},
		{"(a&b)|c", "a & b | c"},
		{"a&(b&c)", "a & b & c"},
		{"(a|b)|(c|d)", "a | b | c | d"},
		{"!(a|b)&c", "!(a | b) & c"},
		{"!(a)&!(!(b))", "!a & !!b"},
		{`!a\ b`, `!a\ b`},
	} {
		f, err := ParseFilter(tt.filter)
		if err != nil {
			t.Errorf("ParseFilter(%q): %v", tt.filter, err)
		} else if f.String() != tt.want {
			t.Errorf("%q prints as %q, want %q", tt.filter, f, tt.want)
		}
	}
}

// equal reports whether n and m are the same expression over the same patterns.
func equal(n, m *node) bool {
	if n.op != m.op || n.op == 0 {
		return n.op == m.op && n.pattern.text == m.pattern.text
	}
	return slices.EqualFunc(n.operands, m.operands, equal)
}

func TestFilterEqual(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"a|(b|c)", "(a | b) | c", true},
		{"a & b", "b & a", false},
		{"a & b", "a | b", false},
		{"a & b", "a & b & c", false},
		{"!a", "a", false},
		{"a", "a*", false},
	} {
		f, err := parseFilter(tt.a)
		if err != nil {
			t.Fatal(err)
		}
		g, err := parseFilter(tt.b)
		if err != nil {
			t.Fatal(err)
		}
		if equal(f.root, g.root) != tt.want || equal(g.root, f.root) != tt.want {
			t.Errorf("%q and %q: equal is not %v", tt.a, tt.b, tt.want)
		}
	}
}

func TestFilterError(t *testing.T) {
	deep := strings.Repeat("(", maxDepth+1)
	for _, tt := range []struct{ filter, want string }{
		{"", `column 1: expected a pattern, found the end: pattern ""`},
		{"  ", `column 3: expected a pattern, found the end: pattern "  "`},
		{"a &", `column 4: expected a pattern, found the end: pattern "a &"`},
		{"a && b", `column 4: expected a pattern, found "&": pattern "a && b"`},
		{"| a", `column 1: expected a pattern, found "|": pattern "| a"`},
		{"()", `column 2: expected a pattern, found ")": pattern "()"`},
		{"(a", `column 3: expected "&", "|" or ")", found the end: pattern "(a"`},
		{"(a b)", `column 4: expected "&", "|" or ")", found "b": pattern "(a b)"`},
		{"a)", `column 2: expected "&", "|" or the end, found ")": pattern "a)"`},
		{"a b", `column 3: expected "&", "|" or the end, found "b": pattern "a b"`},
		{"a!b", `column 2: expected "&", "|" or the end, found "!": pattern "a!b"`},
		{"a & [b", `column 5: expected a class with its "]" (in a name "[" needs a backslash), found "[b": pattern "a & [b"`},
		{"a & [z-a]", `column 6: expected a range from low to high, found "z-a": pattern "a & [z-a]"`},
		{`a & b\`, `column 7: expected a character after the backslash, found the end: pattern "a & b\\"`},
		{deep + "a", `column 102: expected no more than 100 nested operators and parentheses: pattern "` + deep + `a"`},
	} {
		f, err := ParseFilter(tt.filter)
		if f != nil || err == nil {
			t.Errorf("ParseFilter(%q) = %v, %v, want an error", tt.filter, f, err)
		} else if err.Error() != tt.want {
			t.Errorf("ParseFilter(%q)\n got %s\nwant %s", tt.filter, err, tt.want)
		}
	}
}

func FuzzFilter(f *testing.F) {
	for _, seed := range []string{
		"foo* & !*bar",
		"!(a*|b*)",
		"a|b&c|!(d|e)&!!f",
		`[!a-z&|]*\ \! | x[]!]`,
		"((a))",
		`a\\|b`,
		"a & (b & (c | d | (e | f)))",
		strings.Repeat("!(", 60) + "a",
	} {
		f.Add(seed, "foo")
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		filter, err := parseFilter(text)
		if err != nil {
			if filter != nil {
				t.Fatalf("ParseFilter(%q) returns a filter and the error %v", text, err)
			}
			if e := err.(*Error); e.Column < 1 || e.Column > len(text)+1 || e.Text != text {
				t.Fatalf("ParseFilter(%q): misplaced error %+v", text, e)
			}
			return
		}
		printed := filter.String()
		again, err := parseFilter(printed)
		if err != nil {
			t.Fatalf("%q prints as %q: %v", text, printed, err)
		}
		if !equal(again.root, filter.root) || again.String() != printed {
			t.Fatalf("%q prints as %q, which reads as %q", text, printed, again)
		}
		if filter.Match(name) != again.Match(name) {
			t.Fatalf("%q and %q disagree about %q", text, printed, name)
		}
		opposite, err := ParseFilter("!(" + text + ")")
		if err == nil && opposite.Match(name) == filter.Match(name) {
			t.Fatalf("%q and its opposite agree about %q", text, name)
		}
	})
}
