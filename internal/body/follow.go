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
	"github.com/bpfprologue/bpfprologue/internal/radix"
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
		Unit: u, texts: u.declarations(), Top: u.Outermost(rec),
		Bodies: c.Bodies[:0], numbers: c.numbers[:0], edges: c.edges[:0], first: c.first, extents: c.extents[:0], copied: c.copied[:0], twinsIn: c.twinsIn, spare: cmp.Or(c.Graph, c.spare),
		Statements: c.Statements[:0], Ended: c.Ended[:0], Owner: c.Owner[:0],
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
	case len(c.Ranges) == 0 || !c.Bodies[0].Live:
		c.Why = "where the function's code is is not known"
	}
	if c.Why != "" {
		return c, nil
	}
	f, err := c.function(arch)
	if err != nil {
		return nil, err
	}
	if f == nil {
		c.Why = "the file does not have the function's code"
		return c, nil
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
	c.Arch, c.mayPatch = arch, known.kernel
	if c.spare == nil {
		c.spare = new(flow.Graph)
	}
	c.Graph = c.spare.Follow(f)
	if c.Graph.Why != "" {
		c.Why = c.Graph.Why
	}
	if c.Why != "" || !bodies {
		return c, nil
	}
	c.paint()
	if err := c.readRows(); err != nil {
		return nil, err
	}
	return c, nil
}

// readBodies reads where the function is, and with inlined all instances that are inlined into it.
func (c *Code) readBodies(inlined bool) error {
	u := c.Unit
	at := c.numbers // index in Bodies, by record from Top on; -1 for others
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
		b := Body{Rec: i, Parent: parent}
		err = e.Attrs(func(a dw.Attr, v dw.Value) {
			pcs.Take(a, v)
			b.Call.Take(a, v)
		})
		if err != nil {
			return err
		}
		b.View, b.Viewed, b.Marked = pcs.EntryView, pcs.Viewed, pcs.Entry.Form != 0
		from := len(c.extents)
		if c.extents, err = u.AppendExtent(c.extents, &pcs); err != nil {
			return err
		}
		b.Ranges = c.extents[from:len(c.extents):len(c.extents)]
		if b.Start, b.Live, err = u.Start(&pcs); err != nil {
			return err
		}
		if inlined {
			if b.Text, err = c.texts.of(u, i, e); err != nil {
				return err
			}
		}
		at[i-c.Top] = int32(len(c.Bodies))
		c.Bodies = append(c.Bodies, b)
	}
	c.numbers = at
	for i := range c.Bodies {
		c.Bodies[i].First, c.Bodies[i].End = int32(i), int32(i+1)
	}
	for i := len(c.Bodies) - 1; i > 0; i-- {
		p := &c.Bodies[c.Bodies[i].Parent]
		p.End = max(p.End, c.Bodies[i].End)
	}
	c.Ranges = apart(c.Bodies[0].Ranges)
	if inlined {
		c.findMerged()
	}
	return nil
}

// apart returns ranges by address, each address in one of them.
func apart(ranges []dw.Range) []dw.Range {
	ranges = radix.Sort(slices.Clone(ranges), func(r *dw.Range) uint64 { return r.Lo })
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
	f := functionIn(c.Unit.Image.File, arch, c.Bodies[0].Start, c.Ranges)
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
	known, err := c.Unit.Image.patched()
	if err != nil {
		return err
	}
	t, err := known.tables()
	if err != nil {
		return err
	}
	f.Indirect = t.Indirect
	var patched []ktable.Edge // by address
	for _, r := range c.Ranges {
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
		if in.Target != 0 && c.Unit.IsGo() {
			sym := c.Unit.Image.SymbolAt(addr+uint64(in.Target), "")
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

// torn reports whether the canonical frame address is at a link-time address what it is where the
// function is called, and, with had, not so everywhere in the function.
func (c *Code) torn(addr uint64, had bool) bool {
	d := c.Unit.Data
	first, ok, err := d.CFA(c.Bodies[0].Start)
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
	steady, err := d.SteadyFrame(c.Bodies[0].Start)
	return err == nil && !steady
}

// paint finds the innermost body of each instruction.
func (c *Code) paint() {
	insns := c.Graph.Insns
	c.Owner = slices.Grow(c.Owner[:0], len(insns))[:len(insns)]
	clear(c.Owner)
	for i := range c.Bodies {
		for _, r := range c.Bodies[i].Ranges {
			lo := sort.Search(len(insns), func(k int) bool { return insns[k].Addr >= r.Lo })
			for ; lo < len(insns) && insns[lo].Addr < r.Hi; lo++ {
				c.Owner[lo] = int32(i)
			}
		}
	}
}

// Take stores the value of an attribute that says where a call is.
func (p *CallPlace) Take(a dw.Attr, v dw.Value) {
	switch a {
	case dw.AttrCallFile:
		p.File = uint32(v.U)
	case dw.AttrCallLine:
		p.Line = uint32(v.U)
	case dw.AttrCallColumn:
		p.Column = uint32(v.U)
	}
}

// findMerged finds the bodies that LLVM merged of several.
func (c *Code) findMerged() {
	columns := false // the compiler writes them
	for i := range c.Bodies {
		columns = columns || c.Bodies[i].Call.Column != 0
	}
	if !columns || c.Unit.GNU() {
		return
	}
	for i := range c.Bodies {
		if b := &c.Bodies[i]; b.Parent >= 0 {
			b.Merged = b.Call.Column == 0 || c.Bodies[b.Parent].Merged
			c.AnyMerged = c.AnyMerged || b.Merged
		}
	}
}

// Alone follows a function of which nothing is known but where its code is, in parts, the first of which it begins with, and the symbols of
// what it calls. A call that does not return is otherwise known only at the end of a part, and a jump to a part that is not among them leaves
// the function.
func Alone(f *image.File, parts []dw.Range) *Code {
	arch := insn.For(f.Instructions())
	if arch == nil {
		return &Code{Why: "instructions of " + f.Arch().Name + " are not decoded"}
	}
	x := functionIn(f, arch, parts[0].Lo, apart(parts))
	if x == nil {
		return &Code{Why: "the file does not have the function's code"}
	}
	x.Ends = func(addr uint64, in *insn.Insn) (ends, out bool) {
		if in.Target == 0 {
			return false, true
		}
		sym := f.SymbolAt(addr+uint64(in.Target), "")
		if sym == nil || sym.Addr != addr+uint64(in.Target) {
			return false, true
		}
		check, is := noreturn.Functions[sym.Name]
		return is || noreturn.Go(sym.Name), !check
	}
	c := &Code{Arch: arch, Ranges: apart(parts), Graph: new(flow.Graph).Follow(x)}
	c.Why = c.Graph.Why
	return c
}

// Begins reports whether an instruction that the function runs begins at an address. known is false if the function cannot be followed.
func (c *Code) Begins(addr uint64) (is, known bool) {
	if c.Graph == nil || c.Why != "" {
		return false, false
	}
	_, is = c.Graph.At(addr)
	return is, true
}
