package dwarfloc

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// A body that was inlined has no call at which every run of it begins: compilers copy its
// first instructions into several paths, unroll a loop around it, and enter it in its middle
// when they know how its first test ends. Each such place is a way in. The debug information
// names one of them, or, where its code was moved, none (DW_AT_entry_pc, DWARF 5 section 2.18).
//
// Which instructions are in a body is not enough to tell: compilers move instructions of a body
// ahead of it, and instructions of the caller into it. In code of GCC the statements of the line
// table tell it (is_stmt): GCC moves instructions, but never the markers of statements
// (-gstatement-frontiers). So a run begins at the first statement of the body after one of
// another, and ends at the first statement of another. In other code every instruction has the
// position that it was compiled for, and a run begins where execution comes from instructions of
// the caller to a position at which a run has begun elsewhere, in another basic block or at a
// copy of the same instruction.

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
	out := make([]Ways, len(sites))
	if img.told != nil {
		for i, s := range sites {
			if s.Kind == SiteInline {
				out[i] = *s.told.ways
			}
		}
		return out, nil
	}
	err := img.eachCode(ctx, sites, func(c *code, which []int) (err error) {
		for _, k := range which {
			if out[k], err = c.ways(sites[k].rec); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// eachCode calls f for the code of each function that has sites of kind SiteInline, with the indices
// of these, from several goroutines.
func (img *Image) eachCode(ctx context.Context, sites []*Site, f func(c *code, which []int) error) error {
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
		f := function{s.u, s.u.outermost(s.rec)}
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
		c, err := x.u.codeOf(x.top)
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
	if s.told != nil {
		return s.told.body
	}
	u := s.u
	id := func(rec int32) uint64 {
		if root := u.Recs[rec].Root; root >= 0 {
			rec = root
		}
		return u.Off + uint64(u.Recs[rec].Off)
	}
	b := Body{In: u.Off + uint64(u.Recs[u.outermost(s.rec)].Off), Of: id(s.rec)}
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
	case s.told != nil:
		return s, nil
	case s.u.isGo():
		var out *Site
		err := s.u.img.guard(func() (err error) {
			out, err = s.afterStackCheck()
			return err
		})
		return out, err
	}
	return s, nil
}

// afterStackCheck returns the site after a check of the stack at the entry of a function of Go.
// The check changes only registers that are nobody's (R12, R13 on amd64, R16, R17 on arm64: the
// register tables of Go's ABI, cmd/compile/abi-internal.md), so the arguments are as at the entry.
func (s *Site) afterStackCheck() (*Site, error) {
	c, err := s.u.codeOf(s.rec)
	if err != nil || c.graph == nil || c.why != "" {
		return s, err
	}
	begin, end, ok := c.graph.AfterCheck()
	insns := c.graph.Insns
	if !ok || insns[begin].Addr != s.Addr {
		return s, nil
	}
	return s.elsewhere(insns[end].Addr, s.View, place{s.Addr, s.View}), nil
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
	if w.Probe != w.Addr || w.View == flow.LastView {
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
	arch := insn.For(s.Image.Instructions())
	if !s.Again || len(s.before) == 0 || arch == nil {
		return nil, nil
	}
	reads := readsOf(vars, memory)
	out := make([]*Site, len(s.before))
	for i, addr := range s.before {
		code, err := s.codeAt(addr)
		if err != nil {
			return nil, err
		}
		in, ok := arch.Next(code)
		w, known := arch.Writes(code)
		switch {
		case ok && (in.Branches || in.Nop):
		case !known, w.Touches(reads):
			return nil, nil
		}
		out[i] = s.elsewhere(addr, 0, s.here())
		out[i].Again, out[i].before = false, nil
	}
	return out, nil
}

// codeAt is Image.code.
func (s *Site) codeAt(addr uint64) ([]byte, error) {
	if s.told != nil {
		return s.told.at.code(addr), nil
	}
	return s.Image.code(addr)
}

// code returns the bytes of the instruction at an address, and some after it.
func (img *Image) code(addr uint64) ([]byte, error) {
	const longest = 16
	sec := img.SectionAt(addr)
	if sec == nil {
		return nil, nil
	}
	return img.Bytes(addr, min(longest, sec.Addr+sec.Size-addr))
}

// EachWays calls f for each inlined site of the image with its ways, as EachSite does: from
// several goroutines, with sites that are reused.
func (img *Image) EachWays(ctx context.Context, f func(worker int, s *Site, w *Ways) error) error {
	if img.told != nil {
		return img.eachToldSite(ctx, nil, func(worker int, s *Site, w *Ways) error {
			if s.Kind != SiteInline {
				return nil
			}
			return f(worker, s, w)
		})
	}
	if err := img.prepare(true); err != nil {
		return err
	}
	sel, units, err := img.index.Candidates(ctx, nil)
	if err != nil {
		return err
	}
	return img.index.EachUnit(ctx, units, true, func(w *index.Scanner, x *index.Unit) error {
		u := img.of(x.Unit)
		var c *code
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
			if top := u.outermost(int32(j)); c == nil || c.top != top {
				if c, err = u.codeOf(top); err != nil {
					return err
				}
			}
			ways, err := c.ways(int32(j))
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

// ways returns the ways of a record's body.
func (c *code) ways(rec int32) (Ways, error) {
	i, ok := c.body(rec)
	if !ok {
		return Ways{Unknown: "its function's code is not known"}, nil
	}
	b := &c.bodies[i]
	if within, err := c.within(int32(i)); err != nil || within {
		return Ways{Within: within}, err
	}
	entry := Ways{In: []Way{{Addr: b.start, View: b.view, Probe: b.start}}, Unknown: c.why}
	if c.why != "" {
		return entry, nil
	}
	var runs flow.Runs
	var kin map[int32]kinship
	if c.marked() {
		twins := c.twinsOf(int32(i))
		own := func(n int32) bool { return b.has(c.owner[n]) }
		if runs = c.solver.Solve(c.statements(int32(i), twins), own); len(runs.In) == 0 && twins != nil {
			runs = c.solver.Solve(c.statements(int32(i), nil), own)
		}
		for k := range runs.In {
			w := &runs.In[k]
			w.Again = w.Again || c.taken(int32(i), w)
		}
	} else {
		kin = c.kinOf(int32(i))
		runs = c.solve(int32(i), kin)
	}
	if len(runs.In) == 0 && kin == nil {
		entry.Unknown = "no instruction of the body is reached"
		return entry, nil
	}
	out := Ways{NoReturn: runs.Ends, Within: len(runs.In) == 0}
	merged := c.mergedAway(int32(i))
	for _, w := range runs.In {
		w.Again = w.Again || merged && c.graph.Insns[w.Insn].Addr == b.start
		out.In = append(out.In, c.place(w))
	}
	for _, w := range runs.Out {
		w.Again = w.Again || merged && c.graph.Insns[w.Insn].Addr == b.start
		out.Out = append(out.Out, c.place(w))
	}
	return out, nil
}

// mergedAway reports whether nothing is left of a body, where it begins, but a record at the
// address where another body of its function begins, and two paths meet. GCC merges equal ends of
// paths and keeps the statements of both before the first instruction: it is not known which of
// the two runs there.
func (c *code) mergedAway(i int32) bool {
	b, t := &c.bodies[i], c.twinsOf(i)
	n, ok := c.graph.At(b.start)
	return ok && b.live && t != nil && !b.has(c.owner[n]) && c.graph.Meets(int32(n)) && slices.ContainsFunc(t.bodies, func(k int32) bool {
		x := &c.bodies[k]
		return k != i && x.live && x.start == b.start && x.has(c.owner[n])
	})
}

// within reports whether a body is a part of the body around it: one of the same function, called
// from where that is declared.
func (c *code) within(i int32) (bool, error) {
	b := &c.bodies[i]
	// A macro can declare several functions at one line that call each other, as the kernel's
	// SYSCALL_DEFINE does.
	if b.parent < 0 || b.text == (text{}) || c.functionOf(b.parent) != c.functionOf(i) {
		return false, nil
	}
	e, err := c.u.Entry(c.u.Off + uint64(c.u.Recs[b.rec].Off))
	if err != nil {
		return false, err
	}
	var line, column uint64
	err = e.Attrs(func(a dw.Attr, v dw.Value) {
		switch a {
		case dw.AttrCallLine:
			line = v.U
		case dw.AttrCallColumn:
			column = v.U
		}
	})
	return uint32(line) == b.text.line && (column == 0 || b.text.column == 0 || uint32(column) == b.text.column), err
}

func (c *code) place(w flow.Way) Way {
	insns := c.graph.Insns
	out := Way{Addr: insns[w.Insn].Addr, View: uint64(w.View), Probe: insns[w.Probe].Addr, Again: w.Again}
	for _, n := range w.Before {
		out.Before = append(out.Before, insns[n].Addr)
	}
	return out
}

// marked reports whether the line table has GCC's markers of statements: then rows of
// instructions begin no statement.
func (c *code) marked() bool {
	return c.u.compiler().statementsMarked && slices.ContainsFunc(c.rows, func(r dw.Row) bool { return !r.Stmt })
}

// past returns the first instruction from one on that is no padding.
func (c *code) past(n int32) int32 {
	insns := c.graph.Insns
	for n+1 < int32(len(insns)) && insns[n].Kind == flow.Nop && insns[n].Addr+uint64(insns[n].Size) == insns[n+1].Addr {
		n++
	}
	return n
}
