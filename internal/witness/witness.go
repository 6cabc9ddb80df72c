// Package witness finds parameters of inlined bodies that debug information has lost and an instruction of the body names: it accesses what a pointer points
// to, or passes the pointer on.
//
// Body.Value asks the body at a spot for one. An instruction speaks only by its controls: other bodies of the function, whose parameters debug information
// knows, of which as many as package claim asks for have to agree. Controls are those of an image, and are kept with its index.
package witness

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Body is what the instructions of the body at a spot do. The zero value is ready to use, by one goroutine; its memory can be reused for the next spot.
type Body struct {
	seen observed
	done bool // seen is of the spot
	any  bool // there is a witness
}

// Forget prepares for another spot.
func (b *Body) Forget() { b.done = false }

// observed observes the body at the spot, once. ok is false if no witness can speak.
func (b *Body) observed(c *Controls, s *entries.Spot, facts *Facts) (ok bool, err error) {
	if b.done {
		return b.any, nil
	}
	b.done, b.any = true, false
	b.seen.facts, b.seen.reader = facts, c.reader
	k, err := facts.Function(s.U, s.Rec)
	if err != nil {
		return false, err
	}
	about, known := c.learnedOf(k)
	if known && about == nil {
		return false, nil
	}
	b.seen.about = about
	b.seen.hands = about == nil || about.anyInner
	b.any, err = b.seen.read(s)
	return b.any, err
}

// Value returns what an instruction of the body says of a parameter that the debug information has lost: it accesses what a
// pointer points to, or passes it on. The controls say which instruction does, and at which distance. ok is false if none does.
func (b *Body) Value(c *Controls, s *entries.Spot, facts *Facts, build *eval.Builder, x *entries.Var) (k Claim, ok bool, err error) {
	if s.U.Img.Arch().WordSize != 8 {
		return k, false, nil
	}
	if ok, err := b.observed(c, s, facts); !ok || err != nil {
		return k, false, err
	}
	write := writer{build, s.U.Img.File}
	o := &b.seen
	name, err := x.Text()
	if err != nil {
		return k, false, err
	}
	i := slices.IndexFunc(o.params, func(p parameter) bool { return p.name == name })
	if i < 0 {
		return k, false, nil
	}
	if len(o.handed) > 0 {
		if k, ok, err = c.handedOn(s, o, i, write); ok || err != nil {
			return k, ok, err
		}
	}
	if !o.params[i].pointer {
		return k, false, nil
	}
	var e *loc.Expr
	known := func(w *body.Witness, distance uint64) (ok bool) {
		if w.Target {
			e = write.Addr(w.Value.Const)
			return distance == 0
		}
		e, ok = write.expression(o.straight.Trace, o.straight.Trace.Plus(w.Value, body.Fixed(-distance), 1))
		return ok
	}
	if !slices.ContainsFunc(o.first, func(n int) bool { return known(&o.straight.Found[n], 0) }) {
		return k, false, nil
	}
	g, err := c.groupsAt(s, o)
	if g == nil || err != nil {
		return k, false, err
	}
	n, controls, distance := g.says(o, i, known)
	if n < 0 {
		if with := o.withHanded(g); with != nil {
			n, controls, distance = g.says(with, i, known)
		}
	}
	if n < 0 {
		return k, false, nil
	}
	w := &o.straight.Found[o.first[n]]
	if w.Call {
		if says, err := saysOfCall(s.U, w); !says || err != nil {
			return k, false, err
		}
	}
	k = Claim{value: e, at: w.Addr, size: uint8(w.Size), register: w.Register, distance: distance, controls: controls}
	switch {
	case w.Target:
		k.by = called
	case w.Call:
		k.by = passed
	case o.kinds[n].Member:
		k.by = member
	}
	return k, true, nil
}

// groupsAt returns the groups of the function at a spot, or nil if none of them speaks.
func (c *Controls) groupsAt(s *entries.Spot, o *observed) (*groups, error) {
	function, err := o.facts.Function(s.U, s.Rec)
	if err != nil {
		return nil, err
	}
	return c.groupsOf(function)
}

// handedOn returns what is said of a lost parameter by what is known of a parameter of an inner body.
func (c *Controls) handedOn(s *entries.Spot, o *observed, parameter int, write writer) (k Claim, ok bool, err error) {
	g, err := c.groupsAt(s, o)
	if g == nil || err != nil {
		return k, false, err
	}
	n, controls := g.handsOn(o, parameter)
	if n < 0 {
		return k, false, nil
	}
	h := &o.handed[n]
	e, ok := write.expression(o.straight.Trace, h.of.value)
	if h.of.form != pointer && h.of.value.IsConstant() {
		e, ok = write.Const(h.of.value.Const), true
	}
	return Claim{by: handedOn, value: e, controls: controls, inner: h.rec, name: h.name}, ok, nil
}
