package dwarfloc

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/internal/abi"
	"github.com/bpfprologue/bpfprologue/internal/radix"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// An image need not have DWARF: a pack has the answers, and BTF has signatures. Either is a
// teller. What follows a location (paths, types, computations) is the same for all images.

// teller answers for an image without DWARF.
type teller interface {
	// list returns numbers of the sites of the functions that m selects, in the order of Image.Sites.
	list(ctx context.Context, m Matcher) ([]uint64, error)
	// sites calls f for sites with their indices in numbers, in any order. s has all fields but those that
	// follow from the image, and w its ways; both are reused.
	sites(numbers []uint64, f func(i int, s *Site, w *Ways) error) error
	names() ([]string, error)
	qualifiedNames() ([]string, error)
	types() *types.BTF
	// what is what answers, in words: "a pack".
	what() string
}

// told is what a teller knows of one site.
type told struct {
	qualified string
	file      string // where the function is declared
	line      int
	body      Body
	start     uint64 // of the function that contains the code
	ways      *Ways
	at        values

	addr    uint64                                          // the site's own
	looked  bool                                            // refused was asked for
	refused string                                          // why no kernel takes a probe, if that was looked at, or ""
	wayIn   func(probe uint64) (refused string, known bool) // likewise of a way in; in a program what is wrong with its address
	wayOut  func(probe uint64) (wrong string, known bool)   // and of a way out
	problem string                                          // what is wrong with the site's own address, or ""
}

// values are where the values of a function are.
type values interface {
	// params returns the parameters as they are at a site of the function or of its instance. They may be
	// changed.
	params(s *Site) ([]*Variable, error)
	// result returns $retval without its name and role, and frame $frame.
	result(s *Site) (*Variable, error)
	frame(s *Site) (*Variable, error)
	// pointee returns the object of an implicit pointer (loc.Location.Target) of the site.
	pointee(s *Site, target uint64) (*Variable, error)
	// symbol returns the symbol of the address of a way.
	symbol(addr uint64) (name string, offset uint64)
	// code returns the bytes of the instruction at an address, as far as they are kept.
	code(addr uint64) []byte
}

// types returns the image's types if they are in BTF.
func (img *Image) types() *types.BTF {
	if img.told == nil {
		return nil
	}
	return img.told.types()
}

// newBTF returns the types of an image that has them in BTF, which is still to be read.
func (img *Image) newBTF() *types.BTF {
	return types.NewBTF(types.BTFSource{Path: img.Path(), WordSize: img.Arch().WordSize, Guard: img.guard})
}

// untold returns the error of a question that a teller cannot answer.
func (img *Image) untold(what string) error {
	return &NotToldError{Path: img.Path(), By: img.told.what(), What: what}
}

// NotToldError is the error of a question that only debug information answers, asked of an image that has
// something else in its place.
type NotToldError struct {
	Path string
	By   string // what the image has: "a pack", "BTF"
	What string // what it does not tell: "source lines"
}

func (e *NotToldError) Error() string { return e.Path + ": " + e.By + " does not tell " + e.What }

// notDescribed is the reason for what a teller does not say about one variable.
func notDescribed(detail string) loc.Reason {
	return loc.Reason{Code: loc.ReasonNotDescribed, Detail: detail}
}

// toldLookup is lookup for a site of a teller, which knows parameters alone.
func (s *Site) toldLookup(name string) (*Variable, error) {
	params, err := s.told.at.params(s)
	if err != nil {
		return nil, err
	}
	for _, v := range params {
		if v.Name == name {
			return v, nil
		}
	}
	r := loc.Reason{Code: loc.ReasonNoSuchVariable, Detail: strconv.Quote(name) + " is no parameter, and " + s.Image.told.what() + " has no other variables"}
	return &Variable{Name: name, Role: RoleLocal, Type: types.VoidType, Reason: r}, nil
}

// toldResult is result for a site of a teller.
func (s *Site) toldResult() (*Variable, error) {
	v, err := s.told.at.result(s)
	if err != nil {
		return nil, err
	}
	v.Name, v.Role, v.Entries, v.Site = "$retval", RoleGiven, 1, s
	r, err := v.Type.Resolve()
	switch {
	case err != nil:
		return nil, err
	case r.Kind == types.Void && v.Reason.Code != loc.ReasonNotDescribed:
		v.Loc, v.Reason = loc.Location{}, loc.Reason{Code: loc.ReasonTypeMismatch, Detail: returnsNothing}
		v.Wrong = errors.New(returnsNothing)
	case s.Kind == SiteExit:
		v.Loc, v.Reason = loc.Location{}, loc.Reason{Code: loc.ReasonOptimizedOut, Detail: resultOfInlined}
	}
	return v, nil
}

// toldSites returns the sites with numbers from a list of a teller.
func (img *Image) toldSites(ctx context.Context, numbers []uint64) ([]*Site, error) {
	out := make([]*Site, len(numbers))
	err := img.eachTold(ctx, numbers, func(_, i int, s *Site, _ *Ways) error {
		c := *s
		c.reused = false
		out[i] = &c
		return nil
	})
	return out, err
}

// toldAtOnce is how many sites a goroutine takes at once.
const toldAtOnce = 1024

// eachTold calls f for each of a teller's sites, as SiteList.Each does. Sites are taken in the order of their
// numbers: what is near is read together.
func (img *Image) eachTold(ctx context.Context, numbers []uint64, f func(worker, i int, s *Site, w *Ways) error) error {
	order := make([]int32, len(numbers))
	for i := range order {
		order[i] = int32(i)
	}
	order = radix.Sort(order, func(i *int32) uint64 { return numbers[*i] })
	var next atomic.Int64
	var failed atomic.Pointer[error]
	work := func(worker int) error {
		var some []uint64
		for failed.Load() == nil {
			from := int(next.Add(toldAtOnce)) - toldAtOnce
			if from >= len(order) {
				return nil
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			which := order[from:min(from+toldAtOnce, len(order))]
			some = some[:0]
			for _, i := range which {
				some = append(some, numbers[i])
			}
			err := img.told.sites(some, func(i int, s *Site, w *Ways) error {
				img.settle(s, w)
				return f(worker, int(which[i]), s, w)
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	var all sync.WaitGroup
	for worker := range min(runtime.GOMAXPROCS(0), (len(numbers)+toldAtOnce-1)/toldAtOnce) {
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

// settle sets the fields of a site that follow from the image.
func (img *Image) settle(s *Site, w *Ways) {
	s.Image, s.described, s.reused = img, true, true
	if sec := img.SectionAt(s.Addr); sec != nil {
		s.Section = sec.Name
	}
	own := *w
	s.told.ways = &own
}

// toldNames returns what names of a teller returns.
func (img *Image) toldNames(names func() ([]string, error)) (out []string, err error) {
	err = img.guard(func() (err error) {
		out, err = names()
		return err
	})
	return out, err
}

// toldList is List for an image of a teller.
func (img *Image) toldList(ctx context.Context, m Matcher, keep func(s *Site) (bool, error)) (*SiteList, error) {
	l := &SiteList{img: img}
	err := img.guard(func() (err error) {
		l.told, err = img.told.list(ctx, m)
		return err
	})
	if err != nil || keep == nil {
		return l, err
	}
	kept := make([]bool, len(l.told))
	err = img.eachTold(ctx, l.told, func(_, i int, s *Site, _ *Ways) (err error) {
		kept[i], err = keep(s)
		return err
	})
	if err != nil {
		return nil, err
	}
	n := 0
	for i := range l.told {
		if kept[i] {
			l.told[n] = l.told[i]
			n++
		}
	}
	l.told = l.told[:n]
	return l, nil
}

// each calls f for the sites of a teller that m selects, as Image.EachSite does.
func (img *Image) eachToldSite(ctx context.Context, m Matcher, f func(worker int, s *Site, w *Ways) error) error {
	l, err := img.toldList(ctx, m, nil)
	if err != nil {
		return err
	}
	return img.eachTold(ctx, l.told, func(worker, _ int, s *Site, w *Ways) error { return f(worker, s, w) })
}

// toldProblem returns what is wrong with a site's address in a program, or that it is not told.
func (s *Site) toldProblem() error {
	problem, known := s.told.problem, s.Addr == s.told.start
	if s.Addr != s.told.addr {
		problem = ""
	} else if s.told.ways != nil {
		known = true
	}
	for _, way := range []func(uint64) (string, bool){s.told.wayIn, s.told.wayOut} {
		if way != nil && s.Addr != s.told.addr && problem == "" {
			wrong, is := way(s.Addr)
			problem, known = wrong, known || is
		}
	}
	switch {
	case problem == "" && known:
		return nil
	case problem == "":
		return fmt.Errorf("%s: %#x: %w: %s does not tell", s.Image.Path(), s.Addr, ErrNotDecoded, s.Image.told.what())
	}
	for _, kind := range []error{ErrMidInstruction, ErrMisread, ErrNotDecoded} {
		if after, ok := strings.CutPrefix(problem, kind.Error()); ok {
			place := s.Image.Path()
			if kind != ErrMidInstruction { // which has it after
				place = fmt.Sprintf("%s: %#x", place, s.Addr)
			}
			return fmt.Errorf("%s: %w%s", place, kind, after)
		}
	}
	return fmt.Errorf("%s: %#x: %w: %s", s.Image.Path(), s.Addr, ErrNotDecoded, problem)
}

// Refused returns why no kernel takes a probe at the site's address, in the words of package attachable, or "". known is
// set if the site is of a pack that has the answer, which one has for its sites and for all ways into inlined bodies.
func (s *Site) Refused() (cause string, known bool) {
	switch {
	case s.told == nil || !s.told.looked:
		return "", false
	case s.Addr == s.told.addr:
		return s.told.refused, true
	}
	return s.told.wayIn(s.Addr)
}

// Told returns what answers for the image in the place of debug information: "a pack", "BTF", or "" if nothing does.
func (img *Image) Told() string {
	if img.told == nil {
		return ""
	}
	return img.told.what()
}

// toldAt is At for a site of a teller, which knows the first instruction and the site itself.
func (s *Site) toldAt(off uint64) (*Site, bool, error) {
	at := *s
	at.reused = false
	switch s.told.start + off {
	case s.Addr:
	case s.told.start:
		at.Addr, at.View, at.AfterPrologue = s.told.start, 0, false
		at.locateSymbol(s.Function)
	default:
		return nil, false, s.Image.untold("where else in a function its arguments are")
	}
	return &at, true, nil
}

// entryFrame returns $frame at a function's first instruction. Where the link register has the return address, what is
// between the stack pointer and the arguments on the stack may be part of the frame of either side.
func entryFrame(s *Site) *Variable {
	a := s.Image.Arch()
	if a.Link != 0 && a.StackArgs != 0 {
		return &Variable{Reason: notDescribed("where the frame is at an entry")}
	}
	return &Variable{Loc: loc.Location{Kind: loc.KindValue, Expr: abi.Register(a.SP, uint64(a.StackArgs))}}
}
