package fleet

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/glob"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/sites"
)

// shape tells whether two functions may be one that was renamed.
type shape struct {
	file   string // that declares it, with the directory
	params []string
}

func shapeOf(s *dwarfloc.Site) (x shape) {
	file, _, err := s.Declared()
	if err != nil || file == "" {
		return x
	}
	params, err := s.Params()
	if err != nil {
		return x
	}
	x.file = path.Join(path.Base(path.Dir(file)), path.Base(file))
	for _, p := range params {
		x.params = append(x.params, p.Name)
	}
	return x
}

// mayBe reports whether a function of this shape may be one of another shape under a new name: in the same file and with the same
// parameters, of which some at the end may be new or gone.
func (x *shape) mayBe(y *shape) bool {
	n := min(len(x.params), len(y.params))
	return x.file != "" && x.file == y.file && n > 0 && slices.Equal(x.params[:n], y.params[:n])
}

// candidate is a function with which a definition works.
type candidate struct {
	names string
	shape shape
	own   bool // its name is made of the definition's, and it has everything everywhere
}

// maxTried is how many functions are tried for one that the kernel does not have.
const maxTried = 16

// help finds functions with which a definition works on a kernel that does not have its own.
func (k *Kernel) help(ctx context.Context, def *probe.Definition, c *Cell, options plan.Options) error {
	var missing *sites.NotFoundError
	if !errors.As(c.err, &missing) || missing.Why != "" {
		return nil
	}
	names, err := k.img.QualifiedNames(ctx)
	if err != nil {
		return err
	}
	tried := 0
	for _, own := range def.Point.Candidates() {
		m, err := glob.Compile(own)
		if err != nil {
			return nil // which is said already
		}
		name, literal := m.Literal()
		if !literal {
			continue
		}
		for other, own := range related(name, names, missing.Nearest) {
			if tried++; tried > maxTried {
				return nil
			}
			one := *def
			one.Point.Function = other
			x, err := k.check(ctx, &one, options)
			if err != nil {
				return err
			}
			if x.Error == "" && x.Whole > 0 {
				c.candidates = append(c.candidates, candidate{def.Point.Function + "|" + other, x.shape, own && x.Whole == x.Probes})
			}
		}
	}
	return nil
}

// choose chooses the candidates of cells: functions that may be the one that other kernels have, or, where none has it, those whose names say
// so.
func choose(cells []Cell) {
	var known []*shape
	for i := range cells {
		if cells[i].Error == "" {
			known = append(known, &cells[i].shape)
		}
	}
	for i := range cells {
		for _, x := range cells[i].candidates {
			if x.own && known == nil || slices.ContainsFunc(known, x.shape.mayBe) {
				cells[i].Candidates = x.names
				break
			}
		}
	}
}

// beginnings are what names of kernel functions get before them when these are split.
var beginnings = []string{"__", "do_", "__do_", "ksys_", "_"}

// related returns functions of a kernel that one with a name may be called now, and whether that is by the name alone: its own with another
// beginning or without its last words, since names grow with parameters (kfree_skb became kfree_skb_reason); then the nearest ones, and
// those that go on after the name (kmalloc became kmalloc_noprof), the shortest ones first. names are sorted.
func related(name string, names, nearest []string) iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		seen := map[string]bool{name: true}
		give := func(other string, own bool) bool {
			_, known := slices.BinarySearch(names, other)
			if seen[other] || !known || strings.Trim(other, identifier) != "" {
				return true
			}
			seen[other] = true
			return yield(other, own)
		}
		stem := strings.TrimLeft(name, "_")
		for _, b := range beginnings {
			if !give(b+stem, true) || !give(strings.TrimPrefix(name, b), true) {
				return
			}
		}
		for short := name; ; {
			i := strings.LastIndexByte(short, '_')
			if i <= 0 {
				break
			}
			// One word alone, as "do" or "get", says nothing.
			if short = short[:i]; strings.Contains(strings.TrimLeft(short, "_"), "_") && !give(short, true) {
				return
			}
		}
		i, _ := slices.BinarySearch(names, name+"_")
		var longer []string
		for ; i < len(names) && strings.HasPrefix(names[i], name+"_"); i++ {
			longer = append(longer, names[i])
		}
		slices.SortFunc(longer, func(a, b string) int { return cmp.Or(len(a)-len(b), cmp.Compare(a, b)) })
		for _, other := range slices.Concat(nearest, longer) {
			if !give(other, false) {
				return
			}
		}
	}
}

// identifier are the characters of names that are no pattern.
const identifier = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
