package resolve

import (
	"fmt"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/claim"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/internal/witness"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Claims: parameters that the debug information has lost, and the machine still has. A claim names its witness.

// claimed sets the location of a parameter that is optimized out and that a witness knows.
func (ev *Evaluator) claimed(a *Answer, x *entries.Var) (bool, error) {
	if ev.plain || a.Reason.Code != reasons.OptimizedOut || ev.spot.Kind != entries.Inline || x.Tag != dw.TagFormalParameter {
		return false, nil
	}
	if ev.unclaimed {
		ev.lacked = true // a witness may know it
		return false, nil
	}
	out := ev.spot.U.Img.LeftOut
	l, because, err := loc.Location{}, "", error(nil)
	if !out.Has(rule.Table) {
		if l, because, err = ev.Stated(x); err != nil {
			return false, err
		}
	}
	if because == "" && (!out.Has(rule.Operand) || !out.Has(rule.Call) || !out.Has(rule.Member)) {
		var kernel bool
		if kernel, err = ev.spot.U.Img.Code.IsKernel(); err != nil {
			return false, err
		}
		// In a program, bodies that agree are no proof: each may have what a mask or a condition leaves as it is.
		if kernel {
			l, because, err = ev.testified(x)
		}
	}
	if because == "" || out.Has(l.Rule) || err != nil {
		return false, err
	}
	a.Loc, a.Reason, a.Because, ev.lacked = l, loc.Reason{}, because, true
	return true, nil
}

// said is what witnesses say of the parameters of the evaluator's spot, which are asked for one after the other.
type said struct {
	asked  int // the number of the parameter that is asked for
	known  bool
	claims []witness.Claim
}

// keptClaims reads what is kept of the evaluator's spot.
func (ev *Evaluator) keptClaims() (err error) {
	c := &ev.said
	c.claims, c.known, err = ControlsOf(ev.spot.U.Img).Kept(c.claims[:0], ev.spot, &ev.memory().facts)
	return err
}

// keepClaims keeps what has been found out of all parameters of the evaluator's spot.
func (ev *Evaluator) keepClaims() {
	if c := &ev.said; !c.known && len(c.claims) > 0 {
		ControlsOf(ev.spot.U.Img).Keep(ev.spot, c.claims)
	}
}

// testified returns the value of a parameter that a witness knows, and how, or "".
func (ev *Evaluator) testified(x *entries.Var) (l loc.Location, because string, err error) {
	said := &ev.said
	var k *witness.Claim
	if said.known {
		if i := slices.IndexFunc(said.claims, func(k witness.Claim) bool { return k.Parameter == said.asked }); i >= 0 {
			k = &said.claims[i]
		}
	} else {
		if ev.witness == nil {
			ev.witness = new(witness.Body)
		}
		claim, ok, err := ev.witness.Value(ControlsOf(ev.spot.U.Img), ev.spot, &ev.memory().facts, &ev.Builder, x)
		if err != nil {
			return l, "", err
		}
		if ok {
			claim.Parameter = said.asked
			said.claims = append(said.claims, claim)
			k = &said.claims[len(said.claims)-1]
		}
	}
	if k == nil {
		return l, "", nil
	}
	because, err = k.Because(ev.spot)
	return k.Location(&ev.Builder), because, err
}

// controlsKey is that of an image's controls.
type controlsKey struct{}

// ControlsOf returns what the bodies of an image's functions say of lost parameters.
func ControlsOf(img *entries.Image) *witness.Controls {
	c, known := img.Derived.Load(controlsKey{})
	if !known {
		c, _ = img.Derived.LoadOrStore(controlsKey{}, witness.New(img, reader))
	}
	return c.(*witness.Controls)
}

// Stated returns the value of an inlined body's parameter that a table of the kernel states, and where it does, or "".
func (ev *Evaluator) Stated(x *entries.Var) (l loc.Location, witness string, err error) {
	s := ev.spot
	function := s.U.Index.NameOf(s.U.NameRefOf(&s.U.Recs[s.Rec]))
	operand := claim.OfBranch(function, x.U.Text(x.Name))
	if operand == 0 {
		return l, "", nil
	}
	e, ok, err := ev.onlyBranch()
	if !ok || err != nil {
		return l, "", err
	}
	switch operand {
	case claim.Key:
		l = ev.Value(ev.Addr(e.Key))
	case claim.Branch:
		l = ev.Value(ev.Const(e.Branch))
	}
	l.Rule = rule.Table
	return l, fmt.Sprintf("__jump_table's entry at %#x, for %#x", e.Entry, e.Code), nil
}

// onlyBranch returns the static branch of the body. A body that was copied has several, which must have the same operands. An empty body
// is at the branch itself.
func (ev *Evaluator) onlyBranch() (e body.StaticBranch, ok bool, err error) {
	s := ev.spot
	ranges, err := s.U.Extent(&s.PCs)
	if err != nil {
		return e, false, err
	}
	for _, r := range append(ranges, dw.Range{Lo: s.Addr, Hi: s.Addr + 1}) {
		all, err := s.U.Img.Code.StaticBranches(r.Lo, r.Hi)
		if err != nil {
			return e, false, err
		}
		for _, x := range all {
			if ok && (x.Key != e.Key || x.Branch != e.Branch) {
				return e, false, nil
			}
			if !ok {
				e, ok = x, true
			}
		}
	}
	return e, ok, nil
}
