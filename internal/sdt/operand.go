package sdt

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Argument is what a note says of one value.
type Argument struct {
	Text   string // as the assembler wrote it: "-4@%edi"
	Size   int    // bytes, or 0 if that is not known
	Signed bool
	Float  bool
	Loc    loc.Location
	Reason loc.Reason // why there is none
}

// maxArguments bounds those of one note: sys/sdt.h knows up to 12.
const maxArguments = 64

// Arguments returns what can be fetched at a place. symbol returns the link-time address of a symbol.
func (n *Note) Arguments(a *arch.Arch, bigEndian bool, symbol func(name string) (addr uint64, ok bool)) (out []Argument) {
	p := parser{a: a, symbol: symbol, b: eval.Builder{BigEndian: bigEndian, RegisterBytes: a.WordSize}}
	for _, text := range split(n.Args) {
		if len(out) == maxArguments {
			break
		}
		out = append(out, p.argument(text))
	}
	return out
}

// split cuts arguments at blanks that are not in brackets: arm64 has "-4@[sp, 12]".
func split(text string) (out []string) {
	depth, from := 0, 0
	for i := 0; i <= len(text); i++ {
		switch {
		case i == len(text) || text[i] == ' ' && depth == 0:
			if i > from {
				out = append(out, text[from:i])
			}
			from = i + 1
		case text[i] == '[' || text[i] == '(':
			depth++
		case text[i] == ']' || text[i] == ')':
			depth--
		}
	}
	return out
}

// parser reads operands as the assembler of an architecture writes them.
type parser struct {
	a      *arch.Arch
	symbol func(name string) (addr uint64, ok bool)
	b      eval.Builder
}

// argument reads N@OPERAND: N is the size in bytes, negative for what is signed, with an "f" for floating-point numbers.
func (p *parser) argument(text string) Argument {
	x := Argument{Text: text}
	size, operand, ok := strings.Cut(text, "@")
	size, x.Float = strings.CutSuffix(size, "f")
	n, err := strconv.Atoi(size)
	if !ok || err != nil || n == 0 || n < -8 || n > 8 {
		x.Reason = loc.Reason{Code: reasons.Unsupported, Detail: fmt.Sprintf("the note's argument %q does not say how many bytes it has", text)}
		return x
	}
	x.Size, x.Signed = max(n, -n), n < 0
	l, err := p.operand(operand, x.Size)
	switch {
	case err != nil:
		x.Reason = loc.Reason{Code: reasons.Unsupported, Detail: fmt.Sprintf("the note's argument %q: %v", text, err)}
	case l.Kind == loc.KindRegister:
		x.Reason = eval.CheckRegister(p.a, l.Expr.K)
	}
	if x.Reason.Code == reasons.None {
		x.Loc = l
	}
	return x
}

func (p *parser) operand(text string, size int) (l loc.Location, err error) {
	x86 := p.a.Name == "amd64" || p.a.Name == "i386"
	switch {
	case strings.HasPrefix(text, "["):
		return p.bracket(text)
	case strings.HasSuffix(text, ")"):
		return p.indirect(text)
	case x86 && strings.HasPrefix(text, "$"), strings.HasPrefix(text, "#"):
		return p.constant(text[1:])
	}
	if n, bytes, ok := p.register(text); ok {
		if bytes < size {
			return l, fmt.Errorf("it has more bytes than the register")
		}
		return loc.Location{Kind: loc.KindRegister, Expr: &loc.Expr{Op: ops.Reg, K: n}}, nil
	}
	if base, off, ok := strings.Cut(text, ","); ok { // loong64: $r3,8
		return p.based(base, off)
	}
	switch {
	case p.a.Name == "ppc64el":
		return l, fmt.Errorf("a number there can be a register or a constant")
	case x86:
		return p.absolute(text)
	}
	return p.constant(text)
}

func (p *parser) constant(text string) (l loc.Location, err error) {
	n, err := number(text)
	if err != nil {
		return l, fmt.Errorf("%q is no number", text)
	}
	return loc.Location{Kind: loc.KindConstant, Expr: p.b.Const(n)}, nil
}

func memory(e *loc.Expr) loc.Location { return loc.Location{Kind: loc.KindMemory, Expr: e} }

// absolute is memory at a symbol: "counter", "table+8".
func (p *parser) absolute(text string) (l loc.Location, err error) {
	addr, named, err := p.sum(text)
	if err != nil {
		return l, err
	}
	if !named {
		return l, fmt.Errorf("%q is no operand", text)
	}
	return memory(&loc.Expr{Op: ops.Addr, K: addr}), nil
}

// based is memory at a register plus an offset.
func (p *parser) based(base, off string) (l loc.Location, err error) {
	n, bytes, ok := p.register(strings.TrimSpace(base))
	if !ok || bytes < p.a.WordSize {
		return l, fmt.Errorf("%q is no register with an address", base)
	}
	by, err := number(strings.TrimPrefix(strings.TrimSpace(off), "#"))
	if err != nil {
		return l, fmt.Errorf("%q is no offset", off)
	}
	return memory(p.b.Register(n, int64(by))), nil
}

// bracket is memory as Arm's assemblers write it: [x0], [sp, 16], [x1, x2], [x1, x2, lsl 3].
func (p *parser) bracket(text string) (l loc.Location, err error) {
	parts := strings.Split(strings.TrimSuffix(text[1:], "]"), ",")
	if len(parts) == 1 {
		return p.based(parts[0], "0")
	}
	index, bytes, ok := p.register(strings.TrimSpace(parts[1]))
	if !ok && len(parts) == 2 {
		return p.based(parts[0], parts[1])
	}
	base, whole, isRegister := p.register(strings.TrimSpace(parts[0]))
	if !ok || !isRegister || bytes < p.a.WordSize || whole < p.a.WordSize {
		return l, fmt.Errorf("%q is not known", text)
	}
	scale := uint64(1)
	if len(parts) > 2 {
		shift, is := strings.CutPrefix(strings.TrimSpace(parts[2]), "lsl ")
		n, err := number(strings.TrimPrefix(shift, "#"))
		if !is || err != nil || n > 4 {
			return l, fmt.Errorf("%q is not known", text)
		}
		scale = 1 << n
	}
	return memory(p.indexed(base, index, scale, 0)), nil
}

// indexed is an address of a base, a register times a scale, and an offset.
func (p *parser) indexed(base, index, scale, off uint64) *loc.Expr {
	e := p.b.Register(index, 0)
	if scale > 1 {
		e = p.b.Binary(ops.Mul, e, p.b.Const(scale))
	}
	return p.b.Binary(ops.Add, p.b.Register(base, int64(off)), e)
}

// indirect is memory at OFFSET(BASE,INDEX,SCALE), of which the parts may be left out.
func (p *parser) indirect(text string) (l loc.Location, err error) {
	at := strings.LastIndexByte(text, '(')
	if at < 0 {
		return l, fmt.Errorf("%q is not known", text)
	}
	off, named := uint64(0), false
	if at > 0 {
		if off, named, err = p.sum(text[:at]); err != nil {
			return l, err
		}
	}
	parts := strings.Split(text[at+1:len(text)-1], ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	switch relative := parts[0] == "%rip" || parts[0] == "%eip"; {
	case named && relative && len(parts) == 1:
		return memory(&loc.Expr{Op: ops.Addr, K: off}), nil
	case named || relative:
		return l, fmt.Errorf("%q is not known", text)
	}
	if p.a.Name == "s390x" && len(parts) == 2 {
		parts[0], parts[1] = parts[1], parts[0] // which of the two is the base does not matter
	}
	if p.a.Name == "ppc64el" {
		parts[0] = "r" + strings.TrimLeft(parts[0], "%r")
	}
	base, bytes, ok := p.register(parts[0])
	if !ok || bytes < p.a.WordSize {
		return l, fmt.Errorf("%q is no register with an address", parts[0])
	}
	if len(parts) == 1 {
		return memory(p.b.Register(base, int64(off))), nil
	}
	index, bytes, ok := p.register(parts[1])
	scale := uint64(1)
	if len(parts) > 2 {
		scale, err = number(parts[2])
	}
	if !ok || bytes < p.a.WordSize || err != nil || scale != 1 && scale != 2 && scale != 4 && scale != 8 {
		return l, fmt.Errorf("%q is not known", text)
	}
	return memory(p.indexed(base, index, scale, off)), nil
}

// sum adds numbers and at most one symbol: "-8", "counter", "counter+8", "8+counter". named is set if there is a symbol.
func (p *parser) sum(text string) (sum uint64, named bool, err error) {
	for rest := text; rest != ""; {
		negative := rest[0] == '-'
		rest = strings.TrimLeft(rest, "+-")
		end := strings.IndexAny(rest, "+-")
		if end < 0 {
			end = len(rest)
		}
		word := rest[:end]
		rest = rest[end:]
		n, err := number(word)
		if err != nil {
			addr, ok := p.symbol(word)
			if named || negative || !ok {
				return 0, false, fmt.Errorf("there is no symbol %q", word)
			}
			n, named = addr, true
		}
		if negative {
			n = -n
		}
		sum += n
	}
	return sum, named, nil
}

// number reads a number of an assembler, with or without a sign, as two's complement.
func number(text string) (uint64, error) {
	if n, err := strconv.ParseInt(text, 0, 64); err == nil {
		return uint64(n), nil
	}
	return strconv.ParseUint(text, 0, 64)
}

// register returns the DWARF number of the register that an operand is, or is a part of, and how many low bytes it is.
func (p *parser) register(text string) (n uint64, bytes int, ok bool) {
	name := strings.TrimPrefix(text, "%")
	switch p.a.Name {
	case "amd64", "i386":
		if name == text {
			return 0, 0, false
		}
	case "loong64":
		name = strings.TrimPrefix(text, "$")
	}
	if r := p.a.RegisterByName(name); r != nil {
		return uint64(r.DWARF), p.a.WordSize, true
	}
	whole, bytes := part(p.a.Name, name)
	if r := p.a.RegisterByName(whole); whole != "" && r != nil {
		return uint64(r.DWARF), bytes, true
	}
	return 0, 0, false
}

// part returns the register that another one is the low bytes of, or "".
func part(architecture, name string) (whole string, bytes int) {
	switch architecture {
	case "arm64":
		if rest, ok := strings.CutPrefix(name, "w"); ok && rest != "sp" {
			return "x" + rest, 4
		} else if ok {
			return "sp", 4
		}
		return "", 0
	case "amd64", "i386":
	default:
		return "", 0
	}
	wide, size := "r", 8
	if architecture == "i386" {
		wide, size = "e", 4
	}
	if rest, ok := strings.CutPrefix(name, "r"); ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' { // r8d, r10b
		for suffix, n := range map[string]int{"d": 4, "w": 2, "b": 1} {
			if number, ok := strings.CutSuffix(rest, suffix); ok {
				return "r" + number, n
			}
		}
		return "", 0
	}
	if rest, ok := strings.CutPrefix(name, "e"); ok && size == 8 { // eax
		return wide + rest, 4
	}
	switch {
	case len(name) == 2 && (name[1] == 'x' || name[1] == 'i' || name[1] == 'p'): // ax, si, bp
		return wide + name, 2
	case len(name) == 2 && name[1] == 'l': // al
		return wide + name[:1] + "x", 1
	case len(name) == 3 && name[2] == 'l': // sil, bpl
		return wide + name[:2], 1
	}
	return "", 0
}
