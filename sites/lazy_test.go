package sites

import (
	"testing"
)

// TestLazy: as perf's strlazymatch (tools/perf/util/string.c): white space is
// passed over in both.
func TestLazy(t *testing.T) {
	for _, tt := range []struct {
		pattern, line string
		want          bool
	}{
		{"a=b;", "\ta = b;", true},
		{"a\\ =\\ b;", "\ta=b;", true},
		{"a=*", "  a  = f(x, y);  ", true},
		{"a=*", "  ba = 1", false},
		{"*ret*", "\treturn 0;", true},
		{"if(!x)", "if (!x)", true},
		{"if(!x)", "if (!x) {", false},
		{"\\*p=[01];", "*p = 1;", true},
		{"\\*p=[01];", "*p = 2;", false},
		{"s=\"\\\\n\"", `s = "\n"`, true}, // a backslash of the line is a character
	} {
		p, err := compileLazy(tt.pattern)
		if err != nil {
			t.Errorf("%q: %v", tt.pattern, err)
		} else if got := p.match(tt.line); got != tt.want {
			t.Errorf("%q matches %q: %v, want %v", tt.pattern, tt.line, got, tt.want)
		}
	}
	if _, err := compileLazy("a[b"); err == nil {
		t.Error("a class without its end is accepted")
	}
}
