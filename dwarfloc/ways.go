package dwarfloc

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// Way is a place where runs of an inlined body begin or end.
type Way struct {
	Addr uint64 // link-time address, where variables are resolved
	View uint64 // location view there; 1<<32 - 1 is after all views
	// Probe is the link-time address for a probe: Addr, or that of a jump or of padding that
	// leads there and to nothing else, where Addr is reached in other ways too.
	Probe uint64
	// Again is set if a probe also fires without a run beginning, or ending: for another turn
	// of a loop that the body begins with, or for code that never was in the body.
	Again bool
	// Before are the link-time addresses of the instructions from which alone a way in with
	// Again is entered, the last ones before it: see Site.Before.
	Before []uint64
}

// Ways are the ways into and out of the body of an inlined instance.
type Ways struct {
	// In are such that each run passes one of them, by address. If they are not known, it has
	// one: where the debug information says that the body is entered.
	In  []Way
	Out []Way
	// Unknown is why the ways are not known, or "".
	Unknown string
	// Within is set if the instance is a part of another one, in which its runs begin: it has no
	// ways in of its own. GCC splits a function into its beginning and the rest, and may inline the rest
	// again, into the body of the former (-fpartial-inlining). LLVM merges equal instructions of
	// several instances into another one, which then has the ways in, or the ways out, of all.
	Within bool
	// NoReturn is how many calls in the body do not return, and traps.
	NoReturn int
}

// Ways returns the ways into and out of the bodies of inlined instances: for each site of kind
// SiteInline its own, and for others none.
//
// The code of the functions that contain them is followed, where its instructions are decoded. An error is about
// a file that cannot be read, or damaged debug information, or the cause of ctx.
func (img *Image) Ways(ctx context.Context, sites []*Site) ([]Ways, error) {
	return img.by.ways(ctx, sites)
}

func (img dwarfImage) ways(ctx context.Context, sites []*Site) ([]Ways, error) {
	out := make([]Ways, len(sites))
	err := img.eachCode(ctx, sites, func(c *body.Code, which []int) (err error) {
		for _, k := range which {
			if out[k], err = waysOf(c, sites[k].rec); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// eachCode calls f for the code of each function that has sites of kind SiteInline, with the indices
// of these, from several goroutines.
func (img *Image) eachCode(ctx context.Context, sites []*Site, f func(c *body.Code, which []int) error) error {
	type function struct {
		u   *unit
		top int32
	}
	byFunction := make(map[function][]int)
	var functions []function
	for i, s := range sites {
		if s.Kind != SiteInline {
			continue
		}
		f := function{s.u, s.u.code.Outermost(s.rec)}
		if byFunction[f] == nil {
			functions = append(functions, f)
		}
		byFunction[f] = append(byFunction[f], i)
	}
	// Neighbours share the rows of their unit, which the last of them frees.
	left := make(map[*unit]*atomic.Int32)
	for _, f := range functions {
		if left[f.u] == nil {
			left[f.u] = new(atomic.Int32)
		}
		left[f.u].Add(1)
	}
	slices.SortFunc(functions, func(a, b function) int { return cmp.Or(cmp.Compare(a.u.Off, b.u.Off), cmp.Compare(a.top, b.top)) })
	return img.index.Parallel(len(functions), func(_ *index.Scanner, i int) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		x := functions[i]
		if err := x.u.Load(); err != nil {
			return err
		}
		c, err := x.u.code.Code(x.top)
		if err != nil {
			return err
		}
		if err := f(c, byFunction[x]); err != nil {
			return err
		}
		if left[x.u].Add(-1) == 0 {
			x.u.ForgetRows()
		}
		return nil
	})
}

// Body identifies the body whose runs begin or end at a site. Sites with equal values are of one
// function in the code of one: runs at them with the same frame (probe.KindFrame) do not
// overlap.
type Body struct {
	// In and Of are offsets in .debug_info: of the function that contains the code, and of what
	// describes the one whose body it is.
	In, Of uint64
	// Depth is how many bodies of the same function enclose it.
	Depth int
}

// Body returns the body that a site is in.
func (s *Site) Body() Body {
	return s.by.body(s)
}

func (debugInfo) body(s *Site) Body {
	u := s.u
	id := func(rec int32) uint64 {
		if root := u.Recs[rec].Root; root >= 0 {
			rec = root
		}
		return u.Off + uint64(u.Recs[rec].Off)
	}
	b := Body{In: u.Off + uint64(u.Recs[u.code.Outermost(s.rec)].Off), Of: id(s.rec)}
	for p := u.Recs[s.rec].Parent; s.Inlined() && p >= 0; p = u.Recs[p].Parent {
		if id(p) == b.Of {
			b.Depth++
		}
		if u.Recs[p].Flags&index.Inlined == 0 {
			break
		}
	}
	return b
}

// Once returns the site of an entry at which a probe sees each run once, if there is one, and
// otherwise the site, with Again.
//
// A function of Go begins again when it has got a larger stack; the site is after the check of
// the stack then. GCC splits a function into its beginning, which it inlines, and the rest, a
// clone that the beginning calls (-fpartial-inlining): a run that a site in the beginning sees
// may reach the entry of the clone.
func (s *Site) Once() (*Site, error) {
	switch {
	case s.Kind != SiteEntry:
		return s, nil
	case strings.HasPrefix(s.Symbol, s.Function+".part."):
		at := *s
		at.Again = true
		return &at, nil
	}
	var out *Site
	err := s.Image.guard(func() (err error) {
		out, err = s.by.begun(s)
		return err
	})
	return out, err
}

// begun returns the site after a check of the stack at the entry of a function of Go.
// The check changes only registers that are nobody's (R12, R13 on amd64, R16, R17 on arm64: the
// register tables of Go's ABI, cmd/compile/abi-internal.md), so the arguments are as at the entry.
func (debugInfo) begun(s *Site) (*Site, error) {
	if !s.u.code.IsGo() {
		return s, nil
	}
	c, err := s.u.code.Code(s.rec)
	if err != nil {
		return s, err
	}
	after, ok := c.AfterCheck(s.Addr)
	if !ok {
		return s, nil
	}
	return s.elsewhere(after, s.View, place{s.Addr, s.View}), nil
}

// WaysIn returns the sites of an instance's ways in: the site itself, or copies of it.
func (s *Site) WaysIn(w *Ways) []*Site {
	out := make([]*Site, len(w.In))
	for i := range w.In {
		out[i] = s.through(&w.In[i], i, len(w.In))
		if w.Unknown != "" {
			out[i].Way, out[i].Ways, out[i].WaysUnknown = 0, 0, w.Unknown
		}
	}
	return out
}

// WaysOut returns the sites of an instance's ways out, of kind SiteExit. Variables are as they
// are right before the instruction there.
func (s *Site) WaysOut(w *Ways) []*Site {
	out := make([]*Site, len(w.Out))
	for i := range w.Out {
		at := s.through(&w.Out[i], i, len(w.Out))
		at.Kind, at.inside, at.body = SiteExit, true, s.Addr
		out[i] = at
	}
	return out
}

// through returns a copy of a site at a way.
func (s *Site) through(w *Way, n, of int) *Site {
	at := s.elsewhere(w.Addr, w.View, place{})
	if w.Probe != w.Addr || w.View == body.LastView {
		at = s.elsewhere(w.Probe, 0, place{w.Addr, w.View})
	}
	at.Way, at.Ways, at.Again, at.before = n+1, of, w.Again, w.Before
	return at
}

// elsewhere returns a copy of a site for a probe at another link-time address and view. state is
// where its variables are resolved, if not there.
func (s *Site) elsewhere(addr, view uint64, state place) *Site {
	at := *s
	at.Addr, at.View, at.state = addr, view, state
	if at.described {
		at.describeAddress()
	}
	return &at
}

// Before returns sites for a way in with Again that see each run once: at the instructions from
// which the way is entered. It returns none if one of these instructions changes what the
// locations of vars depend on, since it has not run yet at its own address. memory says that what
// vars point to is fetched too.
func (s *Site) Before(vars []*Variable, memory bool) ([]*Site, error) {
	reads, known := readsOf(vars, memory)
	if !s.Again || len(s.before) == 0 || !known {
		return nil, nil
	}
	out := make([]*Site, len(s.before))
	for i, addr := range s.before {
		code, err := s.by.code(s, addr)
		if err != nil {
			return nil, err
		}
		if !body.Keeps(s.Image.File.Instructions(), code, reads) {
			return nil, nil
		}
		out[i] = s.elsewhere(addr, 0, s.here())
		out[i].Again, out[i].before = false, nil
	}
	return out, nil
}

func (debugInfo) code(s *Site, addr uint64) ([]byte, error) { return s.Image.code.Instruction(addr) }

// EachWays calls f for each inlined site of the image with its ways, as EachSite does: from
// several goroutines, with sites that are reused.
func (img *Image) EachWays(ctx context.Context, f func(worker int, s *Site, w *Ways) error) error {
	return img.by.eachWays(ctx, f)
}

func (img dwarfImage) eachWays(ctx context.Context, f func(worker int, s *Site, w *Ways) error) error {
	if err := img.prepare(true); err != nil {
		return err
	}
	sel, units, err := img.index.Candidates(ctx, nil)
	if err != nil {
		return err
	}
	return img.index.EachUnit(ctx, units, true, func(w *index.Scanner, x *index.Unit) error {
		u := img.of(x.Unit)
		var c *body.Code
		var s Site
		s.funOf = -1
		loaded := false
		for j := range u.Recs {
			r := &u.Recs[j]
			if r.Flags&index.HasPC == 0 || r.Flags&index.Inlined == 0 || !sel.Match(u.NameRefOf(r)) {
				continue
			}
			if err := w.Load(u.Unit); err != nil {
				return err
			}
			loaded = true
			ok, err := u.site(int32(j), &s)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			if top := u.code.Outermost(int32(j)); c == nil || c.Top != top {
				if c, err = u.code.Code(top); err != nil {
					return err
				}
			}
			ways, err := waysOf(c, int32(j))
			if err != nil {
				return err
			}
			if err := f(w.Worker, &s, &ways); err != nil {
				return err
			}
		}
		if loaded {
			u.forget()
		}
		return nil
	})
}

// waysOf returns the ways of a record's body.
func waysOf(c *body.Code, rec int32) (Ways, error) {
	w, err := c.Ways(rec)
	if err != nil {
		return Ways{}, err
	}
	return publicWays(&w), nil
}

// publicWays returns ways as the package has them.
func publicWays(w *body.Ways) Ways {
	out := Ways{Unknown: w.Unknown, Within: w.Within, NoReturn: w.NoReturn}
	for _, x := range w.In {
		out.In = append(out.In, Way(x))
	}
	for _, x := range w.Out {
		out.Out = append(out.Out, Way(x))
	}
	return out
}
