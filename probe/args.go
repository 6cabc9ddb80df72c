package probe

import (
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/syntax"
)

func (s *scanner) args() ([]Arg, error) {
	var args []Arg
	for {
		s.skipSpace()
		if s.atEnd() {
			return args, s.nameArgs(args)
		}
		a, err := s.arg()
		if err != nil {
			return nil, err
		}
		args = append(args, a)
	}
}

// nameArgs names the arguments that have no name. Given names must be distinct. A name made from an
// expression gets a number if another argument has it; variables are named before others.
func (s *scanner) nameArgs(args []Arg) error {
	first := make(map[string]int) // position of the argument of each name
	for i := range args {
		a := &args[i]
		if a.Name == "" {
			continue
		}
		if pos, ok := first[a.Name]; ok {
			return s.errorf(a.Pos, "expected each argument name once, found %q again (first at column %d)", a.Name, pos+1)
		}
		first[a.Name] = a.Pos
	}
	for _, variables := range []bool{true, false} {
		for i := range args {
			a := &args[i]
			if a.Name != "" || variables && (a.Expr.Kind != syntax.KindVariable || len(a.Expr.Path) > 0) {
				continue
			}
			base := a.Expr.ArgName()
			a.Name = base
			for n := 2; ; n++ {
				if _, ok := first[a.Name]; !ok {
					break
				}
				a.Name = base + "_" + strconv.Itoa(n)
			}
			first[a.Name] = a.Pos
		}
	}
	return nil
}

func (s *scanner) arg() (Arg, error) {
	a := Arg{Pos: s.pos}
	expecting := "an argument ([NAME=]EXPRESSION[:TYPE])"
	if n := identifierLen(s.rest()); n > 0 && strings.HasPrefix(s.rest()[n:], "=") && !strings.HasPrefix(s.rest()[n:], "==") {
		a.Name = s.identifier()
		s.accept("=")
		expecting = "an expression after the argument's name"
	}
	var err error
	if a.Expr, err = s.binary(0, expecting); err != nil {
		return a, err
	}
	if a.Expr.Kind == syntax.KindCaller {
		a.Type.Kind = syntax.TypeSymbol
	}
	several := a.Expr.Kind.Several()
	if several && a.Name != "" {
		return a, s.errorf(a.Pos, "expected no name for %q, which stands for several arguments, found %q", a.Expr.String(), a.Name)
	}
	after := `":TYPE", "@user" or a space after the expression`
	if !several && s.accept(":") {
		if a.Type, err = s.typeSpec(); err != nil {
			return a, err
		}
		after = `"@user" or a space after the type`
	}
	if s.accept("@user") {
		a.User = true
		after = `a space after "@user"`
	}
	if several && !a.User {
		after = "a space after " + strconv.Quote(a.Expr.String())
	}
	if !s.atWordEnd() {
		return a, s.expected(after)
	}
	return a, nil
}

const aType = "a type (u8 to u64, s8 to s64, x8 to x64, u, s, x, char, bool, string, ustring, hex, symbol or bBITS@OFFSET/SIZE)"

// maxCount bounds arrays, as the kernel does (MAX_ARRAY_LEN in
// kernel/trace/trace_probe.h, 6.1).
const maxCount = 64

// typeSpec parses the type after ":".
func (s *scanner) typeSpec() (syntax.TypeSpec, error) {
	name := s.rest()[:numberLen(s.rest())]
	t := syntax.TypeSpec{Pos: s.pos}
	if name == "" {
		return t, s.expected(aType)
	}
	switch {
	case syntax.TypeNames[name] != syntax.TypeNone:
		t.Kind = syntax.TypeNames[name]
	case name[0] == 'b' && len(name) > 1 && isDigit(name[1]):
		return t, s.bitfield(&t)
	case syntax.NumberTypes[name[0]] != syntax.TypeNone:
		switch name[1:] {
		case "8", "16", "32", "64":
			t.Bits, _ = strconv.Atoi(name[1:])
			t.Kind = syntax.NumberTypes[name[0]]
		case "":
			t.Kind = syntax.NumberTypes[name[0]]
		}
	}
	if t.Kind == syntax.TypeNone {
		return t, s.expected(aType)
	}
	s.pos += len(name)
	if !s.at("[") {
		return t, nil
	}
	at := s.pos
	if t.Kind == syntax.TypeString || t.Kind == syntax.TypeUString || syntax.NumberTypes[name[0]] == t.Kind && t.Bits == 0 {
		return t, s.errorf(at, "expected no array of %q, found %s", name, s.found())
	}
	s.pos++
	n, err := s.number("the number of elements")
	if err != nil {
		return t, err
	}
	if n < 1 || n > maxCount {
		return t, s.errorf(at+1, "expected 1 to %d elements, found %q", maxCount, s.text[at+1:s.pos])
	}
	t.Count = int(n)
	if !s.accept("]") {
		return t, s.expected(`"]" after the number of elements`)
	}
	return t, nil
}

// bitfield parses bBITS@OFFSET/SIZE.
func (s *scanner) bitfield(t *syntax.TypeSpec) error {
	t.Kind = syntax.TypeBitfield
	at := s.pos
	s.pos++
	for _, part := range []struct {
		to          *int
		what, after string
	}{
		{&t.Bits, "the bits of a bit-field", "@"},
		{&t.Offset, "the offset of a bit-field, in bits", "/"},
		{&t.Container, "the size of what holds a bit-field, in bits", ""},
	} {
		n, err := s.number(part.what)
		if err != nil {
			return err
		}
		*part.to = int(min(n, 1<<16))
		if !s.accept(part.after) {
			return s.expected(strconv.Quote(part.after) + " after " + part.what)
		}
	}
	switch t.Container {
	case 8, 16, 32, 64:
		if t.Bits >= 1 && t.Bits+t.Offset <= t.Container {
			return nil
		}
	}
	return s.errorf(at, "expected bits that fit into a container of 8, 16, 32 or 64, found %q", s.text[at:s.pos])
}

func (a Arg) text() string {
	s := a.Expr.String()
	if s != "" && isDigit(s[0]) {
		s = "(" + s + ")" // without, only a larger expression begins with a number
	}
	if several := a.Expr.Kind.Several(); !several && a.Name != a.Expr.ArgName() {
		s = a.Name + "=" + s
	}
	if own := a.Expr.Kind == syntax.KindCaller && a.Type.Kind == syntax.TypeSymbol; a.Type.Kind != syntax.TypeNone && !own {
		s += ":" + a.Type.String()
	}
	if a.User {
		s += "@user"
	}
	return s
}
