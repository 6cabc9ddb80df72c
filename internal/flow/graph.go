// Package flow follows the machine code of one function: its basic blocks, hot and cold parts
// together, and, for the body of a function that was inlined into it, every way in and every
// way out.
//
//	g := new(flow.Graph).Follow(&flow.Function{Arch: arch, Parts: parts, Entry: entry})
//	r := g.Solver().Solve(marks, nil)
//
// It knows instructions and marks at instructions, not debug information: who calls it
// decides which instructions begin a run of a body or end one.
package flow

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/jumptable"
	"github.com/bpfprologue/bpfprologue/internal/radix"
)

// Function is what Follow needs to know about a function.
type Function struct {
	Arch  *insn.Arch
	Parts []insn.Code // its code, in the order of addresses, apart
	Entry uint64      // where it is called
	// Further returns where execution may also go on after an instruction: for static branches,
	// alternatives, faults, exceptions. It may be nil.
	Further func(addr uint64, in *insn.Insn) []uint64
	// Ends reports whether nothing follows a call or a trap, and whether that ends what the
	// function does: a check that the compiler added does not. It may be nil.
	Ends func(addr uint64, in *insn.Insn) (ends, out bool)
	// Leaves reports whether an indirect jump calls another function at the end of this one.
	Leaves func(addr uint64, in *insn.Insn) bool
	// Torn reports whether nothing of the function's stack frame is left at an address: an
	// indirect jump there calls another function. With had, the function has a frame elsewhere:
	// otherwise the jump may also be one through a table, or to a label. It may be nil.
	Torn func(addr uint64, had bool) bool
	// Indirect reports whether a jump to an address is one to a register. It may be nil.
	Indirect func(addr uint64) bool
	// Refuses reports whether an instruction is no place for a uprobe. It may be nil.
	Refuses func(code []byte) bool
	// Read reads n bytes of the image, for jump tables, or returns nil.
	Read func(addr uint64, n int) []byte
}

// Graph is a function's code that is reached from its entry.
type Graph struct {
	Insns  []Insn  // by address
	Blocks []Block // by address; entry has the number of the first one that runs
	Lost   uint64  // address from which it is not known how execution goes on, or 0
	Why    string  // what is at Lost

	entry int32
	preds [][]int32
	parts []part
	of    []int32  // the block of each instruction
	work  follower // its memory
	// refuses is Function.Refuses.
	refuses func(code []byte) bool
}

// Insn is one instruction.
type Insn struct {
	Addr uint64
	Size uint8
	Kind Kind
}

// Kind says what matters of an instruction.
type Kind uint8

// The kinds.
const (
	Plain  Kind = iota
	Nop         // does nothing
	Jump        // only jumps, always
	Branch      // may jump
	Leave       // leaves the function: a return, or a jump to another one
	Quit        // may leave the function: a return under a condition
	Halt        // nothing follows
	Last        // a call that does not return
)

// Block is a basic block: the instructions First up to Last, without it.
type Block struct {
	First, Last int32
	Succs       []int32
}

// edge says that execution may go on at one address after the instruction at another.
type edge struct{ from, to uint64 }

// follower is the work of Follow.
type follower struct {
	f     *Function
	parts []part
	g     *Graph
	todo  []uint64
	jumps []uint64  // indirect jumps that are not followed yet
	heads []uint64  // addresses that begin blocks
	out   []edge    // of all jumps and branches, and further edges
	led   []edge    // of indirect jumps through tables
	open  uint64    // an indirect jump through a table that ends where the next entry is none, or 0
	kinds []uint8   // memory of parts
	in    insn.Insn // of run: what Further is asked about would be allocated for each run
}

// part is one part of the code, with the kind of instruction that begins at each byte.
type part struct {
	insn.Code
	kinds []uint8 // 0: not reached, or inside an instruction; else 1 + Kind
	sizes []uint8
	// search is for its indirect jumps, and nil where more instructions are known since.
	search *jumptable.Search
}

// Follow makes the graph that of a function's code, followed from its entry, in the memory of what it was before.
func (g *Graph) Follow(f *Function) *Graph {
	*g = Graph{refuses: f.Refuses, Insns: g.Insns[:0], Blocks: g.Blocks[:0], preds: g.preds[:0], of: g.of[:0], work: g.work}
	w := &g.work
	*w = follower{f: f, g: g, parts: w.parts[:0], todo: w.todo[:0], jumps: w.jumps[:0], heads: w.heads[:0], out: w.out[:0], led: w.led[:0], kinds: w.kinds[:0]}
	size := 0
	for _, p := range f.Parts {
		size += len(p.Bytes)
	}
	w.kinds = append(w.kinds, make([]uint8, 2*size)...)
	free := w.kinds
	for _, p := range f.Parts {
		n := len(p.Bytes)
		w.parts = append(w.parts, part{Code: p, kinds: free[:n:n], sizes: free[n : 2*n : 2*n]})
		free = free[2*n:]
	}
	w.reach(f.Entry)
	for len(w.todo) > 0 {
		at := w.todo[len(w.todo)-1]
		w.todo = w.todo[:len(w.todo)-1]
		w.run(at)
		if len(w.todo) == 0 {
			w.tables()
			for i := range w.parts {
				w.parts[i].search = nil
			}
		}
	}
	if w.open != 0 && !w.reached() {
		w.lose(w.open, unknownJump)
	}
	g.parts = w.parts
	w.blocks()
	return g
}

// part returns the part that holds an address, or nil.
func (w *follower) part(addr uint64) *part {
	i := sort.Search(len(w.parts), func(i int) bool { return w.parts[i].Addr > addr })
	if i == 0 || addr-w.parts[i-1].Addr >= uint64(len(w.parts[i-1].Bytes)) {
		return nil
	}
	return &w.parts[i-1]
}

// reach notes that a block begins at an address. It reports whether that is the function's.
func (w *follower) reach(addr uint64) bool {
	p := w.part(addr)
	if p == nil {
		return false
	}
	w.heads = append(w.heads, addr)
	if p.kinds[addr-p.Addr] == 0 {
		w.todo = append(w.todo, addr)
	}
	return true
}

// lose notes that the code cannot be followed.
func (w *follower) lose(addr uint64, why string, args ...any) {
	if w.g.Why == "" {
		w.g.Lost, w.g.Why = addr, fmt.Sprintf(why, args...)
	}
}

// run follows the code from an address to the next jump, or to what was followed before.
func (w *follower) run(at uint64) {
	var call *uint8 // kind of the last instruction, not counting padding, if it is a call
	before := at    // the instruction before
	for {
		p := w.part(at)
		if p == nil {
			// Compilers emit nothing after a call that does not return.
			if call != nil {
				*call = 1 + uint8(Last)
			} else {
				w.lose(at, "the code goes on after the function's end")
			}
			return
		}
		off := at - p.Addr
		if p.kinds[off] != 0 {
			w.heads = append(w.heads, at) // entered from two sides
			return
		}
		var ok bool
		in := &w.in
		if *in, ok = w.f.Arch.Next(p.Bytes[off:]); !ok || in.Size <= 0 || in.Size > len(p.Bytes)-int(off) {
			w.lose(at, "the instruction does not decode (% x)", p.Bytes[off:min(off+8, uint64(len(p.Bytes)))])
			p.kinds[off], p.sizes[off] = 1+uint8(Halt), 1
			return
		}
		if in.Target == 0 && (in.Call || in.Lost) && w.f.Arch.Pair != nil && before < at && before >= p.Addr {
			if to, ok := w.f.Arch.Pair(p.Bytes[before-p.Addr:off], p.Bytes[off:]); ok {
				in.Target = to - int64(at-before)
				in.Branches, in.Lost = !in.Call, false
			}
		}
		kind := w.kind(at, in)
		p.kinds[off], p.sizes[off] = 1+uint8(kind), uint8(in.Size)
		if w.f.Further != nil {
			for _, to := range w.f.Further(at, in) {
				if w.reach(to) {
					w.out = append(w.out, edge{at, to})
					switch kind {
					case Nop:
						kind = Branch // a jump may be put there
					case Halt:
						kind = Jump // a trap that leads there
					}
				}
			}
			p.kinds[off] = 1 + uint8(kind)
		}
		switch {
		case in.Call && kind == Plain:
			call = &p.kinds[off]
		case kind != Nop:
			call = nil
		}
		next := at + uint64(in.Size)
		switch kind {
		case Jump, Leave, Halt, Last:
			return
		case Branch, Quit:
			w.out = append(w.out, edge{at, next})
			w.heads = append(w.heads, next)
		}
		before, at = at, next
	}
}

// kind says what an instruction is, and follows where it jumps.
func (w *follower) kind(at uint64, in *insn.Insn) Kind {
	if (in.Call || in.Trap) && w.f.Ends != nil {
		if ends, out := w.f.Ends(at, in); ends && out {
			return Last
		} else if ends {
			return Halt
		}
	}
	switch {
	case in.Branches:
		to := at + uint64(in.Target)
		if w.reach(to) {
			w.out = append(w.out, edge{at, to})
			if !in.Onward {
				return Jump
			}
			return Branch
		}
		if !in.Onward && w.f.Indirect != nil && w.f.Indirect(to) {
			return w.indirect(at, in)
		}
		if !in.Onward {
			return Leave // to another function
		}
		return Plain // a conditional jump to another function: what is left of it goes on
	case in.Lost:
		return w.indirect(at, in)
	case in.Leaves:
		return Quit
	case in.Nop:
		return Nop
	case !in.Onward:
		return Leave
	}
	return Plain
}

// indirect says what an indirect jump is, and notes it if it may be one through a table.
func (w *follower) indirect(at uint64, in *insn.Insn) Kind {
	if w.f.Leaves != nil && w.f.Leaves(at, in) {
		return leaving(in.Onward)
	}
	if in.Onward {
		w.jumps = append(w.jumps, at)
		return Branch
	}
	// There are no tables of thunks (arch/x86/Makefile has -fno-jump-tables with retpolines).
	if in.Branches && w.f.Torn != nil && w.f.Torn(at, false) {
		return Leave
	}
	w.jumps = append(w.jumps, at)
	return Jump
}

// leaving returns the kind of what leaves the function, always or perhaps.
func leaving(onward bool) Kind {
	if onward {
		return Quit
	}
	return Leave
}

const unknownJump = "it is not known where the indirect jump leads"

// tables follows the indirect jumps through tables, once everything else has been followed:
// the code before a jump tells how large its table is.
func (w *follower) tables() {
	jumps := w.jumps
	w.jumps = nil
	found := false
	lead := func(at uint64, targets []uint64, ok bool) bool {
		for _, to := range targets {
			ok = ok && w.part(to) != nil
		}
		if !ok {
			return false
		}
		found = true
		p := w.part(at)
		for _, to := range targets {
			w.reach(to)
			w.led = append(w.led, edge{at, to})
			if w.part(to) == p {
				w.searchIn(p).Lead(jumptable.Edge{From: uint32(at - p.Addr), To: uint32(to - p.Addr)})
			}
		}
		return true
	}
	var left []uint64
	for _, at := range jumps {
		p := w.part(at)
		targets, ok := w.searchIn(p).Targets(uint32(at - p.Addr))
		if !lead(at, targets, ok) {
			left = append(left, at)
		}
	}
	if !found {
		left = slices.DeleteFunc(left, func(at uint64) bool {
			p := w.part(at)
			targets, ok := w.searchIn(p).Open(uint32(at-p.Addr), func(addr uint64) bool { return w.part(addr) != nil })
			opened := lead(at, targets, ok)
			if opened {
				w.open = at
			}
			return opened
		})
	}
	for _, at := range left {
		if found {
			w.jumps = append(w.jumps, at) // what was found may lead there
			continue
		}
		p := w.part(at)
		switch {
		case w.f.Torn != nil && (w.f.Torn(at, true) || w.f.Torn(at, false) && w.elsewhere(at)):
			k := &p.kinds[at-p.Addr]
			*k = 1 + uint8(leaving(Kind(*k-1) == Branch))
		default:
			w.lose(at, unknownJump)
		}
	}
	if found && len(w.todo) == 0 {
		w.tables()
	}
}

// searchIn returns the search for tables in a part, of which all is known that was followed.
func (w *follower) searchIn(p *part) *jumptable.Search {
	if p.search != nil {
		return p.search
	}
	code := &jumptable.Code{Code: p.Code}
	for off, k := range p.kinds {
		if k == 0 {
			continue
		}
		code.Starts = append(code.Starts, uint32(off))
		if kind := Kind(k - 1); kind == Halt || kind == Last {
			code.Ends = append(code.Ends, uint32(off))
		}
	}
	for _, e := range w.led {
		if w.part(e.from) == p && w.part(e.to) == p {
			code.Led = append(code.Led, jumptable.Edge{From: uint32(e.from - p.Addr), To: uint32(e.to - p.Addr)})
		}
	}
	p.search = jumptable.New(w.f.Arch, code, w.f.Read)
	return p.search
}

// elsewhere reports whether an indirect jump is one to another function, as a call of a virtual function is at the end of one without a frame: it reads no table, and
// there is nothing in the function that is not reached in other ways, as the cases of a switch and the labels of a computed goto are not.
func (w *follower) elsewhere(at uint64) bool {
	if !w.reached() {
		return false
	}
	p := w.part(at)
	return w.searchIn(p).Pointer(uint32(at - p.Addr))
}

// reached reports whether all code of the function was reached but what does nothing, and traps.
func (w *follower) reached() bool {
	for i := range w.parts {
		p := &w.parts[i]
		for off := 0; off < len(p.Bytes); {
			if p.kinds[off] != 0 {
				off += int(p.sizes[off])
				continue
			}
			in, ok := w.f.Arch.Next(p.Bytes[off:])
			if !ok || !in.Nop && !in.Trap {
				return false
			}
			off += in.Size
		}
	}
	return true
}

// blocks makes the graph of what was followed.
func (w *follower) blocks() {
	g := w.g
	n := 0
	for i := range w.parts {
		p := &w.parts[i]
		n += len(p.kinds) - bytes.Count(p.kinds, []byte{0})
	}
	g.Insns = slices.Grow(g.Insns[:0], n)
	for i := range w.parts {
		p := &w.parts[i]
		for off, k := range p.kinds {
			if k != 0 {
				g.Insns = append(g.Insns, Insn{p.Addr + uint64(off), p.sizes[off], Kind(k - 1)})
			}
		}
	}
	slices.Sort(w.heads)
	w.heads = slices.Compact(w.heads)
	g.Blocks = slices.Grow(g.Blocks[:0], len(w.heads))
	w.out = append(w.out, w.led...)
	w.out = radix.Sort(w.out, func(e *edge) uint64 { return e.to })
	w.out = slices.Compact(radix.Sort(w.out, func(e *edge) uint64 { return e.from }))
	head := func(addr uint64) bool { _, is := slices.BinarySearch(w.heads, addr); return is }
	g.of = slices.Grow(g.of[:0], len(g.Insns))[:len(g.Insns)]
	for i := 0; i < len(g.Insns); {
		first := i
		for i++; i < len(g.Insns) && g.Insns[i-1].follows(&g.Insns[i]) && !head(g.Insns[i].Addr) && !w.splits(g.Insns[i-1].Addr); i++ {
		}
		for n := first; n < i; n++ {
			g.of[n] = int32(len(g.Blocks))
		}
		b := Block{First: int32(first), Last: int32(i)}
		if n := len(g.Blocks); n < cap(g.Blocks) {
			b.Succs = g.Blocks[:n+1][n].Succs[:0]
		}
		g.Blocks = append(g.Blocks, b)
	}
	if more := len(g.Blocks) - cap(g.preds); more > 0 {
		g.preds = append(g.preds[:cap(g.preds)], make([][]int32, more)...)
	}
	g.preds = g.preds[:len(g.Blocks)]
	for i := range g.preds {
		g.preds[i] = g.preds[i][:0]
	}
	for n := range g.Blocks {
		b := &g.Blocks[n]
		last := &g.Insns[b.Last-1]
		i, _ := slices.BinarySearchFunc(w.out, last.Addr, func(e edge, a uint64) int { return cmp.Compare(e.from, a) })
		for ; i < len(w.out) && w.out[i].from == last.Addr; i++ {
			if to, ok := g.begins(w.out[i].to); ok {
				b.Succs = append(b.Succs, to)
			}
		}
		if last.Kind == Plain || last.Kind == Nop {
			if to, ok := g.begins(last.Addr + uint64(last.Size)); ok && !slices.Contains(b.Succs, to) {
				b.Succs = append(b.Succs, to)
			}
		}
		for _, to := range b.Succs {
			g.preds[to] = append(g.preds[to], int32(n))
		}
	}
	g.entry = -1
	if n, ok := g.begins(w.f.Entry); ok {
		g.entry = n
	}
}

// begins returns the block that begins at an address.
func (g *Graph) begins(addr uint64) (block int32, ok bool) {
	n, ok := g.At(addr)
	if !ok || g.Blocks[g.of[n]].First != int32(n) {
		return 0, false
	}
	return g.of[n], true
}

// follows reports whether execution goes on at the next instruction and nowhere else.
func (in *Insn) follows(next *Insn) bool {
	return (in.Kind == Plain || in.Kind == Nop) && in.Addr+uint64(in.Size) == next.Addr
}

// splits reports whether the instruction at an address has further edges.
func (w *follower) splits(addr uint64) bool {
	_, is := slices.BinarySearchFunc(w.out, addr, func(e edge, a uint64) int { return cmp.Compare(e.from, a) })
	return is
}
