package complete

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/glob"
	"github.com/bpfprologue/bpfprologue/internal/compute"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/runs"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/sites"
)

// Of so many functions that a pattern matches, and of so many of the sites of each, the variables are looked at:
// whoever types waits.
const (
	maxFunctions = 8
	maxSites     = 24
)

// Definition completes the last word of a probe definition about an image: a function's name, an argument,
// a member, a type. It returns whole definitions. If one name is left it goes on with what can follow, so that
// a shell does not close a quotation mark too early.
func Definition(ctx context.Context, img *dwarfloc.Image, text string) ([]string, error) {
	options, rest := cutOptions(text)
	at := strings.LastIndexAny(rest, " \t")
	if at < 0 {
		return functions(ctx, img, options, rest)
	}
	head, word := options+rest[:at+1], rest[at+1:]
	out, err := arguments(ctx, img, head, word)
	for i := range out {
		out[i] = head + out[i]
	}
	return out, err
}

// cutOptions cuts the options from the beginning of a definition, with their semicolons.
func cutOptions(text string) (options, rest string) {
	for {
		head, tail, ok := strings.Cut(text[len(options):], ";")
		name, _, isOption := strings.Cut(head, "=")
		if !ok || !isOption || !slices.Contains([]string{"exec", "module", "inlines", "force"}, strings.TrimSpace(name)) {
			return options, text[len(options):]
		}
		options = text[:len(text)-len(tail)]
	}
}

// functions completes the name of a function.
func functions(ctx context.Context, img *dwarfloc.Image, options, word string) ([]string, error) {
	if strings.ContainsAny(strings.ReplaceAll(word, "::", ""), "*?[:@+%") {
		return following(ctx, img, options+word)
	}
	names, err := img.QualifiedNames(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, n := range names {
		if strings.HasPrefix(n, word) {
			out = append(out, options+escaped(n))
			continue
		}
		// The outermost namespaces of a name may be left out.
		if at := strings.Index(n, "::"+word); at >= 0 && strings.Contains(word, "::") {
			out = append(out, options+escaped(n[at+len("::"):]))
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if len(out) == 1 {
		more, err := following(ctx, img, out[0])
		if err != nil || len(more) > 0 {
			return more, err
		}
	}
	return out, nil
}

// escaped returns a name as a definition has it, as far as it can be completed: a shell's word, or what is
// quoted, is compared with what was typed.
func escaped(name string) string {
	return strings.NewReplacer(" ", `\ `, "=", `\=`, "+", `\+`, "%", `\%`, "@", `\@`, ";", `\;`, `"`, `\"`).Replace(name)
}

// following returns a whole probe point with each of the arguments that can follow.
func following(ctx context.Context, img *dwarfloc.Image, point string) ([]string, error) {
	at, _, err := sitesOf(ctx, img, point)
	if err != nil || len(at) == 0 {
		return nil, nil // not whole yet
	}
	names, err := variables(at)
	for i := range names {
		names[i] = point + " " + names[i]
	}
	return names, err
}

// sitesOf returns some of the sites of the definition's probe point.
func sitesOf(ctx context.Context, img *dwarfloc.Image, text string) (at []*dwarfloc.Site, def *probe.Definition, err error) {
	if def, err = probe.Parse(text); err != nil {
		return nil, nil, err
	}
	p := def.Point
	if p.Function == "" || p.Provider != "" || p.HasLine || p.Lazy != "" || p.Offset != 0 || p.Return || p.Exit {
		point := *def
		point.Args = nil
		all, err := plan.New(ctx, img, &point, plan.Options{EntryOnly: true})
		if err != nil {
			return nil, nil, err
		}
		for i := range all.Sites[:min(len(all.Sites), maxSites)] {
			at = append(at, all.Sites[i].Site)
		}
		return at, def, nil
	}
	m, err := glob.Compile(p.Function)
	if err != nil {
		return nil, nil, err
	}
	if strings.Contains(p.Function, "::") {
		l, err := sites.List(ctx, img, sites.Selection{Functions: m})
		if err != nil {
			return nil, nil, err
		}
		var mu sync.Mutex
		err = inside.EachOf(l, ctx, 0, min(l.Len(), maxSites), false, func(_, _ int, s *dwarfloc.Site, _ *runs.Ways) error {
			c, err := inside.Clone(s)
			mu.Lock()
			defer mu.Unlock()
			at = append(at, c)
			return err
		})
		return at, def, err
	}
	names := []string{""}
	var literal bool
	if names[0], literal = m.Literal(); !literal {
		all, err := img.FunctionNames(ctx)
		if err != nil {
			return nil, nil, err
		}
		names = names[:0]
		for _, n := range all {
			if len(names) < maxFunctions && m.Match(n) {
				names = append(names, n)
			}
		}
	}
	for _, n := range names {
		some, err := someSites(ctx, img, n)
		if err != nil {
			return nil, nil, err
		}
		at = append(at, some...)
	}
	return at, def, nil
}

var errEnough = errors.New("enough sites")

// someSites returns some of the sites of a function.
func someSites(ctx context.Context, img *dwarfloc.Image, name string) (at []*dwarfloc.Site, err error) {
	var mu sync.Mutex
	err = img.EachSite(ctx, dwarfloc.Name(name), func(_ int, r dwarfloc.SiteRef) error {
		mu.Lock()
		defer mu.Unlock()
		if len(at) >= maxSites {
			return errEnough
		}
		c, err := r.Site()
		if err == nil {
			at = append(at, c)
		}
		return err
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	return at, nil
}

// variables returns the names of variables in scope at some sites, parameters first.
func variables(at []*dwarfloc.Site) ([]string, error) {
	var params, locals []string
	for _, s := range at {
		p, l, err := namesAt(s, len(at))
		if err != nil {
			return nil, err
		}
		params, locals = append(params, p...), append(locals, l...)
	}
	var out []string
	for _, n := range append(params, locals...) {
		if n != "" && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out, nil
}

// namesAt returns the names of the parameters and locals in scope at one of n sites. Of an inlined instance, and of
// several functions, only parameters: a local without a location is searched for in the whole image, since a
// global variable may have its name, and that takes longer than a user waits.
func namesAt(s *dwarfloc.Site, n int) (params, locals []string, err error) {
	vars, err := s.Params()
	for _, v := range vars {
		params = append(params, v.Name)
	}
	if err != nil || s.Inlined() || n > 4 {
		return params, nil, err
	}
	vars, err = s.Variables()
	for _, v := range vars {
		locals = append(locals, v.Name)
	}
	return params, locals, err
}

var types = []string{"bool", "char", "s16", "s32", "s64", "s8", "string", "symbol", "symstr", "u16", "u32", "u64", "u8", "ustring", "x16", "x32", "x64", "x8"}

// arguments completes an argument, after the part of a definition before it.
func arguments(ctx context.Context, img *dwarfloc.Image, head, word string) ([]string, error) {
	at, def, err := sitesOf(ctx, img, head)
	var wrong *probe.Error
	var none *sites.NotFoundError
	switch {
	case errors.As(err, &wrong), errors.As(err, &none):
		return nil, nil // what is before is wrong: nothing can follow
	case err != nil || len(at) == 0:
		return nil, err
	}
	name, expr := "", word // NAME=EXPR
	if before, after, ok := strings.Cut(word, "="); ok {
		name, expr = before+"=", after
	}
	var out []string
	if path, of, ok := strings.Cut(expr, ":"); ok {
		for _, t := range types {
			if strings.HasPrefix(t, of) {
				out = append(out, name+path+":"+t)
			}
		}
		return out, nil
	}
	base, found := "", []string(nil)
	if cut := max(strings.LastIndex(expr, "->")+1, strings.LastIndex(expr, ".")); cut > 0 {
		base = expr[:cut+1]
		found = members(at, base)
	} else {
		if found, err = variables(at); err != nil {
			return nil, err
		}
		if expr == "" || expr[0] == '$' {
			found = append(found, "$comm", "$params", "$vars")
			if def.Point.Return || def.Point.Exit {
				found = append([]string{"$retval"}, found...)
			}
		}
	}
	for _, f := range found {
		if strings.HasPrefix(base+f, expr) {
			out = append(out, name+base+f)
		}
	}
	if len(out) == 1 {
		out = append(out, after(at, out[0], strings.TrimPrefix(out[0], name))...)
	}
	return out, nil
}

// inScope returns the sites at which the variable that an expression begins with is in scope. Of a global
// variable, which is searched for in the whole image, one site says all.
func inScope(at []*dwarfloc.Site, expr string) []*dwarfloc.Site {
	name := expr
	if end := strings.IndexAny(expr, "-.["); end >= 0 {
		name = expr[:end]
	}
	var out []*dwarfloc.Site
	for _, s := range at {
		params, locals, err := namesAt(s, len(at))
		if err == nil && (slices.Contains(params, name) || slices.Contains(locals, name)) {
			out = append(out, s)
		}
	}
	if len(out) == 0 && len(at) > 0 {
		return at[:1]
	}
	return out
}

// nothing is the name of no member. The error for it says which there are.
const nothing = "bpfprologue_completes_this"

// members returns the members of what a path like "file->" or "f.path." leads to, at any of some sites.
func members(at []*dwarfloc.Site, base string) []string {
	all := make(map[string]bool)
	for _, s := range inScope(at, base) {
		if v := resolve(s, base+nothing); v != nil && v.Wrong != nil {
			for _, m := range compute.Wrong(v).Members {
				all[m] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// after returns what can follow an expression, which is the last part of an argument: members, or a type.
func after(at []*dwarfloc.Site, argument, expr string) []string {
	for _, s := range inScope(at, expr) {
		for _, op := range []string{"->", "."} {
			if v := resolve(s, expr+op+nothing); v != nil && v.Wrong != nil && len(compute.Wrong(v).Members) > 0 {
				return []string{argument + op}
			}
		}
	}
	if strings.HasPrefix(expr, "$") {
		return nil
	}
	return []string{argument + ":"}
}

// resolve resolves an expression at a site, or returns nil.
func resolve(s *dwarfloc.Site, expr string) *dwarfloc.Variable {
	def, err := probe.Parse("f " + expr)
	if err != nil || len(def.Args) != 1 {
		return nil
	}
	v, err := compute.Resolve(s, &def.Args[0].Expr)
	if err != nil {
		return nil
	}
	return v
}
