package body

import (
	"cmp"
	"slices"
	"sort"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/ktable"
	"github.com/bpfprologue/bpfprologue/internal/noreturn"
	"github.com/bpfprologue/bpfprologue/internal/probed"
)

// Code follows the function that a record is, or is inlined into.
func (u *Unit) Code(rec int32) (*Code, error) { return u.CodeIn(new(Code), rec) }

// CodeIn is Code in the memory of the code of another function, which is not used any more.
func (u *Unit) CodeIn(c *Code, rec int32) (*Code, error) { return u.codeIn(c, rec, true) }

// InstructionsIn is CodeIn without the bodies that are inlined and without statements: what jumps and instructions say of the function is all
// that it is asked.
func (u *Unit) InstructionsIn(c *Code, rec int32) (*Code, error) { return u.codeIn(c, rec, false) }

func (u *Unit) codeIn(c *Code, rec int32, bodies bool) (*Code, error) {
	*c = Code{
		u: u, texts: u.declarations(), Top: u.Outermost(rec),
		bodies: c.bodies[:0], numbers: c.numbers[:0], edges: c.edges[:0], spare: cmp.Or(c.graph, c.spare), marks: c.marks[:0],
		statementRows: c.statementRows[:0], ended: c.ended[:0], runs: c.runs[:0], owner: c.owner[:0],
	}
	if err := c.readBodies(bodies); err != nil {
		return nil, err
	}
	arch := insn.For(u.Image.Instructions())
	switch {
	case arch == nil:
		c.Why = "instructions of " + u.Image.Arch().Name + " are not decoded"
	case u.Image.IsRelocatable():
		c.Why = "jumps in a file that is not linked are not resolved"
	case len(c.ranges) == 0 || !c.bodies[0].live:
		c.Why = "where the function's code is is not known"
	}
	if c.Why != "" {
		return c, nil
	}
	f, err := c.function(arch)
	if err != nil || f == nil {
		c.Why = "the file does not have the function's code"
		return c, err
	}
	known, err := u.Image.patched()
	if err != nil {
		return nil, err
	}
	t, err := known.tables()
	if err != nil {
		return nil, err
	}
	if tables := t.Unread(); len(tables) > 0 {
		c.Why = "the form of the kernel's table at " + tables[0] + " is not known"
		return c, nil
	}
	c.arch, c.mayPatch = arch, known.kernel
	if c.spare == nil {
		c.spare = new(flow.Graph)
	}
	c.graph = c.spare.Follow(f)
	if c.graph.Why != "" {
		c.Why = c.graph.Why
	}
	if c.Why != "" || !bodies {
		return c, nil
	}
	c.solver = c.graph.Solver()
	c.paint()
	if err := c.readRows(); err != nil {
		return nil, err
	}
	c.readRuns()
	if c.Marked() {
		c.solver.SetJoins(c.joins())
	}
	return c, nil
}

// readBodies reads where the function is, and with inlined all instances that are inlined into it.
func (c *Code) readBodies(inlined bool) error {
	u := c.u
	at := c.numbers // index in bodies, by record from Top on; -1 for others
	for i := c.Top; int(i) < len(u.Recs) && (inlined || i == c.Top); i++ {
		r := &u.Recs[i]
		parent := int32(-1)
		if i > c.Top {
			if r.Parent < c.Top {
				break
			}
			parent = at[r.Parent-c.Top]
			if at = append(at, -1); parent < 0 || r.Flags&index.Inlined == 0 {
				continue // inside of a function of its own, or one
			}
		} else {
			at = append(at, -1)
		}
		e, err := u.Entry(u.Off + uint64(r.Off))
		if err != nil {
			return err
		}
		var pcs dw.PCs
		b := body{rec: i, parent: parent}
		err = e.Attrs(func(a dw.Attr, v dw.Value) {
			pcs.Take(a, v)
			b.call.take(a, v)
		})
		if err != nil {
			return err
		}
		b.view, b.viewed, b.marked = pcs.EntryView, pcs.Viewed, pcs.Entry.Form != 0
		if b.ranges, err = u.Extent(&pcs); err != nil {
			return err
		}
		if b.start, b.live, err = u.Start(&pcs); err != nil {
			return err
		}
		if inlined {
			if b.text, err = c.texts.of(u, i, e); err != nil {
				return err
			}
		}
		at[i-c.Top] = int32(len(c.bodies))
		c.bodies = append(c.bodies, b)
	}
	c.numbers = at
	for i := range c.bodies {
		c.bodies[i].first, c.bodies[i].end = int32(i), int32(i+1)
	}
	for i := len(c.bodies) - 1; i > 0; i-- {
		p := &c.bodies[c.bodies[i].parent]
		p.end = max(p.end, c.bodies[i].end)
	}
	c.ranges = apart(c.bodies[0].ranges)
	if inlined {
		c.findMerged()
	}
	return nil
}

// apart returns ranges by address, each address in one of them.
func apart(ranges []dw.Range) []dw.Range {
	ranges = slices.Clone(ranges)
	slices.SortFunc(ranges, func(a, b dw.Range) int { return cmp.Compare(a.Lo, b.Lo) })
	out := ranges[:0]
	end := uint64(0)
	for _, r := range ranges {
		if r.Lo = max(r.Lo, end); r.Hi > r.Lo {
			out = append(out, r)
			end = r.Hi
		}
	}
	return out
}

// function returns what package flow needs, or nil if the file does not have the code.
func (c *Code) function(arch *insn.Arch) (*flow.Function, error) {
	f := functionIn(c.u.Image.File, arch, c.bodies[0].start, c.ranges)
	if f == nil {
		return nil, nil
	}
	return f, c.rules(f)
}

// functionIn returns what the file says of a function with code in some ranges, or nil if it does not have the code, as one with debug information
// only.
func functionIn(file *image.File, arch *insn.Arch, entry uint64, ranges []dw.Range) *flow.Function {
	rules := probed.For(file.Instructions())
	f := &flow.Function{
		Arch:  arch,
		Entry: entry,
		Read: func(addr uint64, n int) []byte {
			d, err := file.Bytes(addr, uint64(n))
			if err != nil {
				return nil
			}
			return d
		},
		Refuses: func(code []byte) bool {
			does, _ := rules.Uprobe(code)
			return does >= probed.UprobeRefuses
		},
	}
	for _, r := range ranges {
		code := f.Read(r.Lo, int(r.Hi-r.Lo))
		if code == nil {
			return nil
		}
		f.Parts = append(f.Parts, insn.Code{Addr: r.Lo, Bytes: code})
	}
	return f
}

// rules sets what package flow cannot tell from the instructions.
func (c *Code) rules(f *flow.Function) error {
	calls, err := c.calls()
	if err != nil {
		return err
	}
	known, err := c.u.Image.patched()
	if err != nil {
		return err
	}
	t, err := known.tables()
	if err != nil {
		return err
	}
	f.Indirect = t.Indirect
	var patched []ktable.Edge // by address
	for _, r := range c.ranges {
		edges, err := t.Edges(r.Lo, r.Hi)
		if err != nil {
			return err
		}
		patched = append(patched, edges...)
	}
	pads, err := c.landingPads()
	if err != nil {
		return err
	}
	f.Further = func(addr uint64, in *insn.Insn) (to []uint64) {
		i := sort.Search(len(patched), func(i int) bool { return patched[i].From >= addr })
		for ; i < len(patched) && patched[i].From < addr+uint64(in.Size); i++ {
			to = append(to, patched[i].To)
		}
		for _, p := range pads {
			if in.Call && addr >= p.Lo && addr < p.Hi {
				to = append(to, p.To)
			}
		}
		return to
	}
	f.Ends = func(addr uint64, in *insn.Insn) (ends, out bool) {
		switch check, ok := known.stops[addr+uint64(in.Target)]; {
		case in.Trap:
			return t.Stops(addr), false
		case in.Target != 0 && ok:
			return true, !check
		}
		if in.Target != 0 && c.u.IsGo() {
			sym := c.u.Image.SymbolAt(addr+uint64(in.Target), "")
			return sym != nil && noreturn.Go(sym.Name), true
		}
		return calls[addr+uint64(in.Size)].ends, true
	}
	f.Leaves = func(addr uint64, in *insn.Insn) bool {
		return calls[addr].leaves || calls[addr+uint64(in.Size)].leaves
	}
	f.Torn = c.torn
	return nil
}

// call is what the debug information says about the code after a call.
type call struct {
	ends   bool // the callee does not return
	leaves bool // it is a jump, at the end of the function
}

// calls returns what is known of calls, by the addresses after them. LLVM gives a tail call's
// own address (DW_AT_call_pc, DWARF 5 section 3.4).
func (c *Code) calls() (map[uint64]call, error) {
	out := make(map[uint64]call)
	e, err := c.u.Entry(c.u.Off + uint64(c.u.Recs[c.Top].Off))
	if err != nil {
		return nil, err
	}
	return out, c.readCalls(e, 0, out)
}

// maxScopes bounds how deeply scopes nest.
const maxScopes = 256

func (c *Code) readCalls(e dw.Entry, depth int, out map[uint64]call) error {
	if depth > maxScopes {
		return nil
	}
	return e.Children(func(k dw.Entry) (bool, error) {
		switch k.Tag() {
		case dw.TagLexicalBlock, dw.TagInlinedSubroutine:
			return true, c.readCalls(k, depth+1, out)
		case dw.TagCallSite, dw.TagGNUCallSite:
		default:
			return true, nil
		}
		var at, origin dw.Value
		tail := false
		err := k.Attrs(func(a dw.Attr, v dw.Value) {
			switch a {
			case dw.AttrLowpc, dw.AttrCallReturnPC, dw.AttrCallPC:
				at = v
			case dw.AttrAbstractOrigin, dw.AttrCallOrigin:
				origin = v
			case dw.AttrCallTailCall, dw.AttrGNUTailCall:
				tail = v.U != 0
			}
		})
		if err != nil || at.Form == 0 {
			return true, err
		}
		addr, err := c.u.Address(at)
		if err != nil {
			return true, err
		}
		x := out[addr]
		x.leaves = x.leaves || tail
		if origin.Form != 0 && !tail {
			if x.ends, err = c.u.Image.noReturns.described(c.u.Unit.Unit, origin); err != nil {
				return true, err
			}
		}
		if x != (call{}) {
			out[addr] = x
		}
		return true, nil
	})
}

// landingPads returns where exceptions in the function's calls lead.
func (c *Code) landingPads() (out []dw.Pad, err error) {
	for _, r := range c.ranges {
		pads, err := c.u.Image.Data.LandingPads(r.Lo, r.Hi)
		if err != nil {
			return nil, err
		}
		out = append(out, pads...)
	}
	return out, nil
}

// torn reports whether the canonical frame address is at a link-time address what it is where the
// function is called, and, with had, not so everywhere in the function.
func (c *Code) torn(addr uint64, had bool) bool {
	d := c.u.Data
	first, ok, err := d.CFA(c.bodies[0].start)
	if err != nil || !ok || first.Expr != nil {
		return false
	}
	here, ok, err := d.CFA(addr)
	if err != nil || !ok || here.Expr != nil || here.Reg != first.Reg || here.Off != first.Off {
		return false
	}
	if !had {
		return true
	}
	steady, err := d.SteadyFrame(c.bodies[0].start)
	return err == nil && !steady
}

// paint finds the innermost body of each instruction.
func (c *Code) paint() {
	insns := c.graph.Insns
	c.owner = slices.Grow(c.owner[:0], len(insns))[:len(insns)]
	clear(c.owner)
	for i := range c.bodies {
		for _, r := range c.bodies[i].ranges {
			lo := sort.Search(len(insns), func(k int) bool { return insns[k].Addr >= r.Lo })
			for ; lo < len(insns) && insns[lo].Addr < r.Hi; lo++ {
				c.owner[lo] = int32(i)
			}
		}
	}
}

func (p *callPlace) take(a dw.Attr, v dw.Value) {
	switch a {
	case dw.AttrCallFile:
		p.file = uint32(v.U)
	case dw.AttrCallLine:
		p.line = uint32(v.U)
	case dw.AttrCallColumn:
		p.column = uint32(v.U)
	}
}

// findMerged finds the bodies that LLVM merged of several.
func (c *Code) findMerged() {
	columns := false // the compiler writes them
	for i := range c.bodies {
		columns = columns || c.bodies[i].call.column != 0
	}
	if !columns || c.u.GNU() {
		return
	}
	for i := range c.bodies {
		if b := &c.bodies[i]; b.parent >= 0 {
			b.merged = b.call.column == 0 || c.bodies[b.parent].merged
			c.anyMerged = c.anyMerged || b.merged
		}
	}
}
