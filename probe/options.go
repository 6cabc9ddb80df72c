package probe

import (
	"errors"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/suggest"
)

var optionNames = []string{"doubt", "exec", "force", "if", "ifmissing", "inlines", "module"}

const anOption = "an option (doubt=, exec=, force=, if=, ifmissing=, inlines= or module=)"

// options parses all options and stops before the event.
//
// Text that ends with a semicolon is an option. A line end is ambiguous, as it may also
// separate arguments: "func=foo" and a line end may begin a definition or be a mistyped
// option. So a line is an option if its name is that of an option, or nearly: definitions in
// several lines work, and "modul=ext4" is reported.
func (s *scanner) options() (Options, error) {
	o := defaultOptions()
	seen := make(map[string]bool)
	for {
		s.skipSpace()
		end := s.optionEnd()
		if end < 0 {
			return o, nil
		}
		if err := s.option(&o, seen, end); err != nil {
			return o, err
		}
		s.pos = end + 1
	}
}

// optionEnd returns the position of the terminator of the option at the scanner's position, or
// -1 if there is no option.
func (s *scanner) optionEnd() int {
	rest := s.rest()
	end := indexPlain(rest, ";\n")
	if end >= 0 && rest[end] == '\n' {
		name, _, ok := strings.Cut(rest[:end], "=")
		if name = strings.Trim(name, white); !ok || suggest.Word(name, optionNames) == "" {
			end = indexPlain(rest, ";")
		}
	}
	if end < 0 || lazyPoint(rest[:end], rest[end+1:]) {
		return -1
	}
	return s.pos + end
}

// lazyPoint reports whether the semicolon between two texts begins a lazy pattern: the
// first is one word and no option, and the second goes on at once. After an event's
// name, which could be a mistyped option's, the pattern must not look like a definition:
// "f=g;i=0" needs a backslash, "f=g;i\=0".
func lazyPoint(before, after string) bool {
	name, _, ok := strings.Cut(before, "=")
	switch {
	case before == "" || indexPlain(before, white) >= 0:
		return false
	case after == "", isSpace(after[0]):
		return false
	}
	near := suggest.Word(name, optionNames)
	if !ok {
		return near != name || name == "" // an option has a value
	}
	return near == "" && !LooksLikeDefinition(after)
}

// option parses the option that ends before end.
func (s *scanner) option(o *Options, seen map[string]bool, end int) error {
	start := s.pos
	name, value, ok := strings.Cut(s.text[start:end], "=")
	valueAt := start + len(name) + 1
	name = strings.TrimRight(name, white)
	valueAt += len(value) - len(strings.TrimLeft(value, white))
	value = strings.Trim(value, white)

	if !ok || name == "" || suggest.Word(name, optionNames) != name {
		return s.notAnOption(name, end)
	}
	if seen[name] {
		return s.errorf(start, "expected each option once, found %q again", name)
	}
	seen[name] = true
	if seen["exec"] && seen["module"] {
		return s.errorf(start, "expected exec or module, found both")
	}

	switch name {
	case "if":
		return s.condition(o, valueAt, valueAt+len(value))
	case "ifmissing":
		if value != "pass" && value != "drop" {
			return s.errorf(valueAt, "expected pass or drop after %q, found %q", name+"=", value)
		}
		o.Pass = value == "pass"
	case "doubt":
		if value != "missing" && value != "keep" {
			return s.errorf(valueAt, "expected missing or keep after %q, found %q", name+"=", value)
		}
		o.KeepDoubt = value == "keep"
	case "exec", "module":
		if value == "" {
			what := "a path"
			if name == "module" {
				what = "the name or path of a module"
			}
			return s.errorf(valueAt, "expected %s after %q, found the end of the option", what, name+"=")
		}
		if name == "exec" {
			o.Exec = value
		} else {
			o.Module = value
		}
	case "inlines", "force":
		if value == "" {
			return s.errorf(valueAt, "expected yes or no after %q, found the end of the option", name+"=")
		}
		if value != "yes" && value != "no" {
			return s.errorf(valueAt, "expected yes or no after %q, found %q", name+"=", value)
		}
		if name == "inlines" {
			o.Inlines = value == "yes"
		} else {
			o.Force = value == "yes"
		}
	}
	return nil
}

// condition parses the value of "if=", which is the text from start to end.
func (s *scanner) condition(o *Options, start, end int) error {
	in := scanner{text: s.text[:end], pos: start, nested: 1}
	e, err := in.binary(0, "a condition")
	if err == nil {
		in.skipSpace()
		if !in.atEnd() {
			what := "an operator or the end of the condition"
			if in.at("=") {
				what += " (== compares)"
			}
			err = in.expected(what)
		}
	}
	if err == nil && len(e.Conjuncts()) > maxConjuncts {
		err = in.errorf(start, "expected at most %d conditions that && combines", maxConjuncts)
	}
	var at *Error
	if errors.As(err, &at) {
		at.Text = s.text
	}
	o.If = &e
	return err
}

// maxConjuncts keeps conditions, which each site has, small.
const maxConjuncts = 64

// notAnOption returns the error for the text up to end, which begins with name, in place of an
// option.
func (s *scanner) notAnOption(name string, end int) error {
	if name == "" {
		return s.expected(anOption)
	}
	hint := ""
	if near := suggest.Word(name, optionNames); near != "" && near != name {
		hint = "; did you mean \"" + near + "\"?"
	} else if after := strings.Trim(s.text[end+1:], white); after == "" {
		hint = "; a definition itself ends without a semicolon"
	}
	before := "the semicolon"
	if s.text[end] == '\n' {
		before = "the end of the line"
	}
	return s.errorf(s.pos, "expected %s before %s, found %q%s", anOption, before, name, hint)
}
