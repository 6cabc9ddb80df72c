package glob

import (
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/nametest"
)

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern   string
		matches   []string
		unmatched []string
	}{
		{"get_page", []string{"get_page"}, []string{"", "get_pag", "get_pages", "xget_page", "Get_page"}},
		{"*", []string{"", "a", "get_page"}, nil},
		{"**", []string{"", "a"}, nil},
		{"?", []string{"a", "*"}, []string{"", "ab"}},
		{"??*", []string{"ab", "abc"}, []string{"", "a"}},
		{"get_*", []string{"get_", "get_page"}, []string{"get", "xget_"}},
		{"*_page", []string{"_page", "get_page"}, []string{"page", "get_pages"}},
		{"my_func_*_abcd", []string{"my_func__abcd", "my_func_1_abcd", "my_func_abcd_abcd"}, []string{"my_func_abcd", "my_func_1_abc"}},
		{"a*b*c", []string{"abc", "aXbXc", "abbcc", "abcbc"}, []string{"ab", "acb", "abcd"}},
		{"*a?c*", []string{"abc", "xxaacbc", "aac"}, []string{"ac", "bca"}},
		{"*ab*ab*", []string{"abab", "xabxabx"}, []string{"ab", "aab"}},
		{"aa*aa", []string{"aaaa", "aaxaa"}, []string{"aa", "aaa"}},
		{"x[abc]", []string{"xa", "xc"}, []string{"x", "xd", "xab"}},
		{"x[a-c0]", []string{"xa", "xb", "xc", "x0"}, []string{"xd", "x-"}},
		{"x[!a-c]", []string{"xd", "x!", "x]"}, []string{"xa", "xb", "x"}},
		{"x[a!]", []string{"xa", "x!"}, []string{"xb"}},
		{"[]]", []string{"]"}, []string{"", "[]]"}},
		{"[]a]x", []string{"]x", "ax"}, []string{"bx"}},
		{"[!]a]", []string{"b", "["}, []string{"]", "a"}},
		{"[a-]", []string{"a", "-"}, []string{"b"}},
		{"[-a]", []string{"a", "-"}, []string{"b"}},
		{"[--0]", []string{"-", ".", "0"}, []string{"1"}},
		{"[a-c-e]", []string{"a", "c", "d", "e"}, []string{"-", "f"}},
		{"[]-a]", []string{"]", "^", "_", "`", "a"}, []string{"b", "-"}},
		{"[!-0]", []string{"1"}, []string{"-", "0"}},
		{`[\]`, []string{`\`}, []string{"]"}},
		{`[\*]`, []string{`\`, "*"}, []string{"a"}},
		{`a\*b`, []string{"a*b"}, []string{"axb", `a\*b`}},
		{`\[a]`, []string{"[a]"}, []string{"a"}},
		{`\\`, []string{`\`}, []string{`\\`}},
		{"a]", []string{"a]"}, []string{"a"}},
		{"a!", []string{"a!"}, []string{"a"}},
		{"*[0-9].isra.?", []string{"f1.isra.0"}, []string{"f.isra.0", "f1.isra.10"}},
		{"caf??", []string{"caf\u00e9"}, []string{"cafe"}}, // characters are bytes
	} {
		p, err := Compile(tt.pattern)
		if err != nil {
			t.Errorf("Compile(%q): %v", tt.pattern, err)
			continue
		}
		for _, name := range tt.matches {
			if !p.Match(name) {
				t.Errorf("%q does not match %q", tt.pattern, name)
			}
		}
		for _, name := range tt.unmatched {
			if p.Match(name) {
				t.Errorf("%q matches %q", tt.pattern, name)
			}
		}
	}
}

func TestCompileError(t *testing.T) {
	for _, tt := range []struct{ pattern, want string }{
		{"", `column 1: expected a pattern, found the end: pattern ""`},
		{"ab[", `column 3: expected a class with its "]" (in a name "[" needs a backslash), found "[": pattern "ab["`},
		{"ab[!", `column 3: expected a class with its "]" (in a name "[" needs a backslash), found "[!": pattern "ab[!"`},
		{"a[]", `column 2: expected a class with its "]" (in a name "[" needs a backslash), found "[]": pattern "a[]"`},
		{"a[!]b", `column 2: expected a class with its "]" (in a name "[" needs a backslash), found "[!]b": pattern "a[!]b"`},
		{"a[x-", `column 2: expected a class with its "]" (in a name "[" needs a backslash), found "[x-": pattern "a[x-"`},
		{"a[xz-a]", `column 4: expected a range from low to high, found "z-a": pattern "a[xz-a]"`},
		{`ab\`, `column 4: expected a character after the backslash, found the end: pattern "ab\\"`},
	} {
		p, err := Compile(tt.pattern)
		if p != nil || err == nil {
			t.Errorf("Compile(%q) = %v, %v, want an error", tt.pattern, p, err)
		} else if err.Error() != tt.want {
			t.Errorf("Compile(%q)\n got %s\nwant %s", tt.pattern, err, tt.want)
		}
	}
}

func TestPlain(t *testing.T) {
	for pattern, want := range map[string]string{
		"get_page": "get_page", "get_p*ge": "get_pge", "get_p[a-c]ge?": "get_pge", `get\_page`: "get_page", `a\`: "a",
		"get_pag[": "get_pag", "*": "", "": "", "[]]x": "x",
	} {
		if got := Plain(pattern); got != want {
			t.Errorf("Plain(%q) = %q, want %q", pattern, got, want)
		}
	}
}

func TestLiteral(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		ok            bool
	}{
		{"get_page", "get_page", true},
		{`operator\*`, "operator*", true},
		{`a\\b`, `a\b`, true},
		{"a]b", "a]b", true},
		{"get_*", "", false},
		{"*", "", false},
		{"get?page", "", false},
		{"get[_]page", "", false},
	} {
		p, err := Compile(tt.pattern)
		if err != nil {
			t.Fatal(err)
		}
		f, err := ParseFilter(tt.pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []Matcher{p, f} {
			if name, ok := m.Literal(); name != tt.name || ok != tt.ok {
				t.Errorf("%T(%q).Literal() = %q, %v, want %q, %v", m, tt.pattern, name, ok, tt.name, tt.ok)
			}
		}
	}
}

// Backtracking at every star would not end before the stars themselves do.
func TestMatchManyStars(t *testing.T) {
	p, err := Compile(strings.Repeat("a*", 500) + "[b]*c")
	if err != nil {
		t.Fatal(err)
	}
	if p.Match(strings.Repeat("a", 20000)) {
		t.Error("matches a name without b and c")
	}
}

func TestMatchAllocates(t *testing.T) {
	var m []Matcher
	for _, text := range []string{"get_page", "get_*", "*p?ge*[a-z]", "*_*_*"} {
		p, err := Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		m = append(m, p)
	}
	f, err := ParseFilter("get_* & !(*_init | *[0-9])")
	if err != nil {
		t.Fatal(err)
	}
	m = append(m, f)
	n := testing.AllocsPerRun(10, func() {
		for _, m := range m {
			m.Match("get_page_from_freelist")
		}
	})
	if n != 0 {
		t.Errorf("Match allocates %v times", n)
	}
}

// matchSlowly follows the pattern's definition one character at a time and
// tries every length for a star.
func matchSlowly(pattern, name string) bool {
	if pattern == "" {
		return name == ""
	}
	if pattern[0] == '*' {
		return matchSlowly(pattern[1:], name) || name != "" && matchSlowly(pattern, name[1:])
	}
	if name == "" {
		return false
	}
	c, rest := name[0], name[1:]
	switch pattern[0] {
	case '?':
		return matchSlowly(pattern[1:], rest)
	case '\\':
		return pattern[1] == c && matchSlowly(pattern[2:], rest)
	case '[':
		set, negated := strings.CutPrefix(pattern[1:], "!")
		n := 1 + strings.IndexByte(set[1:], ']')
		set, pattern = set[:n], set[n+1:]
		found := false
		for i := range len(set) {
			switch {
			case i > 0 && i+1 < len(set) && set[i] == '-' && !isHighEnd(set, i):
				found = found || set[i-1] <= c && c <= set[i+1]
			default:
				found = found || set[i] == c
			}
		}
		return found != negated && matchSlowly(pattern, rest)
	}
	return pattern[0] == c && matchSlowly(pattern[1:], rest)
}

// isHighEnd reports whether set[i] is the high end of a range, as the second
// "-" of "+--" is.
func isHighEnd(set string, i int) bool {
	return i >= 2 && set[i-1] == '-' && !isHighEnd(set, i-1)
}

func FuzzMatch(f *testing.F) {
	for _, seed := range [][2]string{
		{"get_page", "get_page"},
		{"a*b?c*", "aXXbXcYY"},
		{"*ab*ab", "ababab"},
		{"[]a-c-e!]*[!x-]", "dy"},
		{"[+---0]", "-"},
		{`\*\[*`, "*[x"},
		{"my_func_*_abcd", "my_func_abcd_abcd"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		p, err := Compile(pattern)
		if err != nil {
			if p != nil {
				t.Fatalf("Compile(%q) returns a pattern and the error %v", pattern, err)
			}
			if e := err.(*Error); e.Column < 1 || e.Column > len(pattern)+1 {
				t.Fatalf("Compile(%q): column %d is outside", pattern, e.Column)
			}
			return
		}
		if literal, ok := p.Literal(); ok {
			if !p.Match(literal) || p.Match(name) != (name == literal) {
				t.Fatalf("literal %q, Match(%q) = %v", literal, name, p.Match(name))
			}
		}
		// The definition takes exponential time.
		if strings.Count(pattern, "*") > 5 || len(name) > 40 || len(pattern) > 60 {
			return
		}
		if got, want := p.Match(name), matchSlowly(pattern, name); got != want {
			t.Fatalf("%q matches %q: %v, want %v", pattern, name, got, want)
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	names := nametest.Kernel(60000)
	for _, pattern := range []string{"tcp_sendmsg", "tcp_*", "*_sendmsg", "*send*", "*s?nd*[a-m]*"} {
		p, err := Compile(pattern)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(pattern, func(b *testing.B) {
			for b.Loop() {
				for _, name := range names {
					p.Match(name)
				}
			}
		})
	}
}
