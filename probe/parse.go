package probe

import (
	"strings"
)

// Parse parses a definition as on a command line, where the event's name may be left out. The
// error is an *Error.
func Parse(text string) (*Definition, error) { return parse(text, false) }

// ParseSection parses the section name of a BPF program, which must name the
// event. The error is an *Error.
func ParseSection(name string) (*Definition, error) { return parse(name, true) }

// LooksLikeDefinition reports whether a section name is meant as a definition: it begins with
// an identifier, or two with a colon between them, and "=". No section name of libbpf's does
// ("kprobe/foo", "uprobe//bin/x:foo", "xdp"), nor that of a section without a program
// (".text", "license"). Whether it is valid is up to ParseSection.
func LooksLikeDefinition(section string) bool {
	s := scanner{text: section}
	s.skipSpace()
	if s.identifier() == "" {
		return false
	}
	if s.accept(":") && s.identifier() == "" {
		return false
	}
	s.skipSpace()
	return s.at("=")
}

func parse(text string, needEvent bool) (*Definition, error) {
	s := &scanner{text: text}
	for i := range len(text) {
		if c := text[i]; c < ' ' && !isSpace(c) || c == 0x7f {
			return nil, s.errorf(i, "expected text, found the control character %q", c)
		}
	}
	d := &Definition{Text: text}
	var err error
	if d.Options, err = s.options(); err != nil {
		return nil, err
	}
	if d.Group, d.Event, err = s.event(needEvent); err != nil {
		return nil, err
	}
	if d.Point, err = s.point(); err != nil {
		return nil, err
	}
	if d.Args, err = s.args(); err != nil {
		return nil, err
	}
	return d, nil
}

// event parses "GROUP:EVENT=" or "EVENT=". If there is none and none is needed it returns ""
// and stays where it is.
func (s *scanner) event(need bool) (group, event string, err error) {
	if !hasEvent(s.word()) {
		if need {
			return "", "", s.errorf(s.pos, "expected EVENT= before the function, as in %q, found %s", "func=get_page page", s.found())
		}
		return "", "", nil
	}
	if event = s.identifier(); event == "" {
		return "", "", s.expected("an event name")
	}
	if s.accept(":") {
		group = event
		if event = s.identifier(); event == "" {
			return "", "", s.expected("an event name after the group")
		}
	}
	if !s.accept("=") {
		what := `"=" after the event name`
		if group == "" {
			what = `":" or "=" after the event name`
		}
		return "", "", s.expected(what)
	}
	return group, event, nil
}

// hasEvent reports whether word contains the "=" that ends an event's name. An "=" in a class,
// after a backslash, in the name of a source file or in a lazy pattern is not that.
func hasEvent(word string) bool {
	n := strings.IndexAny(word, `=@[\;`)
	return n >= 0 && word[n] == '=' && !strings.Contains(word[:n], "::") // which is in a qualified name
}
