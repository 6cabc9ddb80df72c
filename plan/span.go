package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// Span is a definition as two plans: one for where runs of its functions begin, and one for where
// they end. The last argument of both is the frame ($frame): what begins and what ends is one
// run if the task, the frame and the body are the same.
type Span struct {
	Definition *probe.Definition
	Begin      *Plan // with the definition's arguments
	End        *Plan // with its results: $retval and what it leads to
}

// NewSpan makes the plans of a span. Arguments that are made of $retval are fetched where a run
// ends. A condition is about the beginning. If a definition has none, the whole result is, unless all its functions return nothing.
//
// Errors are those of New. A definition of anything but functions is one too.
func NewSpan(ctx context.Context, img *dwarfloc.Image, def *probe.Definition, o Options) (*Span, error) {
	if p := &def.Point; p.Function == "" || p.HasLine || p.Lazy != "" || p.Offset != 0 || p.Return || p.Exit {
		return nil, probe.Errorf(def, p.Pos, "a span is from where a function begins to where it ends: expected FUNC or FUNC@SRC alone")
	}
	o.Convention = prologue.ConventionRecord
	begin, end := *def, *def
	begin.Args, end.Args = nil, nil
	for _, a := range def.Args {
		if usesResult(&a.Expr) {
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
	var err error
	if s.Begin, err = New(ctx, img, framed(&begin), o); err != nil {
		return nil, err
	}
	s.End, err = New(ctx, img, framed(&end), o)
	var wrong *probe.Error
	if !asked && errors.As(err, &wrong) {
		end.Args = nil // the functions return nothing
		s.End, err = New(ctx, img, framed(&end), o)
	}
	if err != nil {
		return nil, fmt.Errorf("where it ends: %w", err)
	}
	return s, nil
}

// usesResult reports whether an expression is made of the result.
func usesResult(e *syntax.Expr) bool {
	return e != nil && (e.Kind == syntax.KindRetval || usesResult(e.A) || usesResult(e.B))
}

// framed returns a definition with the frame as its last argument.
func framed(def *probe.Definition) *probe.Definition {
	out := *def
	name := "frame"
	for slices.ContainsFunc(out.Args, func(a probe.Arg) bool { return a.Name == name }) {
		name += "_"
	}
	out.Args = append(slices.Clone(out.Args), probe.Arg{Name: name, Expr: syntax.Expr{Kind: syntax.KindFrame}})
	return &out
}
