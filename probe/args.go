package probe

import (
	"strconv"
	"strings"
)

func (s *scanner) args() ([]Arg, error) {
	var args []Arg
	first := make(map[string]int) // position of the argument of each name
	for {
		s.skipSpace()
		if s.atEnd() {
			return args, nil
		}
		a, err := s.arg()
		if err != nil {
			return nil, err
		}
		if pos, ok := first[a.Name]; ok {
			return nil, s.errorf(a.Pos, "expected each argument name once, found %q again (first at column %d)", a.Name, pos+1)
		}
		first[a.Name] = a.Pos
		args = append(args, a)
	}
}

func (s *scanner) arg() (Arg, error) {
	a := Arg{Pos: s.pos}
	expecting := "an argument ([NAME=]VARIABLE[:TYPE])"
	if n := identifierLen(s.rest()); n > 0 && strings.HasPrefix(s.rest()[n:], "=") {
		a.Name = s.identifier()
		s.accept("=")
		expecting = "a variable behind the argument's name"
	}
	var err error
	if a.Expr, err = s.expr(expecting); err != nil {
		return a, err
	}
	if a.Name == "" {
		a.Name = a.Expr.Name
	}
	behind := `":TYPE" or a space behind the variable`
	if s.accept(":") {
		if a.Type, err = s.typeSpec(); err != nil {
			return a, err
		}
		behind = "a space behind the type"
	}
	if !s.atWordEnd() {
		if a.Type.Kind != NoType && s.at("[") {
			return a, s.unsupported(behind, "an array is")
		}
		return a, s.expected(behind)
	}
	return a, nil
}

// expr parses what to fetch; expecting says for messages what stands here.
func (s *scanner) expr(expecting string) (Expr, error) {
	e := Expr{Pos: s.pos}
	if e.Name = s.identifier(); e.Name == "" {
		for _, u := range []struct{ prefix, form string }{
			{"$", "a special variable ($retval, $params, $vars and others) is"},
			{"%", "a register (%REG) is"},
			{"@", "a symbol or an address (@SYMBOL) is"},
			{`\`, `an immediate value (\VALUE) is`},
			{"(", "a type cast is"},
		} {
			if s.at(u.prefix) {
				return e, s.unsupported(expecting, u.form)
			}
		}
		if rest := s.rest(); len(rest) > 1 && (rest[0] == '+' || rest[0] == '-') && isDigit(rest[1]) {
			return e, s.unsupported(expecting, "memory at an offset (+OFFSET(...)) is")
		}
		return e, s.expected(expecting)
	}
	for _, u := range []struct{ prefix, form string }{
		{"->", "a member (VARIABLE->MEMBER) is"},
		{".", "a member (VARIABLE.MEMBER) is"},
		{"[", "an array element (VARIABLE[INDEX]) is"},
		{"@", "user memory (VARIABLE@user) is"},
	} {
		if s.at(u.prefix) {
			return e, s.unsupported(`":TYPE" or a space behind the variable`, u.form)
		}
	}
	return e, nil
}

const aType = "a type (u8, u16, u32, u64, s8 to s64 or x8 to x64)"

// typeSpec parses the type behind ":".
func (s *scanner) typeSpec() (TypeSpec, error) {
	name := s.rest()[:numberLen(s.rest())]
	t := TypeSpec{Pos: s.pos}
	if name == "" {
		return t, s.expected(aType)
	}
	switch name[1:] {
	case "8", "16", "32", "64":
		t.Bits, _ = strconv.Atoi(name[1:])
		switch name[0] {
		case 'u':
			t.Kind = Unsigned
		case 's':
			t.Kind = Signed
		case 'x':
			t.Kind = Hex
		}
	}
	if t.Kind == NoType {
		switch {
		case name == "char", name == "bool", name == "string", name == "ustring", name == "symbol", name == "symstr":
			return t, s.unsupported(aType, "this type is")
		case name[0] == 'b' && len(name) > 1 && isDigit(name[1]):
			return t, s.unsupported(aType, "a bit-field (bBITS@OFFSET/SIZE) is")
		}
		return t, s.expected(aType)
	}
	s.pos += len(name)
	return t, nil
}
