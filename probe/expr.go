package probe

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/syntax"
)

// taskNumbers are the names after "$" of KindTask.
var taskNumbers = []string{"pid", "tid", "uid", "gid", "cpu", "cgroup", "time"}

// maxArgument is the N of the last $argN.
const maxArgument = 64

// primary parses an operand and the path after it. expecting describes it in messages.
func (s *scanner) primary(expecting string) (syntax.Expr, error) {
	e := syntax.Expr{Pos: s.pos}
	var err error
	switch {
	case s.accept("$"):
		err = s.special(&e)
	case s.accept("%"):
		e.Kind = syntax.KindRegister
		if e.Name = s.identifier(); e.Name == "" {
			err = s.expected(`a register after "%"`)
		}
		if s.casted > 0 && e.Pos == s.casted {
			return e, err
		}
	case s.accept("@"):
		err = s.memory(&e)
	case s.accept(`\`):
		e.Kind = syntax.KindImmediate
		e.Number, err = s.signed("a number after the backslash")
	case s.at("("):
		if e, err = s.parentheses(); err != nil || e.Kind == syntax.KindCast && len(e.Path) == 0 && !s.atPath() {
			return e, err
		}
	case s.at(`"`):
		err = s.stringText(&e)
	case !s.atEnd() && isDigit(s.text[s.pos]):
		if s.bare() {
			return e, s.expected(expecting)
		}
		if ok, err := s.time(&e); ok {
			return e, err
		}
		if n := floatLen(s.rest()); n > 0 {
			e.Kind, e.Name = syntax.KindFloat, s.rest()[:n]
			s.pos += n
			return e, nil
		}
		if n := wideLen(s.rest()); n > 0 {
			e.Kind, e.Name = syntax.KindWide, s.rest()[:n]
			s.pos += n
			return e, nil
		}
		e.Kind = syntax.KindNumber
		at := s.pos
		e.Number, err = s.number("a number")
		e.Name = s.text[at:s.pos] // in C a hexadecimal number can have another type than a decimal one
	case s.at("'"):
		err = s.character(&e)
	default:
		if e.Name = s.identifier(); e.Name == "" {
			return e, s.expected(expecting)
		}
		if call := calls[e.Name]; call != nil && s.at("(") {
			err = call(s, &e)
		}
	}
	if err != nil {
		return e, err
	}
	return e, s.path(&e)
}

// special parses the name after "$".
func (s *scanner) special(e *syntax.Expr) error {
	at := s.pos
	name := s.identifier()
	for _, v := range syntax.Specials {
		if v.Name == name {
			e.Kind = v.Kind
			return nil
		}
	}
	if slices.Contains(taskNumbers, name) {
		e.Kind, e.Name = syntax.KindTask, name
		return nil
	}
	if n, ok := strings.CutPrefix(name, "stack"); ok && n != "" && (n == "0" || n[0] != '0') {
		// The kernel's limit is the size of a stack, in words.
		if v, err := strconv.ParseUint(n, 10, 32); err == nil && v < 1<<12 {
			e.Kind, e.Number = syntax.KindStack, v
			return nil
		}
	}
	if n, ok := strings.CutPrefix(name, "arg"); ok && n != "" && n[0] != '0' {
		if v, err := strconv.ParseUint(n, 10, 32); err == nil && v <= maxArgument {
			e.Kind, e.Number = syntax.KindArgument, v
			return nil
		}
	}
	s.pos = at
	return s.expected("argN, retval, duration, params, vars, comm, caller, frame, stack, stackN, pid, tid, uid, gid, cpu, cgroup or time after \"$\"")
}

// memory parses the text after "@".
func (s *scanner) memory(e *syntax.Expr) error {
	if !s.atEnd() && isDigit(s.text[s.pos]) {
		e.Kind = syntax.KindAddress
		var err error
		e.Number, err = s.number("an address after \"@\"")
		return err
	}
	e.Kind = syntax.KindSymbol
	start := s.pos
	for !s.atWordEnd() {
		if b := s.text[s.pos]; !isLetter(b) && b != '.' && b != '$' && (s.pos == start || !isDigit(b)) {
			break
		}
		s.pos++
	}
	if e.Name = s.text[start:s.pos]; e.Name == "" {
		return s.expected("a symbol or an address after \"@\"")
	}
	if s.at("+") || s.at("-") {
		var err error
		e.Number, err = s.signed("an offset in bytes")
		return err
	}
	return nil
}

// path parses the steps after a variable.
func (s *scanner) path(e *syntax.Expr) error {
	for {
		p := syntax.Step{Pos: s.pos}
		switch {
		case s.at(".."):
			return nil
		case len(e.Path) > 0 && e.Path[len(e.Path)-1].Kind == syntax.StepRange:
			if s.at("->") || s.at(".") || s.at("[") {
				return s.errorf(s.pos, "expected nothing of several elements, found %s", s.found())
			}
			return nil
		case s.at("->"), s.at("."), s.at("["):
			if !e.Kind.HasPath() {
				return s.errorf(s.pos, "expected no member or element of %q, whose type is not known, found %s", e.String(), s.found())
			}
		default:
			return nil
		}
		if s.accept("[") {
			p.Kind = syntax.StepIndex
			if err := s.index(&p); err != nil {
				return err
			}
		} else {
			if s.accept("->") {
				p.Kind = syntax.StepArrow
			} else {
				s.accept(".")
			}
			if p.Member = s.identifier(); p.Member == "" {
				return s.expected("the name of a member")
			}
		}
		e.Path = append(e.Path, p)
	}
}

// index parses the text after "[".
func (s *scanner) index(p *syntax.Step) error {
	s.nested++
	defer func() { s.nested-- }()
	s.skipSpace()
	at := s.pos
	e, err := s.binary(0, "an index: a number or an expression")
	if err != nil {
		return err
	}
	if n, is := e.Constant(); is {
		if p.Index = int64(n); p.Index >= 1<<31 || p.Index < -1<<31 {
			return s.errorf(at, "expected an index of no more than 31 bits, found %q", s.text[at:s.pos])
		}
	} else {
		p.IndexBy = &e
	}
	s.skipSpace()
	if s.accept("..") {
		p.Kind = syntax.StepRange
		to, err := s.binary(0, "where the elements end: a number or an expression")
		if err != nil {
			return err
		}
		p.To = &to
		s.skipSpace()
	}
	if !s.accept("]") {
		return s.expected(`"]" after the index`)
	}
	return nil
}

// floatLen returns the length of the number with a point or an exponent that a text begins with, or 0: 1.5, 0.25e-3, 1e6.
func floatLen(text string) int {
	digits := func(at int) int {
		for at < len(text) && isDigit(text[at]) {
			at++
		}
		return at
	}
	whole := digits(0)
	if whole == 0 {
		return 0
	}
	end := whole
	if whole+1 < len(text) && text[whole] == '.' && isDigit(text[whole+1]) {
		end = digits(whole + 1)
	}
	if end < len(text) && (text[end] == 'e' || text[end] == 'E') {
		exponent := end + 1
		if exponent < len(text) && (text[exponent] == '+' || text[exponent] == '-') {
			exponent++
		}
		if after := digits(exponent); after > exponent {
			end = after
		}
	}
	if end == whole {
		return 0
	}
	return end
}

// wideLen returns how many bytes a number of 65 to 128 bits has at the beginning of a text, or 0 if it is another one, or none.
func wideLen(text string) int {
	digits := text[:numberLen(text)]
	if n, ok := new(big.Int).SetString(digits, 0); ok && n.BitLen() > 64 && n.BitLen() <= 128 && (digits[0] != '0' || strings.HasPrefix(digits, "0x")) {
		return len(digits)
	}
	return 0
}

// number parses a number, decimal or hexadecimal. what describes it in messages.
func (s *scanner) number(what string) (uint64, error) {
	start := s.pos
	digits := s.rest()[:numberLen(s.rest())]
	if digits == "" || !isDigit(digits[0]) {
		return 0, s.expected(what)
	}
	number, base := digits, 10
	if hex, ok := strings.CutPrefix(digits, "0x"); ok {
		number, base = hex, 16
	} else if len(digits) > 1 && digits[0] == '0' {
		// To perf this is octal, to others decimal.
		return 0, s.errorf(start, "expected a decimal number without leading zeros, or one in hexadecimal with 0x, found %q", digits)
	}
	v, err := strconv.ParseUint(number, base, 64)
	if err != nil {
		return 0, s.errorf(start, "expected %s: a number of up to 64 bits, decimal or hexadecimal with 0x, found %q", what, digits)
	}
	s.pos += len(digits)
	return v, nil
}

// signed parses a number that may have a sign, as two's complement.
func (s *scanner) signed(what string) (uint64, error) {
	start := s.pos
	negative := s.accept("-")
	if !negative {
		s.accept("+")
	}
	v, err := s.number(what)
	if err == nil && negative {
		if v > 1<<63 {
			return 0, s.errorf(start, "expected %s of up to 64 bits, found %q", what, s.text[start:s.pos])
		}
		v = -v
	}
	return v, err
}
