package compute

import (
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// counted compares a string that has a length, or what points to one, with a text or a pattern. is is false for other operands.
func (c *computation) counted(of, with *syntax.Expr, isPattern bool) (n number, is bool, err error) {
	v, err := c.resolve(of)
	if err != nil {
		return n, false, err
	}
	t, err := v.Type.Complete()
	if err != nil {
		return n, false, err
	}
	if t.Kind == types.Pointer {
		if el, err := t.Elem(); err != nil {
			return n, false, err
		} else if t, err = el.Complete(); err != nil || !isRecord(t) {
			return n, false, err
		}
		if v, err = Follow(v, []syntax.Step{{Kind: syntax.StepIndex}}); err != nil {
			return n, false, err
		}
	}
	chars, length, err := TextOf(v, t, false)
	if err != nil || chars == nil {
		return n, false, err
	}
	at, err := c.numberOf(of, chars)
	if err != nil {
		return n, true, err
	}
	has, err := c.numberOf(of, length)
	if err != nil {
		return n, true, err
	}
	n = number{size: 4, signed: true}
	for _, r := range []loc.Reason{at.reason, has.reason} {
		if n.reason = r; r.Code != reasons.None {
			return n, true, nil
		}
	}
	parts := []pattern{{text: with.Name, any: make([]bool, len(with.Name))}}
	if isPattern {
		if parts, err = readParts(with); err != nil {
			return n, true, err
		}
	}
	first, last := &parts[0], &parts[len(parts)-1]
	size := c.ev.Const(uint64(len(first.text)))
	switch len(parts) {
	case 1:
		n.e = c.ev.Select(c.ev.Binary(ops.Eq, has.e, size), c.matchBytes(first, at.e), c.ev.Const(0))
	case 2:
		size = c.ev.Const(uint64(len(first.text) + len(last.text)))
		end := c.ev.Binary(ops.Sub, c.ev.Binary(ops.Add, at.e, has.e), c.ev.Const(uint64(len(last.text))))
		ends := c.ev.Select(c.matchBytes(first, at.e), c.matchBytes(last, end), c.ev.Const(0))
		n.e = c.ev.Select(c.ev.Binary(ops.UGe, has.e, size), ends, c.ev.Const(0))
	default:
		if !strings.HasPrefix(unqualified(t.Name), "basic_string<") { // which has a NUL after its characters
			return n, true, wrongAt(with, "a pattern for %v has one * at most", v.Type)
		}
		n.e = eval.Glob(at.e, 0, with.Name)
	}
	return n, true, nil
}

// readParts reads what is between the stars of a pattern.
func readParts(e *syntax.Expr) (out []pattern, err error) {
	from := 0
	part := func(to int) error {
		p, err := readPattern(&syntax.Expr{Kind: e.Kind, Name: e.Name[from:to], Pos: e.Pos})
		out = append(out, p)
		return err
	}
	for i := 0; i < len(e.Name); i++ {
		switch e.Name[i] {
		case '\\':
			i++
		case '*':
			if err := part(i); err != nil {
				return nil, err
			}
			from = i + 1
		}
	}
	return out, part(len(e.Name))
}

// matchBytes returns whether memory of at least so many bytes as a pattern has matches it. No byte after them is read.
func (c *computation) matchBytes(p *pattern, at *loc.Expr) *loc.Expr {
	number := func(b []byte) *loc.Expr { return c.ev.Const(bin.Uint(b, c.ev.BigEndian)) }
	result := c.ev.Const(1)
	for to := len(p.text); to > 0; {
		size := 8
		for size > to {
			size /= 2
		}
		from := to - size
		var text, mask [8]byte
		whole := true
		for k := range size {
			if whole = whole && !p.any[from+k]; !p.any[from+k] {
				text[k], mask[k] = p.text[from+k], 0xff
			}
		}
		word := c.ev.Deref(c.ev.Binary(ops.Add, at, c.ev.Const(uint64(from))), size)
		if !whole {
			word = c.ev.Binary(ops.And, word, number(mask[:size]))
		}
		result = c.ev.Select(c.ev.Binary(ops.Eq, word, number(text[:size])), result, c.ev.Const(0))
		to = from
	}
	return result
}
