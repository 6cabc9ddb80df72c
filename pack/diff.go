package pack

import (
	"bytes"
	"debug/elf"
	"fmt"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/packfile"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Change is how a function differs between two packs. Sites are the same if they are of one kind and in the same callers: by
// their names, since code moves from build to build.
type Change struct {
	Function string `json:"function"`
	// Old and New are its numbers of sites.
	Old Count `json:"old"`
	New Count `json:"new"`
	// Added and Removed are sites that the other pack does not have, and Moved those that it has with values elsewhere: in another
	// register, for instance, or with a reason instead.
	Added   int `json:"added,omitempty"`
	Removed int `json:"removed,omitempty"`
	Moved   int `json:"moved,omitempty"`
	// Parameters are their names in both, if they differ; a function can have several lists.
	OldParameters []string `json:"old_parameters,omitempty"`
	NewParameters []string `json:"new_parameters,omitempty"`
}

// Count are a function's sites in one pack.
type Count struct {
	Entries int `json:"entries"`
	Inlined int `json:"inlined"`
}

// Differences are what changed from one pack to another.
type Differences struct {
	// Functions are those that are in both packs, and Same those of them of which nothing changed.
	Functions int      `json:"functions"`
	Same      int      `json:"same"`
	Changes   []Change `json:"changes"` // by name, with functions that are in one of the packs
}

// Diff compares two packs: data are the contents of files, and paths what errors name.
func Diff(from, to []byte, fromPath, toPath string) (*Differences, error) {
	a, err := functionsOf(from, fromPath)
	if err != nil {
		return nil, err
	}
	b, err := functionsOf(to, toPath)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(a))
	for n := range a {
		names = append(names, n)
	}
	for n := range b {
		if a[n] == nil {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	out := &Differences{Changes: []Change{}}
	for _, n := range names {
		x, y := a[n], b[n]
		if x != nil && y != nil {
			out.Functions++
		} else if x == nil {
			x = new(profile)
		} else {
			y = new(profile)
		}
		c := Change{Function: n, Old: x.Count, New: y.Count}
		c.compare(x, y)
		switch {
		case c.Added+c.Removed+c.Moved > 0 || c.OldParameters != nil || c.NewParameters != nil:
			out.Changes = append(out.Changes, c)
		default:
			out.Same++
		}
	}
	return out, nil
}

// profile is what is compared of a function.
type profile struct {
	Count
	params []string // lists
	sites  map[string][]string
}

// functionsOf reads what is compared of all functions.
func functionsOf(data []byte, path string) (map[string]*profile, error) {
	f, err := open(data, path)
	if err != nil {
		return nil, err
	}
	file, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	a, err := arch.ForELF(file.Machine, file.Class, file.Data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	refs, err := f.List(nil)
	if err != nil {
		return nil, err
	}
	out := make(map[string]*profile)
	shared := make(map[string]string) // each text once
	text := func(s string) string {
		if t, known := shared[s]; known {
			return t
		}
		shared[s] = s
		return s
	}
	texts := make(map[*loc.Expr]string) // of expressions that values share
	err = f.Each(refs, func(_ int, s *packfile.Site) error {
		p := out[s.Function.Name]
		if p == nil {
			p = &profile{sites: make(map[string][]string)}
			out[s.Function.Name] = p
		}
		if s.Inline {
			p.Inlined++
		} else {
			p.Entries++
		}
		if list := text(parameters(s.Function)); !slices.Contains(p.params, list) {
			p.params = append(p.params, list)
		}
		where := text(whereOf(s))
		p.sites[where] = append(p.sites[where], text(values(s, a, texts)))
		return nil
	})
	return out, err
}

func parameters(f *packfile.Function) string {
	var b strings.Builder
	for i := range f.Params {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(f.Params[i].Name)
	}
	return b.String()
}

// whereOf is what a site is called by from build to build.
func whereOf(s *packfile.Site) string {
	if !s.Inline {
		if rest, ok := strings.CutPrefix(s.Symbol, s.Function.Name); ok && rest != "" {
			return "entry " + clone(rest)
		}
		return "entry"
	}
	var b strings.Builder
	b.WriteString("in")
	for i := range s.Callers {
		b.WriteByte(' ')
		b.WriteString(s.Callers[i].Function)
	}
	return b.String()
}

// clone is a clone's suffix without its numbers, which differ from build to build.
func clone(suffix string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, suffix)
}

// values says where the values of a site are, but for addresses in the image.
func values(s *packfile.Site, a *arch.Arch, texts map[*loc.Expr]string) string {
	var b strings.Builder
	for i := range s.Values.Params {
		v := &s.Values.Params[i]
		fmt.Fprintf(&b, "%d %d", v.Loc.Kind, v.Reason.Code)
		v.Loc.Exprs(func(e *loc.Expr) {
			t, known := texts[e]
			if !known {
				t = withoutAddresses(e).Text(a)
				texts[e] = t
			}
			b.WriteString(t)
		})
		b.WriteByte(';')
	}
	return b.String()
}

func withoutAddresses(e *loc.Expr) *loc.Expr {
	c := packfile.CloneExpr(e)
	c.Walk(func(x *loc.Expr) {
		if x.Op == ops.Addr {
			x.K = 0
		}
	})
	return c
}

// compare counts what differs.
func (c *Change) compare(x, y *profile) {
	slices.Sort(x.params)
	slices.Sort(y.params)
	if len(x.sites) > 0 && len(y.sites) > 0 && !slices.Equal(x.params, y.params) {
		c.OldParameters, c.NewParameters = x.params, y.params
	}
	for where, l := range x.sites {
		m := y.sites[where]
		both := min(len(l), len(m))
		c.Removed += len(l) - both
		c.Added += len(m) - both
		c.Moved += max(both-common(l, m), 0)
	}
	for where, m := range y.sites {
		if _, known := x.sites[where]; !known {
			c.Added += len(m)
		}
	}
}

// common returns how many elements two lists have in common.
func common(l, m []string) (n int) {
	slices.Sort(l)
	slices.Sort(m)
	for len(l) > 0 && len(m) > 0 {
		switch {
		case l[0] == m[0]:
			n++
			l, m = l[1:], m[1:]
		case l[0] < m[0]:
			l = l[1:]
		default:
			m = m[1:]
		}
	}
	return n
}
