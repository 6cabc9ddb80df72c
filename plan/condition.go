package plan

import (
	"errors"
	"fmt"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/argument"
	"github.com/bpfprologue/bpfprologue/internal/compute"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/probe"
)

// Condition is one of the expressions that && combines in a definition's condition, at one site.
type Condition struct {
	Expr *syntax.Expr
	// Variable is whether it holds: 1 or 0. If it has a reason instead of a location, it is
	// missing: it does not hold, or, with probe.Options.Pass, does not count.
	Variable *dwarfloc.Variable
}

// ErrNever is wrapped by Plan.Nothing's error if the condition can hold at no site.
var ErrNever = errors.New("the condition never holds")

// Nothing returns the error for a plan without a probe: why there is nothing to attach. It wraps
// ErrNever or ErrMissingArgument.
func (p *Plan) Nothing() error {
	for i := range p.Sites {
		if c := p.Sites[i].Never; c != nil {
			why := "it is 0 there"
			if !c.Variable.Located() {
				why = c.Variable.Reason.String()
			}
			return fmt.Errorf("nothing to attach: %w, as at %v: %s: %s", ErrNever, &p.Sites[i], c.Expr, why)
		}
	}
	return fmt.Errorf("nothing to attach: %w, and such sites are skipped", ErrMissingArgument)
}

// conditions resolves a definition's conditions at a site.
func conditions(s *Site, def *probe.Definition, o *Options) ([]Condition, error) {
	if def.Options.If == nil {
		return nil, nil
	}
	var out []Condition
	for _, e := range def.Options.If.Conjuncts() {
		truth := &syntax.Expr{Kind: syntax.KindUnary, Name: "!", Pos: e.Pos, A: &syntax.Expr{Kind: syntax.KindUnary, Name: "!", Pos: e.Pos, A: e}}
		v, err := compute.Resolve(s.Site, truth)
		if err != nil {
			return nil, err
		}
		if r := o.atReturn(v); s.Return && r.Code != reasons.None {
			v = argument.Without(v, r)
		}
		if v.Located() && v.Loc.Doubt != reasons.None && o.Doubt != DoubtKeep {
			v = argument.Without(v, loc.Reason{Code: v.Loc.Doubt})
		}
		out = append(out, Condition{e, v})
	}
	return out, nil
}

// needed appends the expressions of the conditions that must be computed at the site, and sets Never.
func (s *Site) needed(to []*loc.Expr, pass bool) []*loc.Expr {
	s.Never = nil
	for i := range s.If {
		c := &s.If[i]
		switch v := c.Variable; {
		case !v.Located() && pass:
		case !v.Located(), v.Loc.Kind == loc.KindConstant && v.Loc.Expr.K == 0:
			s.Never = c
		case v.Loc.Kind != loc.KindConstant:
			to = append(to, v.Loc.Expr)
		}
	}
	return to
}
