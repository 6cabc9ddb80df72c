package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/compute"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/suggest"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/probe"
)

// checkNames returns an error for an argument that no site can have: the user has mistyped
// it. If some functions have the argument, the others get a reason instead.
func (p *Plan) checkNames() error {
	if err := p.checkConditions(); err != nil {
		return err
	}
	for i := range p.Definition.Args {
		// Of the sites that lack the argument, the one where most of it is right says what is
		// wrong: a variable of another type is more than none.
		var best *Argument
		known := false
		for j := range p.Sites {
			for k := range p.Sites[j].Args {
				a := &p.Sites[j].Args[k]
				if a.DefinitionArg != i {
					continue
				}
				if best == nil || best.Variable.Reason.Code == reasons.NoSuchVariable {
					best = a
				}
				known = known || !reasons.Mistaken(a.Variable.Reason.Code)
			}
		}
		if known || best == nil {
			continue
		}
		arg := &p.Definition.Args[i]
		return p.mistake(&arg.Expr, arg.Type.Pos, best.Variable)
	}
	return nil
}

// checkConditions is checkNames for conditions.
func (p *Plan) checkConditions() error {
	if p.Definition.Options.If == nil || len(p.Sites) == 0 {
		return nil
	}
	for i := range p.Sites[0].If {
		var best *dwarfloc.Variable
		known := false
		for j := range p.Sites {
			v := p.Sites[j].If[i].Variable
			if best == nil || best.Reason.Code == reasons.NoSuchVariable {
				best = v
			}
			known = known || !reasons.Mistaken(v.Reason.Code)
		}
		if e := p.Sites[0].If[i].Expr; !known {
			return p.mistake(e, e.Pos, best)
		}
	}
	return nil
}

// mistake returns the error for an expression that is wrong at all sites.
func (p *Plan) mistake(e *syntax.Expr, typePos int, v *dwarfloc.Variable) error {
	if v.Reason.Code != reasons.NoSuchVariable {
		return p.wrongPath(e, typePos, v)
	}
	var enumerators []string
	of := ""
	if w := compute.Wrong(v); w != nil && w.Expr != nil {
		e, enumerators, of = w.Expr, w.Members, w.Type
	}
	if e.Kind == syntax.KindArgument {
		return probe.Errorf(p.Definition, e.Pos, "no %s: %s", e, v.Reason.Detail)
	}
	return p.noSuchVariable(e, enumerators, of)
}

// wrongPath returns the error for a path or a type that the variable's type does not allow.
func (p *Plan) wrongPath(e *syntax.Expr, typePos int, v *dwarfloc.Variable) error {
	w := compute.Wrong(v)
	if w == nil {
		// The definition's type does not fit.
		return probe.Errorf(p.Definition, typePos, "%s", v.Reason.Detail)
	}
	if w.Expr != nil {
		e = w.Expr
	}
	pos := e.Pos
	if w.Step < len(e.Path) {
		pos = e.Path[w.Step].Pos
	}
	msg := w.Msg
	if w.Members != nil {
		member := e.Name
		if w.Step < len(e.Path) {
			member = e.Path[w.Step].Member
		}
		switch near := suggest.Nearest(member, slices.Values(w.Members), 3); {
		case len(near) > 0:
			msg += "; nearest: " + strings.Join(near, ", ")
		case len(w.Members) > 0:
			msg += "; there are: " + listed(w.Members)
		default:
			msg += "; it has none"
		}
		if w.Declared != "" {
			msg += " (" + w.Type + " is declared at " + w.Declared + ")"
		}
	}
	return probe.Errorf(p.Definition, pos, "%s", msg)
}

// listed returns names, or the first of many.
func listed(names []string) string {
	text := strings.Join(names[:min(len(names), 12)], ", ")
	if len(names) > 12 {
		text += ", ..."
	}
	return text
}

// noSuchVariable returns the error for a name that no variable has, nor any of the enumerators of the type that it is compared with.
func (p *Plan) noSuchVariable(e *syntax.Expr, enumerators []string, of string) error {
	if near := suggest.Nearest(e.Name, slices.Values(enumerators), 3); len(near) > 0 {
		return probe.Errorf(p.Definition, e.Pos, "%s has no %q; nearest: %s", of, e.Name, strings.Join(near, ", "))
	}
	names := make(map[string]struct{})
	for j := range p.Sites[:min(len(p.Sites), 64)] {
		at, err := p.Sites[j].Variables()
		if errors.Is(err, dwarfloc.ErrNotDescribed) {
			at, err = p.Sites[j].Params()
		}
		if err != nil {
			return err
		}
		for _, v := range at {
			names[v.Name] = struct{}{}
		}
	}
	macro := ""
	if special := "$" + e.Name; isSpecial(special) {
		macro = "; " + special + " is what the kernel knows of the task"
	} else if len(enumerators) > 0 {
		macro = "; enumerators of " + of + ": " + listed(enumerators)
	} else if strings.ToUpper(e.Name) == e.Name {
		macro = "; macros are not in the debug information: write the number"
	}
	all := slices.Sorted(maps.Keys(names))
	hint := suggest.Nearest(e.Name, slices.Values(all), 3)
	text := "nearest: "
	if len(hint) == 0 {
		hint, text = all[:min(len(all), 12)], "there are: "
	}
	if len(hint) == 0 && inside.NoNames(p.Sites[0].Site) {
		return probe.Errorf(p.Definition, e.Pos, "no variable %q in %s, of which there is only a symbol: $arg1, $arg2 and so on are what it is passed", e.Name, p.functions())
	}
	if len(hint) == 0 {
		return probe.Errorf(p.Definition, e.Pos, "no variable %q in %s, which has no parameters or locals%s", e.Name, p.functions(), macro)
	}
	return probe.Errorf(p.Definition, e.Pos, "no variable %q in %s; %s%s%s", e.Name, p.functions(), text, strings.Join(hint, ", "), macro)
}

// isSpecial reports whether a text is an operand that is no variable, as $comm and $pid are.
func isSpecial(text string) bool {
	d, err := probe.Parse("f " + text)
	return err == nil && len(d.Args) == 1 && (d.Args[0].Expr.Kind == syntax.KindComm || d.Args[0].Expr.Kind == syntax.KindTask)
}

// functions describes the plan's functions for an error.
func (p *Plan) functions() string {
	first := p.Sites[0].Function
	for i := range p.Sites {
		if p.Sites[i].Function != first {
			return fmt.Sprintf("any function that %q matches", p.Definition.Point.Function)
		}
	}
	return first
}
