// Package jumptable finds where indirect jumps lead: it follows the code before a jump, and reads the table that the jump loads its
// target from.
package jumptable

import (
	"encoding/binary"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/symbolic"
)

// What is looked at, at most: compilers write tables of some thousand entries (5,053 of a switch over characters in cmark), and put few
// blocks between a comparison and the jump.
const (
	mostEntries = 1 << 13
	mostBlocks  = 12      // on a path to the jump
	mostPaths   = 256     // to the jump
	mostSteps   = 1 << 15 // instructions on all paths
)

// Code is one contiguous part of a function, and what is known of it.
type Code struct {
	insn.Code
	Starts []uint32 // the offsets of its known instructions, in order
	// Ends are those of calls and traps behind which nothing follows: the code there is reached in other ways. Where such a call was taken for one that returns, a
	// register that keeps the address of a table seemed to have changed on the way.
	Ends []uint32
	Led  []Edge // where indirect jumps lead of which that is known
}

// Edge is a way from one instruction to another, by their offsets.
type Edge struct{ From, To uint32 }

// Search is the search for the tables of jumps in one part of a function. The blocks of the code, and what is worked out of them, are
// the same for each jump: an interpreter's loop has a hundred, in ten thousand instructions.
type Search struct {
	blocks
	arch *insn.Arch
	code *Code
	read func(addr uint64, n int) []byte
	ends map[int32]*symbolic.Trace
	// refers are the addresses that instructions may have: not the absolute ones, and with them.
	refers [2]map[uint64]bool
	next   extent // the table whose end was looked for last, and that end
	// Of the jump that is asked about:
	jump  int32 // index of the instruction
	tried int   // paths
	steps int   // instructions
	// visits are the edges that were followed back for what came before a path.
	visits int
}

// New returns a search in some code. read returns n bytes at a link-time address, or nil; what a program may change is better not
// among them.
func New(a *insn.Arch, code *Code, read func(addr uint64, n int) []byte) *Search {
	return &Search{arch: a, code: code, read: read, blocks: blocksOf(a, code)}
}

// Lead adds what has become known of a jump: the next answers regard it.
func (s *Search) Lead(e Edge) {
	s.code.Led = append(s.code.Led, e)
	if !s.lead(e) {
		s.blocks, s.ends = blocksOf(s.arch, s.code), nil
	}
}

// turn turns to the jump at an offset. It reports whether a known instruction is there.
func (s *Search) turn(at uint32) bool {
	jump, found := slices.BinarySearch(s.code.Starts, at)
	s.jump, s.tried, s.steps, s.visits = int32(jump), 0, 0, 0
	return found && int(at) < len(s.code.Bytes)
}

// Targets returns where an indirect jump leads: the addresses in the table that it reads, in
// order and each once. at is the jump's offset in the code.
//
// The jump must lead to a constant plus what is loaded from a table, and every path to it that is
// known must limit which entries it loads: by a comparison, or by an operation that leaves few
// bits. In the second case the compiler may know more, and the table may be shorter: the entries
// must then all be addresses in code, and no instruction refers to the middle of the table.
//
// ok is false if something of this is not known. When more instructions are known, so are more
// paths: ask again until nothing is added. A path on which an instruction needs a register
// that a call before it does not preserve is none: that call does not return.
//
// Known forms are those of GCC 11 and 12 and of clang 14 to 16: tables of addresses, and of
// distances from the table (GCC's ASM_OUTPUT_ADDR_DIFF_ELT, LLVM's EK_LabelDifference32) or from
// a label, which arm64 has in one or two bytes too, in units of four.
func (s *Search) Targets(at uint32) (targets []uint64, ok bool) {
	if !s.turn(at) {
		return nil, false
	}
	seen := make(map[uint64]bool)
	if !s.paths([]int32{s.blockOf(s.jump)}, nil, seen) || len(seen) == 0 {
		return nil, false
	}
	for to := range seen {
		targets = append(targets, to)
	}
	slices.Sort(targets)
	for _, to := range targets {
		if !s.plausible(to) {
			return nil, false
		}
	}
	return targets, true
}

// Pointer reports whether an indirect jump leads where a pointer does, which a register has from before, or which is in memory at a fixed distance from what a
// register or other memory has: it reads no entry of a table.
func (s *Search) Pointer(at uint32) bool {
	if !s.turn(at) {
		return false
	}
	t := s.arch.Begin()
	var goal symbolic.Value
	s.run(t, s.blockOf(s.jump), true, &goal)
	single := func(v symbolic.Value) bool {
		return v.Terms[0].Symbol != 0 && v.Terms[0].Scale == 1 && v.Terms[1].Symbol == 0
	}
	if !single(goal) || goal.Const != 0 {
		return false
	}
	switch id := goal.Terms[0].Symbol; t.Symbols[id].Kind {
	case symbolic.InputRegister:
		return true
	case symbolic.Loaded:
		return single(t.Symbols[id].Of)
	}
	return false
}

// paths adds to seen where the jump leads after each path that ends with some blocks. The blocks
// are in reverse order; taken says for all but the last whether its branch leads to the next.
func (s *Search) paths(path []int32, taken []bool, seen map[uint64]bool) bool {
	if s.tried++; s.tried > mostPaths || s.steps > mostSteps {
		return false
	}
	head := path[len(path)-1]
	t := s.arch.Begin()
	var goal symbolic.Value
	for i := len(path) - 1; i >= 0; i-- {
		c := s.run(t, path[i], i == 0, &goal)
		if i > 0 && taken[i-1] {
			t.Assume(c)
		} else if i > 0 {
			t.Assume(c.Opposite())
		}
	}
	more := len(path) < mostBlocks && len(s.into[head]) > 0
	switch s.settle(t, goal, head, more, seen) {
	case tableFound, noPath:
		return true
	case tableLost:
		return false
	}
	if !more {
		return false
	}
	for _, e := range s.into[head] {
		if !s.paths(append(slices.Clone(path), e.from), append(slices.Clone(taken), e.taken), seen) {
			return false
		}
	}
	return true
}

// run follows a block. In the last one, it stops at the jump and sets goal to its target.
func (s *Search) run(t *symbolic.Trace, block int32, last bool, goal *symbolic.Value) (c symbolic.Condition) {
	if s.arch.Self != nil && block == 0 && len(s.into[0]) == 0 {
		if r, ok := s.arch.Self(s.code.Bytes); ok {
			t.Regs[r] = symbolic.Constant(s.code.Addr)
		}
	}
	s.steps += int(s.from[block+1] - s.from[block])
	for i := s.from[block]; i < s.from[block+1]; i++ {
		at := s.at[i]
		code := s.code.Bytes[at:]
		if last && i == s.jump {
			*goal = s.arch.Leads(t, code, s.code.Addr+uint64(at))
			return symbolic.Always
		}
		c = s.arch.Follow(t, code, s.code.Addr+uint64(at))
	}
	return c
}

// How the search for a table ends on one path.
type tableResult uint8

const (
	tableLost tableResult = iota // it is not known, whatever comes before the path
	tableFound
	tableMore // what comes before decides
	noPath    // the processor does not come this way
)

// lookup is a value as an address, a constant or what a register held, plus a loaded entry.
type lookup struct {
	entry int32          // the symbol of what is loaded
	table symbolic.Value // its address without the index: a constant or one register
	index symbolic.Value // the rest of it: one term
}

// settle adds to seen where the jump leads if its target has a value. more says whether the path
// may be longer.
func (s *Search) settle(t *symbolic.Trace, goal symbolic.Value, head int32, more bool, seen map[uint64]bool) tableResult {
	l, result := s.lookup(t, goal)
	if result != tableFound {
		return result
	}
	base, ok := s.bases(t, goal, l, head)
	if !ok {
		return tableLost
	}
	id := l.index.Terms[0].Symbol
	lim := t.SymbolLimits(id)
	limited := lim.Count() > 0 && lim.Count() <= mostEntries
	if !limited || lim.Implied && more {
		if r := s.origin(t, id); r != tableLost || !limited {
			return r
		}
	}
	out, first, after := s.targets(t, goal, l, lim, base)
	if out == nil || lim.Implied && !s.whole(t, goal, l, out, first, after) {
		return tableLost
	}
	for _, to := range out {
		seen[to] = true
	}
	return tableFound
}

// bases returns what registers and slots in the goal and the address have from earlier: the table's address.
func (s *Search) bases(t *symbolic.Trace, goal symbolic.Value, l lookup, head int32) (base map[int32]uint64, ok bool) {
	base = make(map[int32]uint64)
	for _, v := range [...]symbolic.Value{goal, l.table} {
		for _, x := range v.Terms {
			h, ok := t.Holder(x.Symbol)
			if !ok || x.Scale != 1 || x.Symbol == l.entry {
				continue
			}
			c, ok := s.earlier(head, h)
			if !ok {
				return nil, false
			}
			base[x.Symbol] = c
		}
	}
	return base, true
}

// lookup finds what is loaded in a goal.
func (s *Search) lookup(t *symbolic.Trace, goal symbolic.Value) (l lookup, result tableResult) {
	for _, x := range goal.Terms {
		id := x.Symbol
		for t.Symbols[id].Kind == symbolic.ZeroExtended || t.Symbols[id].Kind == symbolic.SignExtended {
			id = t.Symbols[id].Of.Single()
		}
		kind := t.Symbols[id].Kind
		if _, ok := t.Slot(id); ok {
			kind = symbolic.InputRegister
		}
		switch kind {
		case symbolic.Loaded:
			if l.entry != 0 {
				return l, tableLost
			}
			l.entry = id
		case symbolic.InputRegister:
			result = tableMore
		case symbolic.ReturnedNumber:
			return l, noPath
		case symbolic.UnknownNumber, symbolic.ZeroExtended, symbolic.SignExtended, symbolic.Partly:
			if x.Symbol != 0 {
				return l, tableLost
			}
		}
	}
	if l.entry == 0 {
		return l, result
	}
	return s.splitAddress(t, l)
}

// splitAddress says which part of an entry's address is the index.
func (s *Search) splitAddress(t *symbolic.Trace, l lookup) (lookup, tableResult) {
	addr := t.Symbols[l.entry].Of
	a, b := addr.Terms[0], addr.Terms[1]
	if a.Symbol == 0 {
		return l, tableLost // one place: not a table
	}
	if b.Symbol == 0 {
		l.index.Terms[0] = a
		l.table.Const = addr.Const
		return l, tableFound
	}
	isBase := func(x symbolic.Term) bool {
		_, ok := t.Holder(x.Symbol)
		return ok && x.Scale == 1
	}
	isIndex := func(x symbolic.Term) bool {
		n := t.SymbolLimits(x.Symbol).Count()
		return n > 0 && n <= mostEntries
	}
	switch {
	case isBase(a) && (!isBase(b) || isIndex(b)):
	case isBase(b) && (!isBase(a) || isIndex(a)):
		a, b = b, a
	case isBase(a) && isBase(b):
		return l, tableMore
	default:
		return l, tableLost
	}
	l.table = symbolic.Value{Const: addr.Const, Terms: [2]symbolic.Term{a}}
	l.index.Terms[0] = b
	return l, tableFound
}

// origin says whether what comes before a path can limit a symbol.
func (s *Search) origin(t *symbolic.Trace, id int32) tableResult {
	sym := t.Symbols[id]
	switch sym.Kind {
	case symbolic.InputRegister:
		return tableMore
	case symbolic.ReturnedNumber:
		return noPath
	case symbolic.ZeroExtended, symbolic.SignExtended, symbolic.Loaded:
		if sym.Kind == symbolic.Loaded && sym.Which > 0 {
			return tableLost
		}
		for _, x := range sym.Of.Terms {
			if x.Symbol == 0 {
				continue
			}
			if r := s.origin(t, x.Symbol); r != tableMore {
				return r
			}
		}
		return tableMore
	}
	return tableLost
}

// targets returns where the jump leads for each index, and from where to where the table is.
func (s *Search) targets(t *symbolic.Trace, goal symbolic.Value, l lookup, lim symbolic.Limits, base map[int32]uint64) (out []uint64, first, after uint64) {
	e := symbolic.Evaluation{Trace: t, Read: s.read, Given: base, BigEndian: s.arch.BigEndian}
	index := l.index.Terms[0].Symbol
	for i := lim.Lo; i <= lim.Hi; i++ {
		base[index] = i
		to, ok := e.Value(goal)
		if !ok {
			return nil, 0, 0
		}
		at, _ := e.Value(t.Symbols[l.entry].Of)
		if i == lim.Lo {
			first = at
		}
		after = at + uint64(t.Symbols[l.entry].Bits/8)
		out = append(out, to)
	}
	return out, first, after
}

// earlier returns the constant that a holder has at the beginning of a block, if it is the same on
// all ways there that are known.
func (s *Search) earlier(block int32, h symbolic.Holder) (c uint64, ok bool) {
	type want struct {
		block int32
		symbolic.Holder
	}
	found := false
	seen := map[want]bool{{block, h}: true}
	for todo := []want{{block, h}}; len(todo) > 0; {
		w := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if w.block == 0 && len(s.into[0]) == 0 {
			return 0, false // the function's caller passed it
		}
		for _, e := range s.into[w.block] {
			if s.visits++; s.visits > mostSteps {
				return 0, false
			}
			t := s.end(e.from)
			v, ok := t.Held(w.Holder)
			if ok && v.IsConstant() {
				if found && v.Const != c {
					return 0, false
				}
				c, found = v.Const, true
				continue
			}
			id := v.Single()
			if t.Symbols[id].Kind == symbolic.ReturnedNumber {
				continue // no path
			}
			from, known := t.Holder(id)
			if !ok || !known {
				return 0, false
			}
			if next := (want{e.from, from}); !seen[next] {
				seen[next] = true
				todo = append(todo, next)
			}
		}
	}
	return c, found
}

// end returns the state at the end of a block.
func (s *Search) end(block int32) *symbolic.Trace {
	if s.ends == nil {
		s.ends = make(map[int32]*symbolic.Trace)
	}
	t := s.ends[block]
	if t == nil {
		t = s.arch.Begin()
		s.run(t, block, false, nil)
		s.ends[block] = t
	}
	return t
}

// plausible reports whether code may begin at an address: it decodes, and is not in the middle of
// a known instruction.
func (s *Search) plausible(to uint64) bool {
	if s.arch.Fixed > 0 && to%s.arch.Fixed != 0 {
		return false
	}
	off := to - s.code.Addr
	if off >= uint64(len(s.code.Bytes)) {
		for n := 16; n > 0; n /= 2 { // the section may end
			if d := s.read(to, n); d != nil {
				_, ok := s.arch.Next(d)
				return ok
			}
		}
		return false
	}
	i, known := slices.BinarySearch(s.at, uint32(off))
	if !known && i > 0 && uint64(s.at[i-1])+uint64(s.size[i-1]) > off {
		return false
	}
	_, ok := s.arch.Next(s.code.Bytes[off:])
	return ok
}

// whole reports whether a table's length is certain although no comparison gives it. The entries must be addresses of four or eight
// bytes, or distances of four, which all lead into the code: then what follows a shorter table is not taken for its entries. What could
// follow is the function's own next table, to which its code refers; another function's, whose distances lead so many bytes before that
// function's code as the tables are apart, and no code there loads an entry and jumps before its first case; or other data.
// Instructions of a fixed length have tables of one or two bytes, which always lead into the code.
func (s *Search) whole(t *symbolic.Trace, goal symbolic.Value, l lookup, targets []uint64, first, after uint64) bool {
	bits := t.Symbols[l.entry].Bits
	if bits != 64 && bits != 32 || bits == 64 && goal.Single() != l.entry || s.arch.Fixed > 0 {
		return false
	}
	for _, to := range targets {
		if to-s.code.Addr >= uint64(len(s.code.Bytes)) {
			return false
		}
	}
	for i := 0; i+4 <= len(s.code.Bytes); i++ {
		v := uint64(int64(int32(binary.LittleEndian.Uint32(s.code.Bytes[i:]))))
		// An address, or the distance from an instruction's end, which a constant may precede.
		to := s.code.Addr + uint64(i) + 4 + v
		if v > first && v < after || to != first && to+4 > first && to < after {
			return false
		}
	}
	return true
}
