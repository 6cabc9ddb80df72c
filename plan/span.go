package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/ending"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/needed"
	"github.com/bpfprologue/bpfprologue/internal/place"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// Span is a definition as two plans: one for where runs of its functions begin, and one for where
// they end. The last argument of both is the frame ($frame): what begins and what ends is one
// run if the task, the frame and the body are the same. The first ones are those that If needs.
type Span struct {
	Definition *probe.Definition
	Begin      *Plan // with the definition's arguments
	End        *Plan // with its results: $retval and what it leads to
	// If is the part of the definition's condition that is looked at with the run, or nil: what is about $duration and $retval. In a program
	// in which an exception or longjmp may end a run it is all of it: a run for which it is false ends what is open in its frame.
	If *ending.Condition
}

// NewSpan makes the plans of a span. Arguments that are made of $retval are fetched where a run
// ends. If a definition has none, the whole result is, unless all its functions return nothing.
//
// Errors are those of New. A definition of anything but functions is one too.
func NewSpan(ctx context.Context, img *dwarfloc.Image, def *probe.Definition, o Options) (*Span, error) {
	if p := &def.Point; p.Function == "" || p.Provider != "" || p.HasLine || p.Lazy != "" || p.Offset != 0 || p.Return || p.Exit {
		return nil, probe.Errorf(def, p.Pos, "a span is from where a function begins to where it ends: expected FUNC or FUNC@SRC alone")
	}
	o.Convention, o.runs = prologue.ConventionRecord, true
	begin, end := *def, *def
	begin.Args, end.Args = nil, nil
	for _, a := range def.Args {
		if a.Expr.Mentions(syntax.KindRetval) {
			end.Args = append(end.Args, a)
		} else {
			begin.Args = append(begin.Args, a)
		}
	}
	end.Point.Exit = true
	end.Options.If = nil // of a run that is left out only the end is seen
	asked := len(end.Args) > 0
	if !asked {
		end.Args = []probe.Arg{{Name: "retval", Expr: syntax.Expr{Kind: syntax.KindRetval}}}
	}
	s := &Span{Definition: def}
	kernel, err := place.IsKernel(img)
	if err != nil {
		return nil, err
	}
	if begin.Options.If, s.If, err = ending.Split(def.Options.If, !kernel && needed.Leaves(inside.File(img))); err != nil {
		var wrong *ending.Error
		if errors.As(err, &wrong) {
			return nil, probe.Errorf(def, wrong.Pos, "%s", wrong.Msg)
		}
		return nil, err
	}
	held := s.If
	if held == nil {
		held = new(ending.Condition)
	}
	if s.Begin, err = New(ctx, img, framed(&begin, held.Begin), o.holding(held.Begin)); err != nil {
		return nil, err
	}
	s.End, err = New(ctx, img, framed(&end, held.End), o.holding(held.End))
	var wrong *probe.Error
	if !asked && len(held.End) == 0 && errors.As(err, &wrong) {
		end.Args = nil // the functions return nothing
		s.End, err = New(ctx, img, framed(&end, nil), o)
	}
	if err != nil {
		return nil, fmt.Errorf("where it ends: %w", err)
	}
	return s, s.typeCondition()
}

// holding returns options for a plan with arguments that a condition needs.
func (o Options) holding(list []*syntax.Expr) Options {
	o.held = len(list)
	return o
}

// framed returns a definition with the frame as its last argument, and what a condition needs as the first ones.
func framed(def *probe.Definition, held []*syntax.Expr) *probe.Definition {
	out := *def
	out.Args = nil
	free := func(name string) string {
		for slices.ContainsFunc(slices.Concat(def.Args, out.Args), func(a probe.Arg) bool { return a.Name == name }) {
			name += "_"
		}
		return name
	}
	for _, e := range held {
		out.Args = append(out.Args, probe.Arg{Name: free("if"), Expr: *e})
	}
	out.Args = append(out.Args, def.Args...)
	out.Args = append(out.Args, probe.Arg{Name: free("frame"), Expr: syntax.Expr{Kind: syntax.KindFrame}})
	return &out
}

// typeCondition sets the types of what the condition compares. They are the same at all sites, since a run can end at any.
func (s *Span) typeCondition() (err error) {
	if s.If == nil {
		return nil
	}
	s.If.Operands(func(n *ending.Node) {
		p, e := s.Begin, s.If.Begin
		if n.Operand == ending.AtEnd {
			p, e = s.End, s.If.End
		}
		for i := range p.Sites {
			a := &p.Sites[i].Args[n.N]
			if !a.Fetched() {
				continue
			}
			if n.Size != 0 && (n.Size != a.Size || n.Signed != a.Signed) && err == nil {
				err = probe.Errorf(s.Definition, e[n.N].Pos, "it has several types: compare each function's on its own")
			}
			n.Size, n.Signed = a.Size, a.Signed
		}
	})
	return err
}
