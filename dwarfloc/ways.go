package dwarfloc

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/inside/hooks"
	"github.com/bpfprologue/bpfprologue/internal/radix"
	"github.com/bpfprologue/bpfprologue/internal/runs"
)

// waysOfSites is inside.Ways.
func (img *Image) waysOfSites(ctx context.Context, sites []*Site) ([]runs.Ways, error) {
	return img.by.ways(ctx, sites)
}

func (img dwarfImage) ways(ctx context.Context, sites []*Site) ([]runs.Ways, error) {
	out := make([]runs.Ways, len(sites))
	var ask []*Site
	var at []int
	err := img.guard(func() error {
		for k, s := range sites {
			if s.Kind != SiteInline {
				continue
			}
			if !s.u.keptWays(s.spot.Rec, &out[k]) {
				ask, at = append(ask, s), append(at, k)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = img.eachCode(ctx, ask, func(c *runs.Code, which []int) error {
		for _, k := range which {
			w, err := ask[k].u.findWays(c, ask[k].spot.Rec)
			if err != nil {
				return err
			}
			out[at[k]] = w
		}
		return nil
	})
	return out, err
}

// findWays finds the ways of a record's body in the code of its function.
func (u *unit) findWays(c *runs.Code, rec int32) (runs.Ways, error) {
	w, err := c.Ways(rec)
	if err == nil {
		w.Folded, err = u.folded(rec)
	}
	if err == nil {
		u.keepWays(rec, &w)
	}
	return w, err
}

// waysOf sets w, whose memory it uses, to the ways of a record's body. last is the code that was followed last, whose memory is used again.
func (u *unit) waysOf(rec int32, last **runs.Code, w *runs.Ways) error {
	if u.keptWays(rec, w) {
		return nil
	}
	if *last == nil {
		*last = new(runs.Code)
	}
	if top := u.Body.Outermost(rec); (*last).Code == nil || (*last).Unit != &u.Body || (*last).Top != top {
		if err := (*last).Follow(&u.Body, top); err != nil {
			return err
		}
	}
	found, err := u.findWays(*last, rec)
	*w = found
	return err
}

// eachCode calls f for the code of each function that has sites of kind SiteInline, with the indices
// of these, from several goroutines. The code's memory is used again once f returns.
func (img *Image) eachCode(ctx context.Context, sites []*Site, f func(c *runs.Code, which []int) error) error {
	type function struct {
		u   *unit
		top int32
	}
	byFunction := make(map[function][]int)
	var functions []function
	err := img.guard(func() error { // which records are around another one may be read from the kept index
		for i, s := range sites {
			if s.Kind != SiteInline {
				continue
			}
			f := function{s.u, s.u.Body.Outermost(s.spot.Rec)}
			if byFunction[f] == nil {
				functions = append(functions, f)
			}
			byFunction[f] = append(byFunction[f], i)
		}
		return nil
	})
	if err != nil {
		return err
	}
	// Neighbours share the rows of their unit, which the last of them frees.
	type asked struct {
		tops []int32 // records of its functions
		want sync.Once
		left atomic.Int32
	}
	of := make(map[*unit]*asked)
	for _, f := range functions {
		if of[f.u] == nil {
			of[f.u] = new(asked)
		}
		of[f.u].tops = append(of[f.u].tops, f.top)
		of[f.u].left.Add(1)
	}
	functions = radix.Sort(functions, func(f *function) uint64 { return uint64(f.top) })
	functions = radix.Sort(functions, func(f *function) uint64 { return f.u.Off })
	codes := sync.Pool{New: func() any { return new(runs.Code) }}
	return img.r.Index.Parallel(len(functions), func(_ *index.Scanner, i int) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		x := functions[i]
		if err := x.u.Load(); err != nil {
			return err
		}
		of := of[x.u]
		var err error
		of.want.Do(func() { err = x.u.wantRows(of.tops) })
		if err != nil {
			return err
		}
		c := codes.Get().(*runs.Code)
		defer codes.Put(c)
		if err := c.Follow(&x.u.Body, x.top); err != nil {
			return err
		}
		if err := f(c, byFunction[x]); err != nil {
			return err
		}
		if of.left.Add(-1) == 0 {
			x.u.ForgetRows()
		}
		return nil
	})
}

// wantRows says that rows of some functions are asked for, if they are few of the unit's.
func (u *unit) wantRows(tops []int32) error {
	all := 0
	for i := range u.Recs {
		if r := &u.Recs[i]; r.Flags&(index.HasPC|index.Inlined) == index.HasPC {
			all++
		}
	}
	if len(tops) > all/fewFunctions {
		return nil
	}
	var wanted []dw.Range
	for _, top := range tops {
		ranges, err := u.Body.OutermostRanges(top)
		if err != nil {
			return err
		}
		wanted = append(wanted, ranges...)
	}
	return u.WantRows(wanted)
}

// fewFunctions is the ratio of a unit's functions to those that are few: of more of them, the rows of all are kept, which are asked for in any order then.
const fewFunctions = 3

// bodyID is inside.Body.
func (s *Site) bodyID() hooks.Body {
	if _, dwarf := s.by.(debugInfo); dwarf && !s.reused {
		return s.identity // the records may be closed by now
	}
	return s.by.body(s)
}

func (debugInfo) body(s *Site) hooks.Body {
	u := s.u
	id := func(rec int32) uint64 {
		if root := u.Recs[rec].Root; root >= 0 {
			rec = root
		}
		return u.Off + uint64(u.Recs[rec].Off)
	}
	b := hooks.Body{In: u.Off + uint64(u.Recs[u.Body.Outermost(s.spot.Rec)].Off), Of: id(s.spot.Rec)}
	for p := u.Recs[s.spot.Rec].Parent; s.Inlined() && p >= 0; p = u.Recs[p].Parent {
		if id(p) == b.Of {
			b.Depth++
		}
		if u.Recs[p].Flags&index.Inlined == 0 {
			break
		}
	}
	return b
}

// once is inside.Once.
func (s *Site) once() (at *Site, within bool, err error) {
	switch {
	case s.Kind != SiteEntry:
		return s, false, nil
	case s.reused:
		return s.by.begun(s) // EachSite has called guard
	}
	return s.guardedOnce()
}

func (s *Site) guardedOnce() (at *Site, within bool, err error) {
	err = s.Image.guard(func() (err error) {
		at, within, err = s.by.begun(s)
		return err
	})
	return at, within, err
}

// again returns a copy of a site that may be hit again in one run, or in one of another function.
func (s *Site) again(shared bool) *Site {
	at := *s
	at.Way.Again, at.Way.Shared = true, shared
	return &at
}

// begun is Site.once of an entry. The check of the stack, with which Go's functions begin, changes only registers that are nobody's (R12, R13 on
// amd64, R16, R17 on arm64: the register tables of Go's ABI, cmd/compile/abi-internal.md), so the arguments are as at the entry.
func (debugInfo) begun(s *Site) (at *Site, within bool, err error) {
	u, rec := &s.u.Body, s.spot.Rec
	if part := body.IsPart(s.Symbol); part || !u.IsGo() {
		w, err := s.beginsAs(part)
		if err != nil || len(w.In) == 0 {
			return s, false, err
		}
		return s.again(w.Folded), w.Within, nil
	}
	c, err := u.Code(rec)
	if err != nil {
		return s, false, err
	}
	after, ok := c.AfterCheck(s.Addr)
	if !ok {
		return s, false, nil
	}
	return s.elsewhere(after, s.View, entries.Place{Addr: s.Addr, View: s.View}), false, nil
}

// beginsAs returns the way into a function that is also reached while it runs, if there is one: at its entry. It is Within if no run begins there. Both are
// kept as the ways into bodies are.
func (s *Site) beginsAs(part bool) (w runs.Ways, err error) {
	u, rec := &s.u.Body, s.spot.Rec
	w.Folded, err = s.u.folded(rec)
	if err != nil || !part && !w.Folded && !body.MayRepeat(s.Image.file, s.Addr) || s.u.keptWays(rec, &w) {
		return w, err
	}
	again := part || w.Folded
	switch {
	case part:
		w.Within, err = runs.Continues(u, rec, s.Addr, s.Symbol)
	case !w.Folded:
		again, err = u.BeginsAgain(rec, s.Addr)
	}
	if err != nil {
		return w, err
	}
	if again {
		w.In = []runs.Way{{Addr: s.Addr, Probe: s.Addr, Again: true}}
	}
	s.u.keepWays(rec, &w)
	return w, nil
}

// waysIn is inside.WaysIn.
func (s *Site) waysIn(w *runs.Ways, given bool) []*Site {
	out := s.list(len(w.In))
	for i := range w.In {
		at := s
		if !given || i+1 < len(w.In) {
			at = s.copied()
		}
		out[i] = at.through(w, &w.In[i], i, len(w.In))
		if w.Unknown != "" {
			out[i].Way.Number, out[i].Way.Of, out[i].Way.Unknown = 0, 0, w.Unknown
		}
	}
	return out
}

// waysOut is inside.WaysOut.
func (s *Site) waysOut(w *runs.Ways) []*Site {
	out := s.list(len(w.Out))
	for i := range w.Out {
		at := s.copied().through(w, &w.Out[i], i, len(w.Out))
		at.Kind, at.inside, at.body, at.entered = SiteExit, true, s.Addr, 0 // not of an end
		out[i] = at
	}
	return out
}

// through makes a site that of one of its body's ways, and returns it.
func (s *Site) through(all *runs.Ways, w *runs.Way, n, of int) *Site {
	addr, view, state := w.Addr, w.View, entries.Place{}
	if w.Probe != w.Addr || w.View == runs.LastView {
		addr, view, state = w.Probe, 0, entries.Place{Addr: w.Addr, View: w.View}
	}
	s.toProbe(addr, view, state)
	s.Way, s.repeats = Way{Number: n + 1, Of: of, Again: w.Again || all.Folded, Shared: all.Folded}, w.Again
	s.before, s.behind, s.entered, s.enteredAt = w.Before, w.Behind, entries.First, w.Addr
	if w.Midway {
		s.entered = entries.Midway
	}
	return s
}

// elsewhere returns a copy of a site for a probe at another link-time address and view. state is
// where its variables are resolved, if not there.
func (s *Site) elsewhere(addr, view uint64, state entries.Place) *Site {
	at := s.copied()
	at.toProbe(addr, view, state)
	return at
}

// toProbe makes it a site for a probe elsewhere, as elsewhere has them.
func (s *Site) toProbe(addr, view uint64, state entries.Place) {
	_, same := s.by.(debugInfo)
	again := s.described && (!same || addr != s.Addr)
	if s.Addr, s.View, s.state = addr, view, state; again {
		s.describeAddress()
	}
}

// beforeWay is inside.Before.
func (s *Site) beforeWay(vars []*Variable, memory bool) ([]*Site, error) {
	reads, known := readsOf(vars, memory)
	if !s.Way.Again || len(s.before) == 0 || !known {
		return nil, nil
	}
	out := make([]*Site, len(s.before))
	for i, addr := range s.before {
		code, err := s.by.code(s, addr)
		if err != nil {
			return nil, err
		}
		if !body.Keeps(s.Image.file.Instructions(), code, reads) {
			return nil, nil
		}
		out[i] = s.elsewhere(addr, 0, s.here())
		out[i].Way.Again, out[i].repeats, out[i].before = s.Way.Shared, false, nil
	}
	return out, nil
}

func (debugInfo) code(s *Site, addr uint64) ([]byte, error) { return s.Image.r.Code.Instruction(addr) }

// eachWithWays is inside.EachWays.
func (img *Image) eachWithWays(ctx context.Context, f func(worker int, s *Site, w *runs.Ways) error) error {
	return img.by.eachWays(ctx, f)
}

func (img dwarfImage) eachWays(ctx context.Context, f func(worker int, s *Site, w *runs.Ways) error) error {
	if err := img.prepare(true); err != nil {
		return err
	}
	sel, units, err := img.r.Index.Candidates(ctx, nil)
	if err != nil {
		return err
	}
	img.r.AskAll()
	return img.eachSiteIn(ctx, units, sel, false, func(own *worker, n int, s *Site) error {
		if s.Kind != SiteInline {
			return f(n, s, nil)
		}
		if err := s.u.waysOf(s.spot.Rec, &own.code, &own.ways); err != nil {
			return err
		}
		return f(n, s, &own.ways)
	})
}
