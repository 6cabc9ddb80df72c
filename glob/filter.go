package glob

import (
	"strings"
)

// A filter is patterns combined with operators.
type filter struct {
	root *node
}

// A node is a pattern if op is 0. Else op is '!' with one operand, or '&' or '|' with two or
// more operands, none of which has the same op: a&(b&c) is one node with three operands.
type node struct {
	op       byte
	operands []*node
	pattern  *pattern
}

// maxDepth bounds the nesting of "!" and parentheses, and with it recursion.
const maxDepth = 100

// ParseFilter parses a filter: patterns combined with "!" (not), "&" (and) and
// "|" (or), which bind in this order, the tightest first, and parentheses. The
// Matcher is safe for concurrent use; its String is the filter in one canonical form,
// with single spaces around "&" and "|" and only the parentheses it needs. The error is
// an *Error.
//
// A pattern in a filter ends before a space, "!", "&", "|", "(" or ")". To match one of
// these characters, escape it with a backslash or put it in a class: between brackets they
// are ordinary, and the "!" of "[!a-z]" negates the class. (perf accepts only that one "!"
// there, and rejects a pattern such as "[&|]". It also takes any character after a
// backslash as escaped, even when that backslash is itself escaped.)
func ParseFilter(text string) (Matcher, error) {
	f, err := parseFilter(text)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func parseFilter(text string) (*filter, error) {
	p := filterParser{text: text}
	root, err := p.or(0)
	if err != nil {
		return nil, err
	}
	if p.pos < len(text) {
		return nil, p.unexpected("\"&\", \"|\" or the end")
	}
	return &filter{root}, nil
}

// Match reports whether the filter selects name.
func (f *filter) Match(name string) bool { return f.root.match(name) }

// Literal returns the only name that the filter selects when it consists of
// one pattern without special characters.
func (f *filter) Literal() (string, bool) {
	if f.root.op != 0 {
		return "", false
	}
	return f.root.pattern.Literal()
}

// String returns the filter in one canonical form: single spaces around "&"
// and "|", and only the parentheses it needs.
func (f *filter) String() string {
	var b strings.Builder
	f.root.print(&b)
	return b.String()
}

func (n *node) match(name string) bool {
	switch n.op {
	case '!':
		return !n.operands[0].match(name)
	case '&':
		for _, o := range n.operands {
			if !o.match(name) {
				return false
			}
		}
		return true
	case '|':
		for _, o := range n.operands {
			if o.match(name) {
				return true
			}
		}
		return false
	}
	return n.pattern.Match(name)
}

// binding returns how tightly an operator binds.
func (n *node) binding() int {
	switch n.op {
	case '|':
		return 1
	case '&':
		return 2
	}
	return 3
}

func (n *node) print(b *strings.Builder) {
	if n.op == 0 {
		b.WriteString(n.pattern.text)
		return
	}
	if n.op == '!' {
		b.WriteByte('!')
	}
	for i, o := range n.operands {
		if i > 0 {
			b.WriteByte(' ')
			b.WriteByte(n.op)
			b.WriteByte(' ')
		}
		if o.binding() < n.binding() {
			b.WriteByte('(')
			o.print(b)
			b.WriteByte(')')
		} else {
			o.print(b)
		}
	}
}

// A filterParser is always at a token or at the end, never at a space: every method skips the
// spaces after the text that it reads.
type filterParser struct {
	text string
	pos  int
}

func (p *filterParser) or(depth int) (*node, error) {
	return p.chain('|', func() (*node, error) { return p.and(depth) })
}

func (p *filterParser) and(depth int) (*node, error) {
	return p.chain('&', func() (*node, error) { return p.not(depth) })
}

// chain parses one or more operands with op between them.
func (p *filterParser) chain(op byte, operand func() (*node, error)) (*node, error) {
	p.skipSpace()
	var operands []*node
	for {
		o, err := operand()
		if err != nil {
			return nil, err
		}
		if o.op == op {
			operands = append(operands, o.operands...)
		} else {
			operands = append(operands, o)
		}
		if !p.accept(op) {
			break
		}
	}
	if len(operands) == 1 {
		return operands[0], nil
	}
	return &node{op: op, operands: operands}, nil
}

func (p *filterParser) not(depth int) (*node, error) {
	if depth > maxDepth {
		return nil, errorAt(p.text, p.pos, "expected no more than %d nested operators and parentheses", maxDepth)
	}
	if p.accept('!') {
		o, err := p.not(depth + 1)
		if err != nil {
			return nil, err
		}
		return &node{op: '!', operands: []*node{o}}, nil
	}
	if p.accept('(') {
		n, err := p.or(depth + 1)
		if err != nil {
			return nil, err
		}
		if !p.accept(')') {
			return nil, p.unexpected("\"&\", \"|\" or \")\"")
		}
		return n, nil
	}
	return p.pattern()
}

func (p *filterParser) pattern() (*node, error) {
	start, end := p.pos, p.pos
	for end < len(p.text) && !isOperator(p.text[end]) && !isSpace(p.text[end]) {
		switch p.text[end] {
		case '\\':
			end = min(end+2, len(p.text))
		case '[':
			// A class without its "]" extends to the end; compile reports it.
			var ok bool
			if end, ok = classEnd(p.text, end); !ok {
				end = len(p.text)
			}
		default:
			end++
		}
	}
	if start == end {
		return nil, p.unexpected("a pattern")
	}
	pattern, err := compile(p.text[start:end])
	if err != nil {
		e := err.(*Error)
		return nil, &Error{Text: p.text, Column: start + e.Column, Msg: e.Msg}
	}
	p.pos = end
	p.skipSpace()
	return &node{pattern: pattern}, nil
}

func (p *filterParser) accept(op byte) bool {
	if p.pos == len(p.text) || p.text[p.pos] != op {
		return false
	}
	p.pos++
	p.skipSpace()
	return true
}

func (p *filterParser) skipSpace() {
	for p.pos < len(p.text) && isSpace(p.text[p.pos]) {
		p.pos++
	}
}

func (p *filterParser) unexpected(want string) error {
	if p.pos == len(p.text) {
		return errorAt(p.text, p.pos, "expected %s, found the end", want)
	}
	return errorAt(p.text, p.pos, "expected %s, found %q", want, p.text[p.pos:p.pos+1])
}

func isOperator(b byte) bool {
	return b == '!' || b == '&' || b == '|' || b == '(' || b == ')'
}

func isSpace(b byte) bool {
	return b == ' ' || '\t' <= b && b <= '\r'
}
