package compute

import (
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// Comparisons with texts. A text of a definition is compared 8 bytes at a time, so that the most common
// ones, of up to 7 characters, are one number; only a pattern with "*" inside is a machine of its own.

// isText reports whether an operand is a text.
func isText(e *syntax.Expr) bool { return e != nil && e.Kind == syntax.KindString }

// textWord returns up to 8 bytes of a text as the number that memory with them and zeros is.
func (c *computation) textWord(text string) uint64 {
	var d [8]byte
	copy(d[:], text)
	return bin.Uint(d[:], c.ev.BigEndian)
}

// byteAt returns byte k of a number that is 8 bytes of memory.
func (c *computation) byteAt(w *loc.Expr, k int) *loc.Expr {
	if c.ev.BigEndian {
		k = 7 - k
	}
	return c.ev.Binary(ops.And, c.ev.Binary(ops.Shr, w, c.ev.Const(uint64(8*k))), c.ev.Const(0xff))
}

// pattern is a text to compare with: characters, of which some can be any.
type pattern struct {
	text string
	any  []bool // of each byte: "?"
	open bool   // more may follow
	glob string // the pattern itself, if that is not all
}

// readPattern reads the right side of a comparison with ~.
func readPattern(e *syntax.Expr) (p pattern, err error) {
	var text []byte
	for i := 0; i < len(e.Name); i++ {
		b, wild := e.Name[i], false
		switch b {
		case '\\':
			if i++; i == len(e.Name) {
				return p, wrongAt(e, "a pattern does not end with a backslash")
			}
			b = e.Name[i]
		case '?':
			wild = true
		case '*':
			if i < len(e.Name)-1 {
				return pattern{glob: e.Name}, nil
			}
			p.open = true
			continue
		}
		text, p.any = append(text, b), append(p.any, wild)
	}
	p.text = string(text)
	return p, nil
}

// compareText computes A == "TEXT", A != "TEXT" and A ~ "PATTERN".
func (c *computation) compareText(e *syntax.Expr) (n number, err error) {
	of, with := e.A, e.B
	if isText(of) && e.Name != "~" {
		of, with = with, of
	}
	if !isText(with) || isText(of) || e.Name != "==" && e.Name != "!=" && e.Name != "~" {
		return n, wrongAt(e, "a text is compared with ==, != or ~, and with a string, a char *, an array of char or $comm")
	}
	p := pattern{text: with.Name, any: make([]bool, len(with.Name))}
	if e.Name == "~" {
		if p, err = readPattern(with); err != nil {
			return n, err
		}
	}
	if n, err = c.matches(of, with, &p, e.Name == "~"); err == nil && e.Name == "!=" {
		n.e = c.not(&n)
	}
	return n, err
}

// matches returns whether a text is the one of a definition, or matches its pattern p.
func (c *computation) matches(of, with *syntax.Expr, p *pattern, isPattern bool) (n number, err error) {
	n = number{size: 4, signed: true}
	if of.Kind == syntax.KindComm && len(of.Path) == 0 {
		if p.glob != "" {
			n.e = eval.Glob(nil, commSize, p.glob)
			return n, nil
		}
		n.e = c.match(p, commSize, func(i int) *loc.Expr {
			return c.ev.Task(ops.TaskComm + ops.TaskNumber(i))
		})
		return n, nil
	}
	if n, is, err := c.counted(of, with, isPattern); is || err != nil {
		return n, err
	}
	at, most, reason, err := c.text(of)
	if err != nil && !isPattern {
		return n, c.quoted(of, with, err)
	}
	if err != nil {
		return n, err
	}
	if n.reason = reason; reason.Code != reasons.None {
		return n, nil
	}
	if p.glob != "" {
		n.e = eval.Glob(at, most, p.glob)
		return n, nil
	}
	n.e = c.match(p, most, func(i int) *loc.Expr {
		return c.ev.Text(c.ev.Binary(ops.Add, at, c.ev.Const(uint64(8*i))))
	})
	return n, nil
}

// quoted returns the error for a comparison of what is no string, which err says, with a text that may have been meant for an enumerator.
func (c *computation) quoted(of, with *syntax.Expr, err error) error {
	if _, found, no := inside.Enumerator(c.s, with.Name); no == nil && found {
		return wrongAt(of, "it is no string: write %s without quotes", with.Name)
	}
	names, enum := c.enumerators(of)
	if len(names) == 0 {
		return err
	}
	wrong := wrongAt(with, "%s has no %q", enum, with.Name).(*Mismatch)
	wrong.Members = names
	return wrong
}

// enumerators returns the names of an operand's values, and its type, if that is an enumeration.
func (c *computation) enumerators(e *syntax.Expr) (names []string, of string) {
	v, err := c.resolve(e)
	if err != nil {
		return nil, ""
	}
	t, err := v.Type.Resolve()
	if err != nil {
		return nil, ""
	}
	all, err := t.Enumerators()
	if err != nil {
		return nil, "" // it is about a name: another error says more
	}
	for _, x := range all {
		names = append(names, x.Name)
	}
	return names, v.Type.String()
}

// not returns whether a number is 0.
func (c *computation) not(n *number) *loc.Expr {
	if n.reason.Code != reasons.None {
		return nil
	}
	return c.ev.Binary(ops.Eq, n.e, c.ev.Const(0))
}

// commSize is the size in bytes of a task's name, its NUL included (TASK_COMM_LEN in the kernel's
// include/linux/sched.h).
const commSize = 16

// text returns the address of a string, and how many bytes it can have, or 0.
func (c *computation) text(e *syntax.Expr) (at *loc.Expr, most int, r loc.Reason, err error) {
	v, err := c.resolve(e)
	if err != nil {
		return nil, 0, r, err
	}
	t, err := v.Type.Resolve()
	if err != nil {
		return nil, 0, r, err
	}
	if t.Kind == types.Pointer || t.Kind == types.Array {
		el, err := t.Elem()
		if err != nil {
			return nil, 0, r, err
		}
		if el, err = el.Resolve(); err != nil {
			return nil, 0, r, err
		}
		void := t.Kind == types.Pointer && el.Kind == types.Void
		if !void && (el.Size != 1 || el.Kind != types.Char && el.Kind != types.Int) {
			return nil, 0, r, wrongAt(e, "%v is no string", v.Type)
		}
	} else if v.Role != dwarfloc.RoleGiven {
		return nil, 0, r, wrongAt(e, "%v is no string", v.Type)
	}
	if v.Role == dwarfloc.RoleGiven && v.Type == types.WordType && v.Loc.Kind == loc.KindMemory {
		return v.Loc.Expr, 0, v.Reason, nil // as @symbol and +8(%di) are
	}
	n, err := c.numberOf(e, v)
	if t.Kind == types.Array {
		most = int(max(t.Size, 0))
	}
	return n.e, most, n.reason, err
}

// match returns whether a string of at most so many bytes, or any number, matches. word returns
// 8 bytes of it, zeros after its NUL.
func (c *computation) match(p *pattern, most int, word func(i int) *loc.Expr) *loc.Expr {
	length := len(p.text)
	end := !p.open && (most == 0 || length < most) // its NUL is compared too
	if most > 0 && length > most {
		return c.ev.Const(0)
	}
	if end {
		length++
	}
	result := c.ev.Const(1)
	for i := (length - 1) / 8; i >= 0 && length > 0; i-- {
		from, to := 8*i, min(8*i+8, length)
		var mask [8]byte
		text := make([]byte, 8)
		result = func() *loc.Expr {
			w := word(i)
			all := true
			rest := result
			for k := from; k < to; k++ {
				if k < len(p.text) && p.any[k] {
					all = false
					rest = c.ev.Select(c.ev.Binary(ops.Ne, c.byteAt(w, k-from), c.ev.Const(0)), rest, c.ev.Const(0))
					continue
				}
				mask[k-from] = 0xff
				if k < len(p.text) {
					text[k-from] = p.text[k]
				}
			}
			x := w
			if !all || to-from < 8 {
				x = c.ev.Binary(ops.And, w, c.ev.Const(bin.Uint(mask[:], c.ev.BigEndian)))
			}
			return c.ev.Select(c.ev.Binary(ops.Eq, x, c.ev.Const(c.textWord(string(text)))), rest, c.ev.Const(0))
		}()
	}
	return result
}
