// Package sites finds the sites of functions and of source lines in an image, and lists the
// lines and variables that can be probed there.
//
//	functions, err := glob.Compile("tcp_*msg")
//	at, err := sites.Select(ctx, img, sites.Selection{Functions: functions})
//
// Select returns the sites that a probe point names; Functions, LinesOf and Variables
// list functions with their sites, lines and variables.
package sites

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/glob"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/suggest"
)

// Selection says which sites are wanted: those of functions, of lines in functions, or of
// lines in source files.
type Selection struct {
	// Functions selects functions by name. It may be nil if Lines is not: then Lines are
	// lines of the files that Source names, in any function.
	Functions glob.Matcher
	// Provider, if not nil, makes it a selection of statically defined probes: those whose provider it matches, and whose name
	// Functions matches. Their sites are where notes of the file say.
	Provider glob.Matcher
	// Filter, if not nil, must also match the function's name.
	Filter glob.Matcher
	// Source, if not "", is the name or pattern of the file that declares the function:
	// "read_write.c", "fs/*.c". It is matched with as many of the last components of the
	// file's path as it has components.
	Source string
	// EntriesOnly excludes inlined instances.
	EntriesOnly bool
	// Lines, if not nil, selects source lines instead of functions.
	Lines *Lines
}

// NotFoundError is the error for a selection without sites: no function, file or line of
// the image matches, or none is left after the rest of the selection is applied.
type NotFoundError struct {
	Image   string // path
	Pattern string // of functions or files; "" if Line is set
	Why     string // what excluded the functions that the pattern matches; may be ""
	Inlined bool   // they are inlined everywhere, and EntriesOnly excludes that
	// Line, if not "", is the line without code, "line 5", or the lazy pattern that no line
	// with code matches. Where is the functions or the files that were searched.
	Line, Where string
	// Nearest are similar names in the image, nearest first. With Line they are the numbers
	// of the nearest lines that have code, sorted, and counted as Lines.Number is.
	Nearest []string
}

func (e *NotFoundError) Error() string {
	nearest := "; nearest: "
	var msg string
	switch {
	case e.Line != "":
		msg, nearest = fmt.Sprintf("%s: no code at %s of %s", e.Image, e.Line, e.Where), "; nearest lines with code: "
	case e.Why != "":
		msg = fmt.Sprintf("%s: %q: %s", e.Image, e.Pattern, e.Why)
	default:
		msg = fmt.Sprintf("%s: no function matches %q", e.Image, e.Pattern)
	}
	if len(e.Nearest) > 0 {
		names := make([]string, len(e.Nearest))
		for i, n := range e.Nearest {
			if names[i] = n; !strings.HasPrefix(n, staticPrefix) {
				names[i] = escaped(n)
			}
		}
		msg += nearest + strings.Join(names, ", ")
	}
	return msg
}

// escaped returns a name as a definition has it.
func escaped(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if strings.HasPrefix(name[i:], "::") || i > 0 && name[i-1:i+1] == "::" {
			b.WriteByte(':')
			continue
		}
		if strings.IndexByte("@+%:;=\"\\*?[ \t", name[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(name[i])
	}
	return b.String()
}

// maxNearest is how many names an error suggests.
const maxNearest = 5

// Select finds the sites of a selection, sorted by function and address.
//
// The error is a *NotFoundError if there are none, a *NoSourceError if a lazy pattern needs
// a source file that is missing, a *glob.Error if Source or Lines.Lazy is malformed, or an
// error about damaged debug information.
func Select(ctx context.Context, img *dwarfloc.Image, sel Selection) ([]*dwarfloc.Site, error) {
	switch {
	case sel.Lines == nil:
		return selectFunctions(ctx, img, sel)
	case sel.Functions == nil:
		return selectFileLines(ctx, img, sel)
	}
	return selectLines(ctx, img, sel)
}

func selectFunctions(ctx context.Context, img *dwarfloc.Image, sel Selection) ([]*dwarfloc.Site, error) {
	l, err := List(ctx, img, sel)
	if err != nil {
		return nil, err
	}
	return l.Sites(ctx)
}

// List is Select for functions, without Lines, whose sites may be too many to keep.
func List(ctx context.Context, img *dwarfloc.Image, sel Selection) (*dwarfloc.SiteList, error) {
	if sel.Provider != nil {
		return listStatic(ctx, img, &sel)
	}
	kept, err := newKept(&sel)
	if err != nil {
		return nil, err
	}
	m := withBrackets(sel.Functions.String(), sel.Functions)
	if last := lastName(sel.Functions.String()); last != "" {
		// The index has functions' own names.
		own, err := glob.Compile(last)
		if err != nil {
			return nil, err
		}
		m, kept.qualified = untemplated{own}, sel.Functions
	}
	if sel.Filter != nil {
		m = both{m, sel.Filter}
	}
	aliases, err := newAliases(img, &sel, m, kept.qualified != nil)
	if err != nil {
		return nil, err
	}
	l, err := inside.List(img, ctx, m, func(s *dwarfloc.Site) (bool, error) {
		aliases.saw(s)
		return kept.keep(s)
	})
	if err != nil {
		return nil, err
	}
	if l, err = aliases.add(ctx, img, &sel, m, l, kept); err != nil {
		return nil, err
	}
	missing := &NotFoundError{Image: img.Path(), Pattern: sel.Functions.String()}
	switch {
	case kept.matched.Load() && l.Len() > 0:
		return l, nil
	case kept.declared.Load():
		missing.Why, missing.Inlined = "all sites are inlined instances, which the definition excludes", true
	case kept.matched.Load():
		missing.Why = fmt.Sprintf("no matching function is declared in %q", sel.Source)
	case sel.Filter != nil:
		missing.Why = fmt.Sprintf("no function matches it and the filter %q", sel.Filter)
	default:
		if name, ok := sel.Functions.Literal(); ok && inside.File(img).Imports(name) {
			missing.Why = "it is in a library that the file needs: name that one"
			break
		}
		names, err := img.QualifiedNames(ctx)
		if err != nil {
			return nil, err
		}
		missing.Nearest = suggest.Nearest(glob.Plain(missing.Pattern), slices.Values(names), maxNearest)
	}
	return nil, missing
}

// kept decides which sites of matching functions a selection keeps.
type kept struct {
	source      glob.Matcher // or nil
	components  int          // of its paths
	entriesOnly bool
	qualified   glob.Matcher // or nil: of the function's name with its namespaces and classes

	matched  atomic.Bool // there are sites,
	declared atomic.Bool // some of them of functions that source matches
}

func newKept(sel *Selection) (*kept, error) {
	k := &kept{entriesOnly: sel.EntriesOnly}
	if sel.Source == "" {
		return k, nil
	}
	pattern, err := glob.Compile(sel.Source)
	k.source, k.components = pattern, strings.Count(sel.Source, "/")+1
	return k, err
}

func (k *kept) keep(s *dwarfloc.Site) (bool, error) {
	if k.qualified != nil {
		if ok, err := inside.Named(s, k.qualified); err != nil || !ok {
			return false, err
		}
	}
	k.matched.Store(true)
	if k.source != nil {
		file, _, err := s.Declared()
		if err != nil || !matchesTail(k.source, file, k.components) {
			return false, err
		}
	}
	k.declared.Store(true)
	return !k.entriesOnly || !s.Inlined(), nil
}

// both matches names that both matchers match.
type both struct {
	a, b interface{ Match(string) bool }
}

func (m both) Match(name string) bool  { return m.a.Match(name) && m.b.Match(name) }
func (m both) Literal() (string, bool) { return "", false }

// matchesTail matches a pattern of n path components with a file's last n, or
// with the whole path.
func matchesTail(p glob.Matcher, file string, n int) bool {
	if file == "" {
		return false
	}
	if p.Match(file) {
		return true
	}
	parts := strings.Split(path.Clean(file), "/")
	return n <= len(parts) && p.Match(strings.Join(parts[len(parts)-n:], "/"))
}

// lastName returns the pattern of a function's own name at the end of one of a qualified name, or "" if the
// pattern is of a function's own name.
func lastName(pattern string) string {
	depth, last := 0, ""
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case c == '<' || c == '(' || c == '{':
			depth++
		case c == '>' || c == ')' || c == '}':
			depth = max(0, depth-1) // what a star stands for has begun it
		case depth == 0 && strings.HasPrefix(pattern[i:], "::"):
			i++
			last = pattern[i+1:]
			if strings.HasPrefix(last, "operator") {
				return last // signs and names of types follow
			}
		}
	}
	// Only the debug information of some compilers has arguments of templates in names.
	if cut := strings.IndexByte(last, '<'); cut > 0 {
		last = last[:cut]
	}
	return last
}

// untemplated matches names with their arguments of templates or without.
type untemplated struct{ m glob.Matcher }

func (u untemplated) Match(name string) bool {
	if u.m.Match(name) {
		return true
	}
	cut := strings.IndexByte(name, '<')
	return cut > 0 && u.m.Match(name[:cut])
}
func (u untemplated) Literal() (string, bool) { return "", false }
