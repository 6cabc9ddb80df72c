package dwarfloc

import (
	"bytes"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/loc"
)

// A body such as "while (n--)" assigns its parameter before its first instruction. With
// views, a list has an entry for the argument and one for the assigned value, both at the
// address where the body begins (see bound.go for lists that lack the first). Without views,
// compilers leave out the first, which covers no code. What is left is n-1, and looks like any
// other location, even like a plain register.
//
// So it matters whether a function assigns its parameter at all. The lists of its instances
// show it in most cases: there is a constant and also something else, or a value that is
// computed ("%rax - 1"), since compilers describe what an assignment they removed would have
// given. A value that the caller computes looks the same; then a right location is lost.
//
// Unrolled loops of the caller look similar too: the body is there once for each turn, and
// the list has 0, 1 and 2, or "%rcx", "%rcx | 1" and "%rcx | 2". Then the location changes
// only between the body's ranges and not inside of one. A body that assigns its parameter can
// look so as well (in "i--; use(i)", clang 16 writes -1, 0 and 1), but not if one of the
// callers' variables is in the same place, such as the index of the loop.
//
// At a function's first instruction the calling convention knows better.

// reassigned reports whether a parameter's location where a body begins may be the one of a
// value that the body assigns.
func (s *Site) reassigned(v *Variable, x *varEntry, c *chosen) (bool, error) {
	if !v.Located() || c.rule == rule.First || !s.takesFirst(x) {
		return false, nil
	}
	switch {
	case c.viewed:
		return s.boundTooLate(c)
	case c.expr == nil && (x.u.code.GNU() || s.Kind == SiteEntry):
		return false, nil
	case c.expr == nil:
		// One constant for the whole body, DW_AT_const_value: if the function assigns the parameter, there is no other
		// place for the value that it has then.
		how, err := s.assigns(x)
		return how != assignedNever, err
	}
	how := assignedNever
	if x.location.IsBlock() {
		if sign := s.u.signOf(c.expr); !x.u.code.GNU() && (sign.computes || sign.computed) {
			how = assignedBetween
		}
	} else if c.lo == s.here().addr && v.Loc.Kind == loc.KindMemory && v.Loc.Expr.Op == loc.OpAddr {
		return true, nil // a global variable, which the body may have assigned to it
	} else {
		var err error
		if how, err = s.assigns(x); err != nil {
			return false, err
		}
	}
	switch {
	case how == assignedInside && !s.u.code.GNU():
		return true, nil
	case how != assignedNever:
		if passed, err := s.callersHave(c.expr); !passed || err != nil {
			return !passed, err
		}
	}
	if x.location.IsBlock() {
		return false, nil
	}
	return s.updatedInLoop(&v.Loc, c)
}

// assigns returns what the lists of a parameter's function show.
func (s *Site) assigns(x *varEntry) (assignment, error) {
	assigned, err := s.u.assignedParams()
	if err != nil {
		return assignedNever, err
	}
	root, err := x.ultimate(nil)
	return assigned[root], err
}

// updatedInLoop reports whether a location depends on a register that the body updates in a
// loop around its beginning, where the location still holds. rustc 1.63 with opt-level=s
// describes the n of "while (n--)" by one register for the whole body, which is decremented
// before the body begins.
func (s *Site) updatedInLoop(l *loc.Location, c *chosen) (bool, error) {
	if s.Kind != SiteInline {
		return false, nil
	}
	var used []uint64
	l.Exprs(func(e *loc.Expr) {
		e.Walk(func(n *loc.Expr) {
			if n.Op == loc.OpReg && n.K != uint64(s.u.img.Arch().SP) {
				used = append(used, n.K)
			}
		})
	})
	if len(used) == 0 {
		return false, nil
	}
	updated, err := s.loopUpdates(c)
	return slices.ContainsFunc(used, updated.Has), err
}

// loopUpdates returns the registers that an inlined body updates in loops around its
// beginning, where the chosen entry holds.
func (s *Site) loopUpdates(c *chosen) (body.Registers, error) {
	ranges, err := s.u.Extent(&s.pcs)
	if err != nil {
		return 0, err
	}
	fun, err := s.function()
	if err != nil {
		return 0, err
	}
	return s.u.img.code.LoopUpdates(ranges, s.here().addr, fun.start, c.lo, c.hi), nil
}

// callersHave reports whether a variable of a function that the site is inlined into has an
// expression as its location at the site.
func (s *Site) callersHave(expr []byte) (bool, error) {
	u := s.u
	for rec := s.rec; u.Recs[rec].Flags&index.Inlined != 0 && u.Recs[rec].Parent >= 0; {
		rec = u.Recs[rec].Parent
		e, err := u.Entry(u.Off + uint64(u.Recs[rec].Off))
		if err != nil {
			return false, err
		}
		var caller scope
		if err := caller.read(s, e, placedBlocks, 0, true); err != nil {
			return false, err
		}
		for i := range caller.vars {
			x := &caller.vars[i]
			if !x.inside || x.location.Form == 0 {
				continue
			}
			its := x.location.Bytes()
			if !x.location.IsBlock() {
				c, err := u.choose(x.location, x.views, s.here(), false)
				if err != nil {
					continue // it is told where the variable is asked for
				}
				its = c.expr
			}
			if bytes.Equal(its, expr) {
				return true, nil
			}
		}
	}
	return false, nil
}
