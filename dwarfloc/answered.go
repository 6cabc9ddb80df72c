package dwarfloc

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/internal/answers"
	"github.com/bpfprologue/bpfprologue/internal/radix"
	"github.com/bpfprologue/bpfprologue/internal/runs"
	"github.com/bpfprologue/bpfprologue/types"
)

// answered is an image about which a pack or BTF answers.
type answered struct {
	*Image
	source answers.Source
}

// ErrNotDescribed is wrapped by the error of a question that only debug information answers, asked of an image that has
// a pack or BTF in its place.
var ErrNotDescribed = errors.New("only debug information says that")

// notDescribed is an ErrNotDescribed.
type notDescribed struct{ path, by, what string }

func (e *notDescribed) Error() string { return e.path + ": " + e.by + " does not tell " + e.what }

func (e *notDescribed) Is(target error) bool { return target == ErrNotDescribed }

// notDescribed returns the error of a question that the source cannot answer: what it does not tell is "source lines", for example.
func (img *Image) notDescribed(what string) error {
	return &notDescribed{img.Path(), img.answeredBy(), what}
}

// answeredBy is inside.AnsweredBy.
func (img *Image) answeredBy() string { return img.by.name() }

func (img answered) name() string               { return img.source.What() }
func (img answered) guard(f func() error) error { return img.guardFiles(f) }
func (img answered) hasLines() error            { return img.notDescribed("source lines") }

func (img answered) siteAt(_ context.Context, addr uint64) (at *Site, err error) {
	t, is := img.source.(*answers.Symbols)
	if !is {
		return nil, img.notDescribed("which body holds an address")
	}
	err = img.guard(func() error {
		number, ok := t.At(addr)
		if !ok {
			return fmt.Errorf("%s: %w %#x: no symbol is of code there", img.Path(), ErrNoFunction, addr)
		}
		return t.Sites([]uint64{number}, func(_ int, x *answers.Site) error {
			var s Site
			img.site(x, &s, new(runs.Ways))
			s.reused = false
			if at = &s; addr != s.Addr {
				at = s.instruction(addr)
			}
			return nil
		})
	})
	return at, err
}

// instruction returns the site of an instruction in the function of an entry.
func (s *Site) instruction(addr uint64) *Site {
	at := *s
	at.reused, at.Kind, at.Addr, at.View, at.AfterPrologue, at.body = false, SiteInstruction, addr, 0, false, s.Addr
	at.locateSymbol(s.Function)
	return &at
}

func (img answered) namedType(name string) (*types.Type, error) {
	t, err := img.source.Types().Named(name)
	if other := img.o.TypesOf; err == nil && t == nil && other != nil {
		return other.by.namedType(name)
	}
	return t, err
}

// site makes s and w what the source has about a site.
func (img answered) site(x *answers.Site, s *Site, w *runs.Ways) {
	a := &answeredSite{Site: *x, source: img.source}
	*w = a.Ways
	*s = Site{
		Kind: SiteEntry, Addr: x.Addr, View: x.View, DIE: x.Number, Image: img.Image, by: a, described: true, reused: true,
		Function: x.Function, Symbol: x.Symbol, Offset: x.Offset, AfterPrologue: x.AfterPrologue, LocalEntry: x.LocalEntry,
		CallFile: x.CallFile, CallLine: x.CallLine, Semaphore: x.Semaphore,
	}
	switch {
	case x.Inline:
		s.Kind = SiteInline
	case x.Evidence == answers.ByNote:
		s.Kind, a.around = SiteInstruction, img.around(x.Addr)
	}
	if len(x.Callers) > 0 {
		s.Callers = make([]Caller, len(x.Callers))
	}
	for i := range s.Callers {
		s.Callers[i] = Caller(x.Callers[i])
	}
	if sec := img.file.SectionAt(s.Addr); sec != nil {
		s.Section = sec.Name
	}
}

// leastAtOnce and mostAtOnce are how many sites a goroutine takes at once: enough that what is near is read together, and so few that all
// goroutines have something to do.
const leastAtOnce, mostAtOnce = 16, 1024

// each calls f for each of the source's sites, as SiteList.Each does. Sites are taken in the order of their
// numbers: what is near is read together.
func (img answered) each(ctx context.Context, numbers []uint64, f func(worker, i int, s *Site, w *runs.Ways) error) error {
	order := make([]int32, len(numbers))
	for i := range order {
		order[i] = int32(i)
	}
	order = radix.Sort(order, func(i *int32) uint64 { return numbers[*i] })
	workers := runtime.GOMAXPROCS(0)
	atOnce := min(max(len(numbers)/(4*workers), leastAtOnce), mostAtOnce)
	var next atomic.Int64
	var failed atomic.Pointer[error]
	work := func(worker int) error {
		var some []uint64
		for failed.Load() == nil {
			from := int(next.Add(int64(atOnce))) - atOnce
			if from >= len(order) {
				return nil
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			which := order[from:min(from+atOnce, len(order))]
			some = some[:0]
			for _, i := range which {
				some = append(some, numbers[i])
			}
			var s Site
			var w runs.Ways
			err := img.source.Sites(some, func(i int, x *answers.Site) error {
				img.site(x, &s, &w)
				return f(worker, int(which[i]), &s, &w)
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	var all sync.WaitGroup
	for worker := range min(workers, (len(numbers)+atOnce-1)/atOnce) {
		all.Go(func() {
			if err := img.guard(func() error { return work(worker) }); err != nil {
				failed.CompareAndSwap(nil, &err)
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return img.Changed()
}

// names returns what a question about names returns.
func (img answered) names(all func() ([]string, error)) (out []string, err error) {
	err = img.guard(func() (err error) {
		out, err = all()
		return err
	})
	return out, err
}

func (img answered) functionNames(context.Context) ([]string, error) {
	return img.names(img.source.Names)
}

func (img answered) qualifiedNames(context.Context) ([]string, error) {
	return img.names(img.source.QualifiedNames)
}

func (img answered) list(ctx context.Context, m Matcher, keep func(s *Site) (bool, error)) (*SiteList, error) {
	var numbers []uint64
	err := img.guard(func() (err error) {
		numbers, err = img.source.List(m)
		return err
	})
	if err != nil {
		return nil, err
	}
	return img.listed(ctx, numbers, keep)
}

// fewListed are so few sites that a list keeps those that it has looked at: whoever asks for a few wants them next.
const fewListed = 2048

// listed returns the list of the sites with some numbers that keep, if it is not nil, accepts.
func (img answered) listed(ctx context.Context, numbers []uint64, keep func(s *Site) (bool, error)) (*SiteList, error) {
	l := &answeredList{img: img, numbers: numbers}
	if keep == nil {
		return &SiteList{l}, nil
	}
	kept := make([]bool, len(l.numbers))
	var made []*Site
	if len(l.numbers) <= fewListed {
		made = make([]*Site, len(l.numbers))
	}
	err := img.each(ctx, l.numbers, func(_, i int, s *Site, _ *runs.Ways) (err error) {
		if kept[i], err = keep(s); kept[i] && made != nil {
			made[i], err = s.keptCopy()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	n := 0
	for i := range l.numbers {
		if kept[i] {
			l.numbers[n] = l.numbers[i]
			n++
		}
	}
	l.numbers = l.numbers[:n]
	if made != nil {
		made = slices.DeleteFunc(made, func(s *Site) bool { return s == nil })
		l.made.Store(&made)
	}
	return &SiteList{l}, nil
}

// answeredList is the sites of a list by their numbers.
type answeredList struct {
	img     answered
	numbers []uint64
	made    atomic.Pointer[[]*Site] // or nil: the sites, for who asks for them first
}

func (l *answeredList) len() int { return len(l.numbers) }

func (l *answeredList) sites(ctx context.Context) ([]*Site, error) {
	if made := l.made.Swap(nil); made != nil {
		return *made, l.img.Changed()
	}
	out := make([]*Site, len(l.numbers))
	err := l.img.each(ctx, l.numbers, func(_, i int, s *Site, _ *runs.Ways) (err error) {
		out[i], err = s.keptCopy()
		return err
	})
	return out, err
}

func (l *answeredList) each(ctx context.Context, from, to int, ways bool, f func(worker, i int, s *Site, w *runs.Ways) error) error {
	return l.img.each(ctx, l.numbers[from:to], func(worker, i int, s *Site, w *runs.Ways) error {
		if !ways {
			w = nil
		}
		return f(worker, from+i, s, w)
	})
}

// eachSelected calls f for the sites that m selects.
func (img answered) eachSelected(ctx context.Context, m Matcher, f func(worker int, s *Site, w *runs.Ways) error) error {
	var numbers []uint64
	err := img.guard(func() (err error) {
		numbers, err = img.source.List(m)
		return err
	})
	if err != nil {
		return err
	}
	return img.each(ctx, numbers, func(worker, _ int, s *Site, w *runs.Ways) error { return f(worker, s, w) })
}

func (img answered) eachSite(ctx context.Context, m Matcher, f func(worker int, s *Site) error) error {
	return img.eachSelected(ctx, m, func(worker int, s *Site, _ *runs.Ways) error { return f(worker, s) })
}

func (img answered) eachWays(ctx context.Context, f func(worker int, s *Site, w *runs.Ways) error) error {
	return img.eachSelected(ctx, nil, func(worker int, s *Site, w *runs.Ways) error {
		if s.Kind != SiteInline {
			w = nil
		}
		return f(worker, s, w)
	})
}

func (img answered) ways(_ context.Context, sites []*Site) ([]runs.Ways, error) {
	out := make([]runs.Ways, len(sites))
	for i, s := range sites {
		if a, ok := s.by.(*answeredSite); ok && s.Kind == SiteInline {
			out[i] = a.Ways
		}
	}
	return out, nil
}

func (img answered) along(_ context.Context, sites []*Site, _ func(int) ([]*Variable, bool)) ([][]*Site, error) {
	return make([][]*Site, len(sites)), nil
}

func (img answered) check(sites []*Site, out []error) error {
	for i, s := range sites {
		if a, ok := s.by.(*answeredSite); ok {
			out[i] = a.problem(s)
		}
	}
	return nil
}
