package dwarfloc

import (
	"cmp"
	"context"
	"slices"
	"sort"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/loc"
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
	// Unknown is why the ways are not known: "".
	Unknown string
	// NoReturn is how many calls in the body do not return, and traps.
	NoReturn int
}

// Ways returns the ways into and out of the bodies of inlined instances: for each site of kind
// SiteInline its own, and for others none.
//
// The code of the functions that contain them is followed, on amd64 and arm64. An error is about
// a file that cannot be read, or damaged debug information, or the cause of ctx.
func (img *Image) Ways(ctx context.Context, sites []*Site) ([]Ways, error) {
	out := make([]Ways, len(sites))
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
	// A worker takes neighbours, which share the rows of their unit.
	slices.SortFunc(functions, func(a, b function) int { return cmp.Or(cmp.Compare(a.u.Off, b.u.Off), cmp.Compare(a.top, b.top)) })
	err := img.index.Parallel(len(functions), func(_ *index.Scanner, i int) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		f := functions[i]
		if err := f.u.Load(); err != nil {
			return err
		}
		c, err := f.u.codeOf(f.top)
		if err != nil {
			return err
		}
		for _, k := range byFunction[f] {
			out[k] = c.ways(sites[k].rec)
		}
		return nil
	})
	return out, err
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
	at := *s
	at.Addr, at.View, at.state = w.Probe, w.View, place{}
	if w.Probe != w.Addr || w.View == flow.LastView {
		at.View, at.state = 0, place{w.Addr, w.View}
	}
	at.Way, at.Ways, at.Again, at.before = n+1, of, w.Again, w.Before
	if at.described {
		at.describeAddress()
	}
	return &at
}

// Before returns sites for a way in with Again that see each run once: at the instructions from
// which the way is entered. It returns none if one of these instructions changes what the
// locations of vars depend on, since it has not run yet at its own address.
func (s *Site) Before(vars []*Variable) ([]*Site, error) {
	arch := insn.For(s.u.img.Arch().Name)
	if !s.Again || len(s.before) == 0 || arch == nil {
		return nil, nil
	}
	var reads insn.Writes
	for _, v := range vars {
		v.Loc.Exprs(func(e *loc.Expr) {
			e.Walk(func(e *loc.Expr) {
				switch e.Op {
				case loc.OpReg:
					reads.Registers |= 1 << (e.K & 63)
				case loc.OpDeref:
					reads.Memory = true
				}
			})
		})
		reads.Memory = reads.Memory || v.Loc.Kind == loc.KindMemory || v.Loc.Kind == loc.KindPieces
	}
	out := make([]*Site, len(s.before))
	for i, addr := range s.before {
		code, err := s.u.img.code(addr)
		if err != nil {
			return nil, err
		}
		in, ok := arch.Next(code)
		w, known := arch.Writes(code)
		switch {
		case ok && (in.Branches || in.Nop):
		case !known, w.Registers&reads.Registers != 0, w.Memory && reads.Memory:
			return nil, nil
		}
		at := *s
		at.Addr, at.View, at.state, at.Again, at.before = addr, 0, s.here(), false, nil
		if at.described {
			at.describeAddress()
		}
		out[i] = &at
	}
	return out, nil
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
	if err := img.prepare(true); err != nil {
		return err
	}
	_, units, err := img.index.Candidates(ctx, nil)
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
			if r.Flags&index.HasPC == 0 || r.Flags&index.Inlined == 0 {
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
			ways := c.ways(int32(j))
			if err := f(w.Worker, &s, &ways); err != nil {
				return err
			}
		}
		if loaded {
			u.forgetRows()
		}
		return nil
	})
}

// forgetRows frees the unit's rows, if any have been read.
func (u *unit) forgetRows() {
	if _, err := u.Rows(); err == nil {
		u.ForgetRows()
	}
}

// ways returns the ways of a record's body.
func (c *code) ways(rec int32) Ways {
	i, ok := slices.BinarySearchFunc(c.bodies, rec, func(b body, r int32) int { return cmp.Compare(b.rec, r) })
	if !ok {
		return Ways{Unknown: "its function's code is not known"}
	}
	b := &c.bodies[i]
	entry := Ways{In: []Way{{Addr: b.start, View: b.view, Probe: b.start}}, Unknown: c.why}
	if c.why != "" {
		return entry
	}
	var runs flow.Runs
	if c.marked() {
		runs = c.solver.Solve(c.statements(int32(i)))
	} else {
		runs = c.solve(int32(i))
	}
	if len(runs.In) == 0 {
		entry.Unknown = "no instruction of the body is reached"
		return entry
	}
	out := Ways{NoReturn: runs.Ends}
	for _, w := range runs.In {
		out.In = append(out.In, c.place(w))
	}
	for _, w := range runs.Out {
		out.Out = append(out.Out, c.place(w))
	}
	return out
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

// statements returns the marks of a body by the statements of the line table. They are valid
// until the next call.
func (c *code) statements(i int32) []flow.Mark {
	b := &c.bodies[i]
	out := c.marks[:0]
	entered := !b.live
	enter := func() {
		entered = true
		if n, ok := c.graph.At(b.start); ok && b.live {
			out = append(out, flow.Mark{Insn: c.past(int32(n)), Kind: flow.MarkInside, View: uint32(b.view)}) // see withoutHoisted
		}
	}
	last, block := flow.MarkInside, int32(-1) // of the mark before
	for k := range c.statementRows {
		r := &c.statementRows[k]
		if !entered && (r.addr > b.start || r.addr == b.start && r.view >= b.view && !c.later(i, k)) {
			enter()
			last = flow.MarkInside
		}
		kind, at := flow.MarkExit, r.insn
		if r.own >= i && r.own < b.end {
			kind, at = flow.MarkEnter, r.past
		}
		if at < 0 || kind == last && r.block == block {
			continue // it changes nothing
		}
		view := r.view
		if at != r.insn {
			view = 0
		}
		out = append(out, flow.Mark{Insn: at, Kind: kind, View: uint32(view)})
		last, block = kind, r.block
	}
	if !entered {
		enter()
	}
	if !slices.IsSortedFunc(out, compareMarks) {
		slices.SortStableFunc(out, compareMarks)
	}
	c.marks = out
	return c.withoutHoisted(out)
}

func compareMarks(a, b flow.Mark) int { return cmp.Compare(a.Insn, b.Insn) }

// later reports whether a statement is one before a body's first one at the same address:
// without views, the debug information does not say where between them the body begins.
func (c *code) later(i int32, k int) bool {
	b, r := &c.bodies[i], &c.statementRows[k]
	return r.addr == b.start && (r.own < i || r.own >= b.end)
}

// withoutHoisted drops the mark of the place where the debug information says that the body is
// entered, if a statement of another follows before any of the body's: then instructions of the
// body were moved there, and the body begins at its statements.
func (c *code) withoutHoisted(marks []flow.Mark) []flow.Mark {
	others := slices.ContainsFunc(marks, func(m flow.Mark) bool { return m.Kind == flow.MarkEnter })
	at := slices.IndexFunc(marks, func(m flow.Mark) bool { return m.Kind == flow.MarkInside })
	if at < 0 {
		return marks
	}
	if others && c.hoisted(marks, at) {
		return slices.Delete(marks, at, at+1)
	}
	marks[at].Kind = flow.MarkEnter
	return marks
}

// hoisted reports whether each path from a mark comes to one of another's statements before any
// of the body's. What is on none of these paths, such as a return, is not known to be another's.
func (c *code) hoisted(marks []flow.Mark, at int) bool {
	g := c.graph
	seen := make(map[int32]bool)
	work := []int32{g.Block(marks[at].Insn)}
	for first := true; len(work) > 0; first = false {
		n := work[len(work)-1]
		work = work[:len(work)-1]
		b := &g.Blocks[n]
		k := at + 1
		if !first {
			k = sort.Search(len(marks), func(i int) bool { return marks[i].Insn >= b.First })
		}
		if k < len(marks) && marks[k].Insn < b.Last {
			if marks[k].Kind != flow.MarkExit {
				return false
			}
			continue
		}
		if len(b.Succs) == 0 {
			return false
		}
		for _, to := range b.Succs {
			if !seen[to] {
				seen[to] = true
				work = append(work, to)
			}
		}
	}
	return true
}

// past returns the first instruction from one on that is no padding.
func (c *code) past(n int32) int32 {
	insns := c.graph.Insns
	for n+1 < int32(len(insns)) && insns[n].Kind == flow.Nop && insns[n].Addr+uint64(insns[n].Size) == insns[n+1].Addr {
		n++
	}
	return n
}
