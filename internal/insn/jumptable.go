package insn

import (
	"encoding/binary"
	"slices"
)

// What is looked at, at most: compilers write tables of some thousand entries, and put few
// blocks between a comparison and the jump.
const (
	mostEntries = 4096
	mostBlocks  = 12      // on a path to the jump
	mostPaths   = 256     // to the jump
	mostSteps   = 1 << 15 // instructions on all paths
)

// JumpTable returns where an indirect jump leads: the addresses in the table that it reads, in
// order and each once. code is one contiguous part of a function, starts are the offsets of its
// known instructions in order, and at is the jump's. read returns n bytes at a link-time address,
// or nil; what a program may change is better not among them.
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
func (a *Arch) JumpTable(code Code, starts []uint32, at uint32, read func(addr uint64, n int) []byte) (targets []uint64, ok bool) {
	if a.trace == nil {
		return nil, false
	}
	last, found := slices.BinarySearch(starts, at)
	if !found || int(at) >= len(code.Bytes) {
		return nil, false
	}
	s := tableSearch{arch: a, code: code, read: read, blocks: blocksOf(a, code, starts)}
	s.jump = int32(last)
	seen := make(map[uint64]bool)
	if !s.paths([]int32{s.blockOf(int32(last))}, nil, seen) || len(seen) == 0 {
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

// blocks are the basic blocks of some code.
type blocks struct {
	at   []uint32 // offsets of instructions
	size []int32
	of   []int32  // which block an instruction is in
	from []int32  // the first instruction of a block, and at the end their number
	into [][]edge // of a block
}

// edge is a way from the end of a block.
type edge struct {
	from  int32 // block
	taken bool  // by the branch at its end
}

func blocksOf(a *Arch, code Code, starts []uint32) (b blocks) {
	n := len(starts)
	b.at, b.size, b.of = starts, make([]int32, n), make([]int32, n)
	list := make([]Insn, n)
	begins := make([]bool, n)
	for i, at := range starts {
		if int(at) >= len(code.Bytes) {
			break
		}
		in, ok := a.Next(code.Bytes[at:])
		if !ok {
			in = Insn{Size: 1}
		}
		list[i], b.size[i] = in, int32(in.Size)
		if to, ok := slices.BinarySearch(starts, uint32(int64(at)+in.Target)); in.Branches && ok {
			begins[to] = true
		}
		if i+1 < n && (in.Branches || !in.Onward || starts[i+1] != at+uint32(in.Size)) {
			begins[i+1] = true
		}
	}
	for i := range list {
		if i == 0 || begins[i] {
			b.from = append(b.from, int32(i))
		}
		b.of[i] = int32(len(b.from) - 1)
	}
	b.into = make([][]edge, len(b.from))
	b.from = append(b.from, int32(n))
	var lost []edge
	for k := range b.into {
		end := b.from[k+1] - 1
		in, at := list[end], starts[end]
		if to, ok := slices.BinarySearch(starts, uint32(int64(at)+in.Target)); in.Branches && ok {
			b.into[b.of[to]] = append(b.into[b.of[to]], edge{int32(k), true})
		}
		if in.Onward && int(end+1) < n && starts[end+1] == at+uint32(in.Size) {
			b.into[k+1] = append(b.into[k+1], edge{int32(k), false})
		}
		if in.Lost && !in.Onward {
			lost = append(lost, edge{int32(k), true})
		}
	}
	for k := range b.into {
		if k > 0 && len(b.into[k]) == 0 {
			b.into[k] = lost // a case of another switch
		}
	}
	return b
}

func (b *blocks) blockOf(i int32) int32 { return b.of[i] }

// tableSearch is the search for one jump's table.
type tableSearch struct {
	blocks
	arch  *Arch
	code  Code
	read  func(addr uint64, n int) []byte
	jump  int32 // index of the instruction
	tried int   // paths
	steps int   // instructions
	// visits are the edges that were followed back for what came before a path.
	visits int
	ends   map[int32]*trace
}

// paths adds to seen where the jump leads after each path that ends with some blocks. The blocks
// are in reverse order; taken says for all but the last whether its branch leads to the next.
func (s *tableSearch) paths(path []int32, taken []bool, seen map[uint64]bool) bool {
	if s.tried++; s.tried > mostPaths || s.steps > mostSteps {
		return false
	}
	head := path[len(path)-1]
	t := newTrace(s.arch.frame, s.arch.width)
	var goal value
	for i := len(path) - 1; i >= 0; i-- {
		c := s.run(t, path[i], i == 0, &goal)
		if i > 0 && taken[i-1] {
			t.assume(c)
		} else if i > 0 {
			t.assume(c.opposite())
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
func (s *tableSearch) run(t *trace, block int32, last bool, goal *value) (c condition) {
	if s.arch.self != nil && block == 0 && len(s.into[0]) == 0 {
		if r, ok := s.arch.self(s.code.Bytes); ok {
			t.regs[r] = constant(s.code.Addr)
		}
	}
	s.steps += int(s.from[block+1] - s.from[block])
	for i := s.from[block]; i < s.from[block+1]; i++ {
		at := s.at[i]
		code := s.code.Bytes[at:]
		if last && i == s.jump {
			*goal = s.arch.target(t, code, s.code.Addr+uint64(at))
			return always
		}
		c = s.arch.trace(t, code, s.code.Addr+uint64(at))
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
	entry int32 // the symbol of what is loaded
	table value // its address without the index: a constant or one register
	index value // the rest of it: one term
}

// settle adds to seen where the jump leads if its target has a value. more says whether the path
// may be longer.
func (s *tableSearch) settle(t *trace, goal value, head int32, more bool, seen map[uint64]bool) tableResult {
	l, result := s.lookup(t, goal)
	if result != tableFound {
		return result
	}
	// A register or slot in the goal or the address has the table's address, from earlier.
	base := make(map[int32]uint64)
	for _, v := range [...]value{goal, l.table} {
		for _, x := range v.terms {
			h, ok := t.holder(x.sym)
			if !ok || x.scale != 1 || x.sym == l.entry {
				continue
			}
			c, ok := s.earlier(head, h)
			if !ok {
				return tableLost
			}
			base[x.sym] = c
		}
	}
	id := l.index.terms[0].sym
	lim := t.symbolLimits(id)
	limited := lim.count() > 0 && lim.count() <= mostEntries
	if !limited || lim.implied && more {
		if r := s.origin(t, id); r != tableLost || !limited {
			return r
		}
	}
	out, first, after := s.targets(t, goal, l, lim, base)
	if out == nil || lim.implied && !s.whole(t, goal, l, out, first, after) {
		return tableLost
	}
	for _, to := range out {
		seen[to] = true
	}
	return tableFound
}

// lookup finds what is loaded in a goal.
func (s *tableSearch) lookup(t *trace, goal value) (l lookup, result tableResult) {
	for _, x := range goal.terms {
		id := x.sym
		for t.symbols[id].kind == zeroExtended || t.symbols[id].kind == signExtended {
			id = t.symbols[id].of.single()
		}
		kind := t.symbols[id].kind
		if _, ok := t.slot(id); ok {
			kind = inputRegister
		}
		switch kind {
		case loaded:
			if l.entry != 0 {
				return l, tableLost
			}
			l.entry = id
		case inputRegister:
			result = tableMore
		case returnedNumber:
			return l, noPath
		case unknownNumber, zeroExtended, signExtended, partly:
			if x.sym != 0 {
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
func (s *tableSearch) splitAddress(t *trace, l lookup) (lookup, tableResult) {
	addr := t.symbols[l.entry].of
	a, b := addr.terms[0], addr.terms[1]
	if a.sym == 0 {
		return l, tableLost // one place: not a table
	}
	if b.sym == 0 {
		l.index.terms[0] = a
		l.table.c = addr.c
		return l, tableFound
	}
	isBase := func(x term) bool {
		_, ok := t.holder(x.sym)
		return ok && x.scale == 1
	}
	isIndex := func(x term) bool {
		n := t.symbolLimits(x.sym).count()
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
	l.table = value{c: addr.c, terms: [2]term{a}}
	l.index.terms[0] = b
	return l, tableFound
}

// origin says whether what comes before a path can limit a symbol.
func (s *tableSearch) origin(t *trace, id int32) tableResult {
	sym := t.symbols[id]
	switch sym.kind {
	case inputRegister:
		return tableMore
	case returnedNumber:
		return noPath
	case zeroExtended, signExtended, loaded:
		if sym.kind == loaded && sym.which > 0 {
			return tableLost
		}
		for _, x := range sym.of.terms {
			if x.sym == 0 {
				continue
			}
			if r := s.origin(t, x.sym); r != tableMore {
				return r
			}
		}
		return tableMore
	}
	return tableLost
}

// targets returns where the jump leads for each index, and from where to where the table is.
func (s *tableSearch) targets(t *trace, goal value, l lookup, lim limits, base map[int32]uint64) (out []uint64, first, after uint64) {
	e := evaluation{t, s.read, base, s.arch.bigEndian}
	index := l.index.terms[0].sym
	for i := lim.lo; i <= lim.hi; i++ {
		base[index] = i
		to, ok := e.value(goal)
		if !ok {
			return nil, 0, 0
		}
		at, _ := e.value(t.symbols[l.entry].of)
		if i == lim.lo {
			first = at
		}
		after = at + uint64(t.symbols[l.entry].bits/8)
		out = append(out, to)
	}
	return out, first, after
}

// evaluation computes values for given numbers of symbols.
type evaluation struct {
	t     *trace
	read  func(addr uint64, n int) []byte
	given map[int32]uint64
	big   bool
}

func (e evaluation) value(v value) (uint64, bool) {
	out := v.c
	for _, x := range v.terms {
		if x.sym == 0 {
			continue
		}
		n, ok := e.symbol(x.sym)
		if !ok {
			return 0, false
		}
		out += n * x.scale
	}
	return out, true
}

func (e evaluation) symbol(id int32) (uint64, bool) {
	if n, ok := e.given[id]; ok {
		return n, true
	}
	s := e.t.symbols[id]
	if s.kind != loaded && s.kind != zeroExtended && s.kind != signExtended {
		return 0, false
	}
	v, ok := e.value(s.of)
	if !ok {
		return 0, false
	}
	switch s.kind {
	case zeroExtended:
		return v & mask(s.bits), true
	case signExtended:
		return signed(v, s.bits), true
	}
	var word [8]byte
	if s.bits > 64 {
		return 0, false
	}
	d := e.read(v, int(s.bits/8))
	if len(d) != int(s.bits/8) {
		return 0, false
	}
	if e.big {
		copy(word[8-len(d):], d)
		return binary.BigEndian.Uint64(word[:]), true
	}
	copy(word[:], d)
	return binary.LittleEndian.Uint64(word[:]), true
}

// holder is where a value is at the beginning of a block: in a register, or in a slot of the frame
// at a distance from what a register holds.
type holder struct {
	reg    int32
	inSlot bool
	off    uint64
}

// holder returns where the value of a symbol was at the beginning of the path.
func (t *trace) holder(id int32) (h holder, ok bool) {
	if addr, ok := t.slot(id); ok {
		return holder{t.symbols[addr.terms[0].sym].which, true, addr.c}, true
	}
	s := t.symbols[id]
	return holder{reg: s.which}, s.kind == inputRegister
}

// held returns the value that a holder has after a path.
func (t *trace) held(h holder) (value, bool) {
	if !h.inSlot {
		return t.regs[h.reg], true
	}
	addr, _ := sum(t.regs[h.reg], constant(h.off), 1)
	if v, ok := t.spills[addr]; ok {
		return v, true
	}
	return t.symbol(symbol{kind: loaded, of: addr, bits: 64}), t.inFrame(addr)
}

// earlier returns the constant that a holder has at the beginning of a block, if it is the same on
// all ways there that are known.
func (s *tableSearch) earlier(block int32, h holder) (c uint64, ok bool) {
	type want struct {
		block int32
		holder
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
			v, ok := t.held(w.holder)
			if ok && v.isConstant() {
				if found && v.c != c {
					return 0, false
				}
				c, found = v.c, true
				continue
			}
			id := v.single()
			if t.symbols[id].kind == returnedNumber {
				continue // no path
			}
			from, known := t.holder(id)
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
func (s *tableSearch) end(block int32) *trace {
	if s.ends == nil {
		s.ends = make(map[int32]*trace)
	}
	t := s.ends[block]
	if t == nil {
		t = newTrace(s.arch.frame, s.arch.width)
		s.run(t, block, false, nil)
		s.ends[block] = t
	}
	return t
}

// plausible reports whether code may begin at an address: it decodes, and is not in the middle of
// a known instruction.
func (s *tableSearch) plausible(to uint64) bool {
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

// whole reports whether a table's length is certain although no comparison gives it. The entries
// must be addresses, which are all in the code: then what follows a shorter table is not taken for
// its entries, except the function's own next table, to which its code refers. In tables of
// distances, the distances of another function's table are as good.
func (s *tableSearch) whole(t *trace, goal value, l lookup, targets []uint64, first, after uint64) bool {
	if goal.single() != l.entry || t.symbols[l.entry].bits != 64 || s.arch.Fixed > 0 {
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
