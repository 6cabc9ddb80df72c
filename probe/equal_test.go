package probe

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/syntax"
)

// equalDefinitions reports whether d and o define the same probe, whatever their texts.
func equalDefinitions(d, o *Definition) bool {
	if d == nil || o == nil {
		return d == o
	}
	return equalOptions(d.Options, o.Options) && d.Group == o.Group && d.Event == o.Event &&
		equalPoints(d.Point, o.Point) && slices.EqualFunc(d.Args, o.Args, equalArgs)
}

// equalPoints reports whether p and o are the same, apart from their positions.
func equalPoints(p, o Point) bool {
	p.Pos, p.LinePos = o.Pos, o.LinePos
	return p == o
}

// equalArgs reports whether a and o are the same, apart from their positions.
func equalArgs(a, o Arg) bool {
	return a.Name == o.Name && a.User == o.User && equalExprs(a.Expr, o.Expr) && equalTypes(a.Type, o.Type)
}

// equalExprs reports whether e and o are the same, apart from their positions.
func equalExprs(e, o syntax.Expr) bool {
	return e.Kind == o.Kind && e.Name == o.Name && e.Number == o.Number && e.User == o.User &&
		e.Type.Name == o.Type.Name && e.Type.Pointers == o.Type.Pointers && equalOperands(e.A, o.A) && equalOperands(e.B, o.B) &&
		slices.EqualFunc(e.Member, o.Member, equalSteps) && slices.EqualFunc(e.Path, o.Path, equalSteps)
}

func equalOperands(e, o *syntax.Expr) bool {
	if e == nil || o == nil {
		return e == o
	}
	return equalExprs(*e, *o)
}

// equalOptions reports whether d and o are the same, apart from their positions.
func equalOptions(d, o Options) bool {
	if !equalOperands(d.If, o.If) {
		return false
	}
	d.If, o.If = nil, nil
	return d == o
}

// equalSteps reports whether s and o are the same, apart from their positions.
func equalSteps(s, o syntax.Step) bool {
	if s.Kind != o.Kind || s.Member != o.Member || s.Index != o.Index || (s.IndexBy == nil) != (o.IndexBy == nil) {
		return false
	}
	return (s.IndexBy == nil || equalExprs(*s.IndexBy, *o.IndexBy)) && equalOperands(s.To, o.To)
}

// equalTypes reports whether t and o are the same, apart from their positions.
func equalTypes(t, o syntax.TypeSpec) bool {
	t.Pos = o.Pos
	return t == o
}
