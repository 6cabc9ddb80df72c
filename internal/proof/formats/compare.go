package formats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/compute"
	"github.com/bpfprologue/bpfprologue/internal/proof/walk"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Result is what a comparison counted.
type Result struct {
	Sites, Inlined      int
	Parameters, Located int
	Differences         []string // of the answers, one line each
}

// answer is all that is said about one site.
type answer struct {
	addr, view uint64
	kind       dwarfloc.SiteKind
	lines      []string
	inlined    bool
	parameters int
	located    int
}

// Compare asks two images for all of their sites and parameters. f says what of the answers is not compared.
func Compare(ctx context.Context, plain, other string, f *Format) (r Result, err error) {
	if err := sameCode(plain, other); err != nil {
		return r, err
	}
	want, err := ask(ctx, plain, f)
	if err != nil {
		return r, err
	}
	got, err := ask(ctx, other, f)
	if err != nil {
		return r, err
	}
	if f.NoValues {
		loosen(want, got)
	}
	for _, a := range got {
		r.Sites++
		if a.inlined {
			r.Inlined++
		}
		r.Parameters += a.parameters
		r.Located += a.located
	}
	text := func(all []answer) (out []string) {
		for _, a := range all {
			out = append(out, strings.Join(a.lines, "\n    "))
		}
		slices.Sort(out)
		return out
	}
	w, g := text(want), text(got)
	for len(w) > 0 || len(g) > 0 {
		switch {
		case len(g) == 0 || len(w) > 0 && w[0] < g[0]:
			r.Differences = append(r.Differences, "plain: "+w[0])
			w = w[1:]
		case len(w) == 0 || g[0] < w[0]:
			r.Differences = append(r.Differences, "here:  "+g[0])
			g = g[1:]
		default:
			w, g = w[1:], g[1:]
		}
	}
	return r, nil
}

// loosen makes answers about a variable equal that one of two builds does not locate. What both locate is compared.
func loosen(want, got []answer) {
	bySite := make(map[string][][]string) // several sites can have the same two lines, in the same order
	key := func(a *answer) string { return strings.Join(a.lines[:2], "\n") }
	for i := range want {
		k := key(&want[i])
		bySite[k] = append(bySite[k], want[i].lines)
	}
	for i := range got {
		k := key(&got[i])
		if len(bySite[k]) == 0 {
			continue
		}
		a, b := bySite[k][0], got[i].lines
		bySite[k] = bySite[k][1:]
		for j := 2; len(a) == len(b) && j < len(a); j++ {
			if strings.HasSuffix(a[j], notLocated) || strings.HasSuffix(b[j], notLocated) {
				a[j], b[j] = notLocated, notLocated
			}
		}
	}
}

// notLocated ends what is said of a variable of which it does not matter why it has no location.
const notLocated = " not located"

// ask returns the answers about all sites of an image.
func ask(ctx context.Context, path string, f *Format) (out []answer, err error) {
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, img.Close()) }()
	var mu sync.Mutex
	err = walk.Answers(ctx, img, func(_ int, s *dwarfloc.Site, params []*dwarfloc.Variable) error {
		a, err := askSite(img, s, params, f)
		mu.Lock()
		defer mu.Unlock()
		out = append(out, a)
		return err
	})
	slices.SortFunc(out, func(a, b answer) int {
		return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(a.view, b.view), cmp.Compare(a.kind, b.kind))
	})
	return out, err
}

func askSite(img *dwarfloc.Image, s *dwarfloc.Site, params []*dwarfloc.Variable, f *Format) (a answer, err error) {
	a = answer{addr: s.Addr, view: s.View, kind: s.Kind, inlined: s.Inlined()}
	say := func(format string, args ...any) { a.lines = append(a.lines, fmt.Sprintf(format, args...)) }
	name, err := s.QualifiedName()
	if err != nil {
		return a, err
	}
	ranges, err := s.Ranges()
	if err != nil {
		return a, err
	}
	file, line, err := s.Declared()
	if err != nil {
		return a, err
	}
	say("%s (%s) %v at %#x view %d, %s in %s, %x, declared at %s:%d", name, s.Function, s.Kind, s.Addr, s.View, s.Place(), s.Section, ranges, file, line)
	say("called at %s:%d in %v, after the prologue: %v", s.CallFile, s.CallLine, s.Callers, s.AfterPrologue)
	for _, v := range params {
		a.parameters++
		if v.Located() {
			a.located++
		}
		text, err := variable(img, v, f, 0)
		if err != nil {
			return a, err
		}
		say("%s", text)
	}
	return a, nil
}

// maxPointers bounds chains of implicit pointers.
const maxPointers = 8

// variable says what a variable is, and where. The entry that an implicit pointer leads to has another offset in each
// format: what it leads to is said instead.
func variable(img *dwarfloc.Image, v *dwarfloc.Variable, f *Format, depth int) (string, error) {
	size, err := v.Type.ByteSize()
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("%s %s of %d bytes:", v.Name, v.Type, size)
	if f.OldTypes {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "&&", "&"), " restrict", "")
	}
	if !v.Located() && (f.Reasons || f.NoValues) {
		return text + notLocated, nil
	}
	if v.Loc.Kind == loc.KindImplicitPointer {
		to, err := compute.Pointee(v)
		if err != nil {
			return "", err
		}
		what := place(img, to)
		if to.Loc.Kind == loc.KindImplicitPointer {
			if depth > maxPointers {
				return "", fmt.Errorf("%s points to itself", v.Name)
			}
			if what, err = variable(img, to, f, depth+1); err != nil {
				return "", err
			}
		}
		return fmt.Sprintf("%s an implicit pointer, by %v, to %s %s", text, v.Loc.Rule, to.Name, what), nil
	}
	return fmt.Sprintf("%s %s by %v, %v", text, place(img, v), v.Loc.Rule, v.Reason), nil
}

// target is the entry to which an implicit pointer in a part of a location leads.
var target = regexp.MustCompile(`&\(0x[0-9a-f]+`)

// place returns a location as text, without offsets of entries.
func place(img *dwarfloc.Image, v *dwarfloc.Variable) string {
	return target.ReplaceAllString(v.Loc.Text(img.Arch()), "&(entry")
}

// Try builds a program in a format, and as it is without, in a folder, and compares the answers about what was linked,
// by its names. A plain build that is in the folder already is used again.
func Try(ctx context.Context, p *Program, sources string, f *Format, dir string) (map[string]Result, error) {
	base := f.Plain()
	want, err := buildOnce(ctx, p, sources, &base, filepath.Join(dir, p.Name+" "+base.Name))
	if err != nil {
		return nil, err
	}
	got, err := buildOnce(ctx, p, sources, f, filepath.Join(dir, p.Name+" "+f.Name))
	if err != nil {
		return nil, err
	}
	out := make(map[string]Result)
	for i := range want {
		r, err := Compare(ctx, want[i], got[i], f)
		if err != nil {
			return nil, err
		}
		out[filepath.Base(want[i])] = r
	}
	return out, nil
}

// buildOnce is Build, unless the folder is there already.
func buildOnce(ctx context.Context, p *Program, sources string, f *Format, dir string) ([]string, error) {
	dir = strings.NewReplacer(" ", "_", ",", "").Replace(dir)
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		return Build(ctx, p, sources, f, dir)
	}
	if !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	var out []string
	for name := range p.links {
		out = append(out, filepath.Join(dir, name))
	}
	slices.Sort(out)
	return out, nil
}
