package cname

import (
	"testing"
)

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"page": "page", "a.b->c": "a_b__c", "9p": "_9p", "": "_", "register": "register_", "app::f<int>": "app__f_int_", "é": "_", "a\nb": "a_b", "linux": "linux_", "bool": "bool_", "\xff": "_",
	} {
		if got := Identifier(name); got != want {
			t.Errorf("Identifier(%q) = %q, want %q", name, got, want)
		}
	}
	if got := Word("register"); got != "register" {
		t.Errorf("Word(%q) = %q", "register", got)
	}
}

// TestComment checks that no text ends the comment that it is written in, or leaves its
// line.
func TestComment(t *testing.T) {
	for text, want := range map[string]string{
		"f */ int x; /*":       `f *\/ int x; /\*`,
		"f\n#define f g\r\t":   `f\n#define f g\r\t`,
		"**/":                  `**\/`,
		"/*/":                  `/\*\/`,
		"a\\":                  `a\.`,
		"a??/":                 "a??/.",
		"\ufeff\u202e\xff\x00": `\ufeff\u202e\xff\x00`,
	} {
		if got := Comment(text); got != want {
			t.Errorf("Comment(%q) = %q, want %q", text, got, want)
		}
	}
}
