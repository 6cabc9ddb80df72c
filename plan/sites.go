package plan

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/glob"
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/refusals"
	"github.com/bpfprologue/bpfprologue/internal/runs"
	"github.com/bpfprologue/bpfprologue/internal/selected"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/sites"
)

// expand finds the sites of a definition.
func expand(ctx context.Context, img *dwarfloc.Image, def *probe.Definition, o *Options) ([]*dwarfloc.Site, error) {
	p := &def.Point
	switch {
	case p.HasAddr:
		s, err := img.SiteAt(ctx, p.Address)
		if errors.Is(err, dwarfloc.ErrNoFunction) {
			return nil, probe.Errorf(def, p.Pos, "%w", err)
		}
		return []*dwarfloc.Site{s}, err
	case p.HasLine, p.Lazy != "":
		sites, err := expandLines(ctx, img, def, o)
		return sites, lineError(def, err)
	}
	return expandFunctions(ctx, img, def, o.Filter)
}

// throughWays replaces the sites of inlined instances by the ways into their bodies, or, for a
// definition of exits, by those out of them.
func throughWays(ctx context.Context, img *dwarfloc.Image, def *probe.Definition, found []*dwarfloc.Site, o *Options) ([]*dwarfloc.Site, error) {
	if !o.through(def) {
		return found, nil
	}
	ways, err := inside.Ways(img, ctx, found)
	if err != nil {
		return nil, err
	}
	var out []*dwarfloc.Site
	for i, s := range found {
		if out, err = appendWays(out, def, s, &ways[i], true); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// through reports whether a definition is about the ways into bodies, or out of them.
func (o *Options) through(def *probe.Definition) bool { return !o.EntryOnly || def.Point.Exit }

// appendWays appends the sites that throughWays replaces one by, which may be one of them if it is given away.
func appendWays(to []*dwarfloc.Site, def *probe.Definition, s *dwarfloc.Site, w *runs.Ways, given bool) ([]*dwarfloc.Site, error) {
	exits := def.Point.Exit
	switch {
	case s.Kind == dwarfloc.SiteInline && exits:
		return append(to, inside.WaysOut(s, w)...), nil
	case s.Kind == dwarfloc.SiteInline:
		return append(to, inside.WaysIn(s, w, given)...), nil
	case def.Point.Return:
		return append(to, s), nil
	}
	at, within, err := inside.Once(s)
	switch {
	case err != nil:
		return to, err
	case exits:
		// The rest of a split function also ends in a body, if its beginning was inlined there, and another function's end may be at one that both have.
		if !at.Way.Shared && !body.IsPart(s.Symbol) {
			at = s
		}
		return append(to, at), nil
	case within:
		if within, err = namesBodies(def, at); err != nil || within {
			return to, err
		}
	}
	return append(to, at), nil
}

// namesBodies reports whether a definition that names a part of a function, by its symbol or by the function's name, also names the inlined
// bodies of that function.
func namesBodies(def *probe.Definition, s *dwarfloc.Site) (bool, error) {
	if !def.Options.Inlines || def.Point.Function == "" {
		return false, nil
	}
	m, err := glob.Compile(def.Point.Function)
	if err != nil || m.Match(s.Function) {
		return err == nil, err
	}
	return inside.Named(s, m)
}

// beforeLoops moves the probes of bodies that begin with a loop of their own to the instructions
// before it, where the arguments are the same.
func (p *Plan) beforeLoops() error {
	var out []Site // once one was moved
	for i := range p.Sites {
		s := &p.Sites[i]
		var at []*dwarfloc.Site
		if s.Way.Again {
			vars, memory := fetchedAt(s)
			var err error
			if at, err = inside.Before(s.Site, vars, memory); err != nil {
				return err
			}
		}
		if len(at) == 0 {
			if out != nil {
				out = append(out, *s)
			}
			continue
		}
		if out == nil {
			out = append(make([]Site, 0, len(p.Sites)), p.Sites[:i]...)
		}
		for _, t := range at {
			moved := *s
			moved.Site, moved.Args, moved.If = t, slices.Clone(s.Args), slices.Clone(s.If)
			out = append(out, moved)
		}
	}
	if out == nil {
		return nil
	}
	if len(out) != len(p.Sites) {
		numberWays(out)
	}
	p.Sites = out
	return nil
}

// numberWays numbers the ways of each site anew.
func numberWays(sites []Site) {
	for i := 0; i < len(sites); {
		first := i
		for i++; i < len(sites) && sites[i].Way.Number > 0 && sites[i].DIE == sites[first].DIE && sites[i].Kind == sites[first].Kind; i++ {
		}
		if sites[first].Way.Number == 0 {
			continue
		}
		for k := first; k < i; k++ {
			at := *sites[k].Site
			at.Way.Number, at.Way.Of = k-first+1, i-first
			sites[k].Site = &at
		}
	}
}

// expandLines finds the sites of lines in functions or in a file.
func expandLines(ctx context.Context, img *dwarfloc.Image, def *probe.Definition, o *Options) ([]*dwarfloc.Site, error) {
	p := &def.Point
	sel := sites.Selection{
		Filter: o.Filter, Source: p.Source, EntriesOnly: !def.Options.Inlines,
		Lines: &sites.Lines{Number: p.Line, Lazy: p.Lazy, Sources: o.Sources},
	}
	if p.Function != "" {
		pattern, err := glob.Compile(p.Function)
		if err != nil {
			return nil, err
		}
		sel.Functions = pattern
	}
	return sites.Select(ctx, img, sel)
}

// lineError makes an error about lines point into the definition's text.
func lineError(def *probe.Definition, err error) error {
	var missing *sites.NotFoundError
	var source *sites.NoSourceError
	switch {
	case errors.As(err, &missing) && missing.Line == "":
		return probe.Errorf(def, def.Point.Pos, "%w", err)
	case missing != nil, errors.As(err, &source):
		return probe.Errorf(def, def.Point.LinePos, "%w", err)
	}
	return pointError(def, err)
}

// expandFunctions finds the sites of functions.
func expandFunctions(ctx context.Context, img *dwarfloc.Image, def *probe.Definition, filter glob.Matcher) ([]*dwarfloc.Site, error) {
	sel, err := selected.Of(def, filter)
	if err != nil {
		return nil, pointError(def, err)
	}
	found, err := sites.Select(ctx, img, sel)
	if err != nil {
		return nil, functionsError(def, err)
	}
	if def.Point.Offset == 0 {
		return found, nil
	}
	var at []*dwarfloc.Site
	for _, s := range found {
		t, ok, err := inside.At(s, def.Point.Offset)
		if err != nil {
			return nil, err
		}
		if ok {
			at = append(at, t)
		}
	}
	if len(at) == 0 {
		return nil, probe.Errorf(def, def.Point.Pos, "offset %#x is outside the code of every matching function", def.Point.Offset)
	}
	return at, nil
}

// functionsError makes an error about functions point into the definition's text.
func functionsError(def *probe.Definition, err error) error {
	var missing *sites.NotFoundError
	if !errors.As(err, &missing) {
		return pointError(def, err)
	}
	if def.Point.Return && missing.Inlined {
		missing.Why = "it is inlined everywhere, and has no return of its own: %exit is where its bodies are left"
	}
	return probe.Errorf(def, def.Point.Pos, "%w", err)
}

// atReturns moves the sites of a definition of returns from the functions' entries to where
// their probes must be.
func (p *Plan) atReturns() error {
	if point := &p.Definition.Point; !point.Return && !point.Exit {
		return nil
	}
	var out []Site
	for _, s := range p.Sites {
		if s.Kind == dwarfloc.SiteExit {
			out = append(out, s)
			continue
		}
		at, moved, err := inside.Returns(s.Site, p.Definition.Options.Force)
		switch {
		case moved && (errors.Is(err, refusals.ErrMovingStack) || errors.Is(err, refusals.ErrUnwinding) || errors.Is(err, refusals.ErrNotCalled)):
			s.Refused = err
			out = append(out, s)
		case err != nil:
			return err
		case moved:
			for _, r := range at {
				out = append(out, Site{Site: r, Instance: -1})
			}
		default:
			if s.Site, err = firstInstruction(s.Site); err != nil {
				return err
			}
			s.Return = true
			out = append(out, s)
		}
	}
	p.Sites = out
	return nil
}

// firstInstruction moves an entry to the first instruction of its function, where the stack
// pointer points to the return address: a return probe anywhere else would take
// something else for it. In code built without optimisation the site itself is after the
// prologue.
func firstInstruction(s *dwarfloc.Site) (*dwarfloc.Site, error) {
	first, ok, err := inside.At(s, 0)
	if err != nil || !ok {
		return s, err
	}
	// If the compiler leaves room for ftrace at a function's beginning
	// (-fpatchable-function-entry), the function in DWARF begins after it.
	if own := first.Symbol == s.Function || strings.HasPrefix(first.Symbol, s.Function+"."); own && first.Offset <= maxPatchable {
		first.Addr, first.Offset = first.Addr-first.Offset, 0
	}
	// Callers in the same image do not come by the first of two entries. At the second one the
	// return address is still where it was.
	if local, ok := inside.File(first.Image).LocalEntry(first.Addr); ok {
		first.Addr, first.Offset, first.LocalEntry = local, first.Offset+local-first.Addr, true
	}
	return first, nil
}

// maxPatchable is more bytes than any kernel reserves for ftrace; arm64 reserves 8.
const maxPatchable = 64

// pointError makes an error about a pattern point into the definition's text.
func pointError(def *probe.Definition, err error) error {
	var ge *glob.Error
	if errors.As(err, &ge) {
		return probe.Errorf(def, def.Point.Pos+ge.Column-1, "%s", ge.Msg)
	}
	return err
}
