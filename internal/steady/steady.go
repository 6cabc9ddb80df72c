// Package steady finds which statements of a function leave a parameter as it is, by all bodies of the function in an image.
//
//	leaves, err := steady.Of(img).Leaves(&spot, key, "flags")
//
// GCC without location views writes one note of a variable for an address. Where several statements of a body begin at the probe, that is of
// what the variable is behind all of them but the last, and what was passed only if they leave it. The body itself does not tell. Others do, in
// three ways: instructions stand between two statements, and the note is about both and is of what they do not change; or a variable of a caller is in the same
// place, behind the statements; or both have the same number there, in each body of one call, and not always one. With views dropped from Debian's 6.1 kernel (amd64), 50,300 of 71,200 doubtful parameters are
// known to be steady, and all are where the views say.
//
//	passes, err := steady.Of(img).Passes(&spot, key, x, expr)
//
// LLVM, and GCC without markers, do not say where statements begin. There a body shows the third way alone, as a whole.
package steady

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// enough is how many bodies have to show that a statement leaves a parameter. By one alone, 8 of 4,450 more would be wrong in the kernel above: a caller may have what
// the statement makes of another number.
const enough = 2

// Functions are those of an image.
type Functions struct {
	img *entries.Image
	of  entries.ByFunction[*function]
}

type key struct{}

// Of returns the functions of an image.
func Of(img *entries.Image) *Functions {
	f, known := img.Derived.Load(key{})
	if !known {
		f, _ = img.Derived.LoadOrStore(key{}, &Functions{img: img})
	}
	return f.(*Functions)
}

// function is what the bodies of one show.
type function struct {
	mu    sync.Mutex
	shown map[effect]shown
	pairs map[pair]numbers // until they are learned
	// passes are variables of callers that a call passes for a parameter, of bodies without markers.
	passes map[pair]bool
}

func newFunction() *function {
	return &function{shown: make(map[effect]shown), pairs: make(map[pair]numbers)}
}

// effect is that of a statement on a parameter.
type effect struct {
	parameter string
	line      uint32
	column    uint32
	nth       int // of those with its place that begin at one address: a macro's have one place
}

// shown is in how many bodies a statement leaves the parameter, and whether it assigns it in one.
type shown struct {
	leaves  int
	assigns bool
	// numbers are the different ones that it leaves where the parameter is a number, up to one more than enough. The first does not count: a statement that
	// assigns others may leave 0, or -1. Bodies are read in any order, so nothing else of them is kept.
	numbers []string
}

// Leaves reports whether the statements of the body at a spot that begin at its address, all but the last, leave a parameter. The key is that of the body's function.
func (f *Functions) Leaves(s *entries.Spot, k *entries.FunctionKey, parameter string) (bool, error) {
	here, err := statements(nil, s.U, s.Rec, dw.Range{Lo: s.At.Addr, Hi: s.At.Addr + 1})
	if err != nil || len(here) == 0 {
		return false, err
	}
	g, err := f.learned(k)
	if g == nil || err != nil {
		return false, err
	}
	return !slices.ContainsFunc(here[:len(here)-1], func(at statement) bool {
		_, leaves := g.shown[at.on(parameter)]
		return !leaves
	}), nil
}

// learned returns what the bodies of a function show, or nil if they show nothing.
func (f *Functions) learned(k *entries.FunctionKey) (*function, error) {
	few := 64
	if f.img.AsksAll() {
		few = 8 // of an image with views only a few are asked for
	}
	return f.of.Of(k, few, func() (*function, error) {
		sel, units, err := f.img.Index.Candidates(context.Background(), k)
		if err != nil {
			return nil, err
		}
		g := newFunction()
		named := func(u *entries.Unit, r *index.Rec) bool { return sel.Match(u.NameRefOf(r)) }
		err = f.learn(units, false, named, func(is entries.FunctionKey) *function {
			if is == *k {
				return g
			}
			return nil
		})
		g.finish()
		return g, err
	}, func() (map[entries.FunctionKey]*function, error) {
		every := make(map[entries.FunctionKey]*function)
		var mu sync.Mutex
		err := f.learn(f.img.Index.AllUnits(), true, func(*entries.Unit, *index.Rec) bool { return true }, func(is entries.FunctionKey) *function {
			mu.Lock()
			defer mu.Unlock()
			g := every[is]
			if g == nil {
				g = newFunction()
				every[is] = g
			}
			return g
		})
		maps.DeleteFunc(every, func(_ entries.FunctionKey, g *function) bool {
			g.finish()
			return len(g.shown) == 0 && len(g.passes) == 0
		})
		return every, err
	})
}

// learn reads the bodies in some units of functions that are asked for: of those that named names, as far as of knows them. What was read of a unit is freed,
// unless these are few and its rows had been read before: the line tables of a kernel for riscv64 take 377 MB.
func (f *Functions) learn(units []int, all bool, named func(*entries.Unit, *index.Rec) bool, of func(entries.FunctionKey) *function) error {
	return f.img.Index.Parallel(len(units), func(scanner *index.Scanner, i int) error {
		u := &f.img.Units[units[i]]
		if u.IsType() {
			return nil
		}
		if all || !u.HasRows() {
			defer u.ForgetLearned()
		}
		if err := scanner.Open(u.Unit); err != nil {
			return err
		}
		if u.Body.IsGo() {
			return nil
		}
		own := make(map[int32]*function) // by their records
		for i := range u.Recs {
			r := &u.Recs[i]
			if r.Flags&index.HasPC == 0 || !named(u, r) {
				continue
			}
			g, known := own[r.Root]
			if !known || r.Root < 0 {
				k, err := entries.KeyOf(u, int32(i))
				if err != nil {
					return err
				}
				g = of(k)
				own[r.Root] = g
			}
			if g == nil {
				continue
			}
			if err := g.body(u, int32(i)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Passes reports whether what a parameter has at a spot, by its constant or an expression, in a body without markers, is a number that the call passes: that of a caller's variable, which both have in all
// bodies of that call, and not always one number.
func (f *Functions) Passes(s *entries.Spot, k *entries.FunctionKey, x *entries.Var, expr []byte) (bool, error) {
	g, err := f.learned(k)
	if g == nil || err != nil || len(g.passes) == 0 {
		return false, err
	}
	parameter, err := x.Text()
	number := numberOf(x, expr)
	if err != nil || number == nil {
		return false, err
	}
	callers, err := placesOf(s)
	return slices.ContainsFunc(callers, func(c variable) bool {
		return bytes.Equal(c.number, number) && g.passes[pairOf(s, parameter, c.name)]
	}), err
}

// finish takes what a call passes in several numbers, and keeps what enough bodies show.
func (g *function) finish() {
	for k, n := range g.pairs {
		switch {
		case !n.several || n.differ:
		case k.line == 0:
			if g.passes == nil {
				g.passes = make(map[pair]bool)
			}
			g.passes[k] = true
		default:
			x := g.shown[k.effect]
			x.leaves += enough
			g.shown[k.effect] = x
		}
	}
	g.pairs = nil
	maps.DeleteFunc(g.shown, func(_ effect, x shown) bool { return x.assigns || x.leaves+max(len(x.numbers)-1, 0) < enough })
}
