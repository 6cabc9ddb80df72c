// Package ending has conditions on whole runs: on how long they took and what they returned, perhaps compared with what was
// there when they began. It splits such a condition into what is fetched where a run begins, what where it ends, and
// what is left to compute from these.
package ending

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/syntax"
)

// Condition is the part of a condition that can be computed only where a run ends.
type Condition struct {
	All        []*Node        // all of them must be true where a run ends
	Start      []*Node        // and these where it begins; they are of what is fetched there
	Begin, End []*syntax.Expr // what is fetched for them
}

// Node is an expression: an operator with its operands, or an operand.
type Node struct {
	Op      string // of C: "&&", "||", "!", or a comparison; "" for an operand
	A, B    *Node
	Operand Operand
	N       uint64 // the number, or the index in Condition.Begin or End
	Size    int    // of the operand's type in bytes, promoted as C does
	Signed  bool
}

// Operand is what an operand is.
type Operand uint8

// The operands.
const (
	Number   Operand = iota
	Duration         // of the run, in nanoseconds
	AtBegin          // what was fetched where the run began
	AtEnd            // what is fetched where it ends
)

var comparisons = map[string]bool{"==": true, "!=": true, "<": true, "<=": true, ">": true, ">=": true}

// Error is a condition that cannot be computed.
type Error struct {
	Pos int // in the definition's text
	Msg string
}

func (e *Error) Error() string { return e.Msg }

// Split splits a condition. begin is what can be computed where a run begins, and late the rest: either can be nil. With all it is in
// late too.
func Split(e *syntax.Expr, all bool) (begin *syntax.Expr, late *Condition, err error) {
	if e == nil {
		return nil, nil, nil
	}
	c := new(Condition)
	for _, part := range e.Conjuncts() {
		if !isLate(part) {
			if all {
				c.Start = append(c.Start, c.fetch(part, "!"))
				continue
			}
			if begin == nil {
				begin = part
			} else {
				begin = &syntax.Expr{Kind: syntax.KindBinary, Name: "&&", A: begin, B: part, Pos: begin.Pos}
			}
			continue
		}
		n, err := c.node(part)
		if err != nil {
			return nil, nil, err
		}
		c.All = append(c.All, n)
	}
	if len(c.All)+len(c.Start) > 0 {
		late = c
	}
	return begin, late, nil
}

// isLate reports whether an expression is known only where a run ends.
func isLate(e *syntax.Expr) bool {
	return e.Mentions(syntax.KindRetval) || e.Mentions(syntax.KindDuration)
}

// node returns what is computed of an expression in the end.
func (c *Condition) node(e *syntax.Expr) (*Node, error) {
	plain := len(e.Path) == 0 && isLate(e)
	switch {
	case plain && e.Kind == syntax.KindUnary && e.Name == "!":
		a, err := c.node(e.A)
		return &Node{Op: "!", A: a}, err
	case plain && e.Kind == syntax.KindBinary && (e.Name == "&&" || e.Name == "||"):
		return c.pair(e, c.node)
	case plain && e.Kind == syntax.KindBinary && comparisons[e.Name] && c.apart(e):
		return c.pair(e, c.operand)
	case e.Mentions(syntax.KindDuration):
		return nil, &Error{e.Pos, "$duration is compared with a time: $duration > 1ms"}
	}
	return c.fetch(e, "!"), nil
}

func (c *Condition) pair(e *syntax.Expr, part func(*syntax.Expr) (*Node, error)) (*Node, error) {
	a, err := part(e.A)
	if err != nil {
		return nil, err
	}
	b, err := part(e.B)
	return &Node{Op: e.Name, A: a, B: b}, err
}

// apart reports whether the sides of a comparison are known at different times. Of what is fetched where a run begins variables
// may be gone where it ends.
func (c *Condition) apart(e *syntax.Expr) bool {
	if e.Mentions(syntax.KindDuration) {
		return true
	}
	at := func(result, variable *syntax.Expr) bool {
		return result.Mentions(syntax.KindRetval) && !result.Mentions(syntax.KindVariable) && !isLate(variable) && variable.Mentions(syntax.KindVariable)
	}
	return at(e.A, e.B) || at(e.B, e.A)
}

// operand returns one side of a comparison.
func (c *Condition) operand(e *syntax.Expr) (*Node, error) {
	if e.Kind == syntax.KindDuration {
		return &Node{Operand: Duration, Size: 8, Signed: true}, nil
	}
	if e.Mentions(syntax.KindDuration) {
		return nil, &Error{e.Pos, "$duration is compared as it is, not computed with"}
	}
	if n, is := e.Constant(); is {
		size := 4
		if int64(n) != int64(int32(n)) {
			size = 8
		}
		return &Node{Operand: Number, N: n, Size: size, Signed: true}, nil
	}
	return c.fetch(e, "~"), nil
}

// fetch returns an operand that is fetched: with an operator that, twice, leaves a number as it is, or makes a truth value of it.
func (c *Condition) fetch(e *syntax.Expr, operator string) *Node {
	twice := &syntax.Expr{Kind: syntax.KindUnary, Name: operator, Pos: e.Pos, A: &syntax.Expr{Kind: syntax.KindUnary, Name: operator, Pos: e.Pos, A: e}}
	if isLate(e) {
		c.End = append(c.End, twice)
		return &Node{Operand: AtEnd, N: uint64(len(c.End) - 1)}
	}
	c.Begin = append(c.Begin, twice)
	return &Node{Operand: AtBegin, N: uint64(len(c.Begin) - 1)}
}

// Operands calls f for all operands that are fetched.
func (c *Condition) Operands(f func(*Node)) {
	var each func(*Node)
	each = func(n *Node) {
		switch {
		case n == nil:
		case n.Op != "":
			each(n.A)
			each(n.B)
		case n.Operand == AtBegin || n.Operand == AtEnd:
			f(n)
		}
	}
	for _, n := range slices.Concat(c.All, c.Start) {
		each(n)
	}
}

// Unsure reports whether what All needs may not have been fetched.
func (c *Condition) Unsure() (unsure bool) {
	end := Condition{All: c.All}
	end.Operands(func(*Node) { unsure = true })
	return unsure
}

// Common returns how the operands of a comparison are compared, as C does (ISO C11 6.3.1.8): as numbers of 4 or 8 bytes, with or
// without a sign.
func (n *Node) Common() (size int, signed bool) {
	a, b := n.A, n.B
	switch {
	case a.Size > b.Size:
		return a.Size, a.Signed
	case b.Size > a.Size:
		return b.Size, b.Signed
	}
	return a.Size, a.Signed && b.Signed
}
