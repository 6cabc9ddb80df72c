package sites

import (
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/glob"
)

// Go writes types into the names of generic functions, between brackets, as it writes the receivers of
// methods with a star: "main.(*Stack[go.shape.int]).Push". Patterns have both signs for something else.
// So a name that is given as it stands is that function's too, and "[...]", which Go prints for types that it
// leaves out, stands for any.

// bracketed matches what a pattern with brackets matches, and names as Go writes them.
type bracketed struct {
	pattern dwarfloc.Matcher
	name    string
	generic glob.Matcher // with types left out, or nil
}

// withBrackets returns the matcher for a pattern's text, or m if the text has no brackets.
func withBrackets(text string, m dwarfloc.Matcher) dwarfloc.Matcher {
	if !strings.Contains(text, "[") {
		return m
	}
	b := bracketed{pattern: m, name: text}
	const leftOut = "[...]"
	if strings.Contains(text, leftOut) {
		parts := strings.Split(text, leftOut)
		for i := range parts {
			parts[i] = strings.NewReplacer(`*`, `\*`, `[`, `\[`).Replace(parts[i])
		}
		b.generic, _ = glob.Compile(strings.Join(parts, `\[*\]`)) // what does not compile matches nothing
	}
	return b
}

func (b bracketed) Match(name string) bool {
	return b.pattern.Match(name) || name == b.name || b.generic != nil && b.generic.Match(name)
}

func (b bracketed) Literal() (string, bool) { return "", false }
