package glob

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
)

// Selection says which sites of an image are wanted.
type Selection struct {
	Functions Matcher
	// Filter keeps functions that it matches too; nil keeps all.
	Filter Matcher
	// Source keeps functions that are declared in a file: a name or pattern that
	// matches the file's last path components, as in "read_write.c" or "fs/*.c". ""
	// keeps all.
	Source string
	// EntriesOnly leaves inlined instances out.
	EntriesOnly bool
}

// NotFoundError is Expand's error for a selection without sites.
type NotFoundError struct {
	Image   string   // path
	Pattern string   // what was looked for
	Nearest []string // functions whose names are near
	Why     string   // what removed the functions that the pattern does match; may be ""
}

func (e *NotFoundError) Error() string {
	msg := fmt.Sprintf("%s: no function matches %q", e.Image, e.Pattern)
	if e.Why != "" {
		msg = fmt.Sprintf("%s: %q: %s", e.Image, e.Pattern, e.Why)
	}
	if len(e.Nearest) > 0 {
		msg += "; nearest: " + strings.Join(e.Nearest, ", ")
	}
	return msg
}

// maxNearest is how many names an error suggests.
const maxNearest = 5

// Expand finds the sites of the functions that are selected, in a stable order: by
// function, then address. A selection without any is a *NotFoundError.
func Expand(ctx context.Context, img *dwarfloc.Image, sel Selection) ([]*dwarfloc.Site, error) {
	var m dwarfloc.Matcher = sel.Functions
	if sel.Filter != nil {
		m = both{sel.Functions, sel.Filter}
	}
	sites, err := img.Sites(ctx, m)
	if err != nil {
		return nil, err
	}
	missing := &NotFoundError{Image: img.Path(), Pattern: sel.Functions.String()}
	if name, ok := sel.Functions.Literal(); len(sites) == 0 && ok && sel.Filter == nil {
		if sites, err = aliased(ctx, img, name); err != nil {
			return nil, err
		}
	}
	if len(sites) == 0 && sel.Filter != nil {
		missing.Why = fmt.Sprintf("no function matches it and the filter %q", sel.Filter)
		return nil, missing
	}
	if len(sites) == 0 {
		names, err := img.FunctionNames(ctx)
		if err != nil {
			return nil, err
		}
		missing.Nearest = Nearest(missing.Pattern, slices.Values(names), maxNearest)
		return nil, missing
	}
	if sel.Source != "" {
		if sites, err = declaredIn(sites, sel.Source); err != nil {
			return nil, err
		}
		if len(sites) == 0 {
			missing.Why = fmt.Sprintf("no matching function is declared in %q", sel.Source)
			return nil, missing
		}
	}
	if sel.EntriesOnly {
		sites = slices.DeleteFunc(sites, func(s *dwarfloc.Site) bool { return s.Inlined() })
		if len(sites) == 0 {
			missing.Why = "all sites are inlined instances, which the definition excludes"
			return nil, missing
		}
	}
	return sites, nil
}

// aliased finds the functions whose code has a symbol that the debug information does
// not know: malloc is a symbol of __libc_malloc. What is inlined has no symbol.
func aliased(ctx context.Context, img *dwarfloc.Image, name string) ([]*dwarfloc.Site, error) {
	at := make(map[uint64]bool)
	for _, s := range img.Symbols(name) {
		at[s.Addr] = true
	}
	if len(at) == 0 {
		return nil, nil
	}
	var mu sync.Mutex
	names := make(map[string]bool)
	err := img.EachSite(ctx, dwarfloc.Every{}, func(_ int, s *dwarfloc.Site) error {
		if s.Kind != dwarfloc.Entry || !at[s.Addr] {
			return nil
		}
		c := s.Clone()
		if err := c.Describe(); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		names[c.Function] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	var out []*dwarfloc.Site
	for _, n := range slices.Sorted(maps.Keys(names)) {
		sites, err := img.Sites(ctx, dwarfloc.Name(n))
		if err != nil {
			return nil, err
		}
		for _, s := range sites {
			if s.Kind == dwarfloc.Entry && at[s.Addr] {
				out = append(out, s)
			}
		}
	}
	return out, nil
}

// both matches what two matchers match.
type both struct{ a, b Matcher }

func (m both) Match(name string) bool  { return m.a.Match(name) && m.b.Match(name) }
func (m both) Literal() (string, bool) { return "", false }

func declaredIn(sites []*dwarfloc.Site, source string) ([]*dwarfloc.Site, error) {
	pattern, err := Compile(source)
	if err != nil {
		return nil, err
	}
	var out []*dwarfloc.Site
	for _, s := range sites {
		file, _, err := s.Declared()
		if err != nil {
			return nil, err
		}
		if matchesTail(pattern, file, strings.Count(source, "/")+1) {
			out = append(out, s)
		}
	}
	return out, nil
}

// matchesTail matches a pattern of n path components with a file's last n, or
// with the whole path.
func matchesTail(p *Pattern, file string, n int) bool {
	if file == "" {
		return false
	}
	if p.Match(file) {
		return true
	}
	parts := strings.Split(path.Clean(file), "/")
	return n <= len(parts) && p.Match(strings.Join(parts[len(parts)-n:], "/"))
}
