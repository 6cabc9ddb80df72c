package packfile

import (
	"math"
	"sort"
	"sync/atomic"
)

// function is a function's record, as it is read. What few questions are about is where it begins in the group.
type function struct {
	g         *functionGroup
	edges     atomic.Pointer[[]readEdge] // see inlined
	id        int32
	line      int32
	qualified uint32 // a text; noText: it is the name
	file      uint32 // a text, or noText
	sig       int32  // of the lists; -1: the record has one
	list      int32  // where that is
	result    int32
	base      int32        // the function that it is, or itself
	posting   int32        // where the list of its blocks is; -1: they follow from those of what it is in
	calls     int32        // where the calls are that are inlined into it; 0: there are none
	named     int32        // functions that have been named before those
	params    atomic.Int32 // how many it has; -1: that was not looked up
}

// functionGroup is a group of records of functions. Those that are asked for are kept: of kmalloc, which is inlined into 1,600 functions of a
// kernel, a question needs three of a group.
type functionGroup struct {
	r     groupReader // at its begin
	named int         // functions that have been named before
	asked atomic.Int32
	all   [groupSize]atomic.Pointer[function]
}

// fewAsked is how many functions of a group are looked for alone. With the next one all are kept.
const fewAsked = 4

// functions are the groups that were read. Several goroutines may use them.
type functions struct {
	groups []atomic.Pointer[functionGroup]
	count  atomic.Int64
}

type readEdge struct{ to, line int32 }

// noText is the number of no text.
const noText = 1<<32 - 1

// function returns a function's record.
func (s *session) function(id int) (*function, error) {
	if id < 0 || id >= s.f.funs {
		return nil, s.f.own.Errorf(s.f.parts[partFunctions].From, "function %d of %d is asked for", id, s.f.funs)
	}
	place := &s.functions.groups[id/groupSize]
	g := place.Load()
	if g == nil {
		r, named, err := s.f.group(partFunctions, id/groupSize)
		if err != nil {
			return nil, err
		}
		g = &functionGroup{r: r, named: named}
		if place.CompareAndSwap(nil, g) {
			s.functions.count.Add(1)
		} else {
			g = place.Load()
		}
	}
	slot := &g.all[id%groupSize]
	if x := slot.Load(); x != nil {
		return x, nil
	}
	if err := s.readFunctions(g, id); err != nil {
		return nil, err
	}
	return slot.Load(), nil
}

// readFunctions keeps the record of a function of a group, or all of them. Whether that fails depends on the records up to the function's
// alone, and so not on what else was asked for.
func (s *session) readFunctions(g *functionGroup, id int) error {
	wanted := id % groupSize
	last, all := wanted, (*[groupSize]function)(nil)
	if g.asked.Add(1) > fewAsked {
		last, all = g.r.n-1, new([groupSize]function)
	}
	x := functionReader{groupReader: g.r, g: g, named: g.named, file: noText}
	for i := range last + 1 {
		to := (*function)(nil)
		switch {
		case all != nil:
			to = &all[i]
		case i == last:
			to = new(function)
		}
		if x.read(int32(id-wanted+i), to); x.Bad {
			if i > wanted {
				break
			}
			return x.check()
		}
		if to != nil {
			g.all[i].CompareAndSwap(nil, to)
		}
	}
	return nil
}

// functionReader reads the records of a group, one after the other.
type functionReader struct {
	groupReader
	g     *functionGroup
	file  uint32 // of the function before
	line  int
	named int
}

// read reads a record into x, or passes over it if x is nil: most are passed, on the way to one.
func (r *functionReader) read(id int32, x *function) {
	flags := r.U8()
	qualified, base := uint32(noText), id
	var list, calls, named int32
	var sig, params, posting int32 = -1, -1, -1
	if flags&funQualified != 0 {
		qualified = r.text()
	}
	if flags&funFile != 0 {
		r.file = r.text()
	}
	if r.line += int(r.int()); int(int32(r.line)) != r.line {
		r.Fail()
	}
	if flags&funSig != 0 {
		sig = int32(r.index(r.f.parts[partSigs].N))
	} else {
		list = int32(r.P)
		params = int32(r.count(1))
		r.pass(int(params))
	}
	result := int32(r.index(math.MaxInt32))
	if flags&funVariant != 0 {
		base = int32(r.index(r.f.funs))
	}
	if flags&funPosting != 0 {
		posting = int32(r.P)
		r.pass(r.count(1))
	}
	if flags&funEdges != 0 {
		calls, named = int32(r.P), int32(r.named)
		r.passCalls(r.count(1))
	}
	if x == nil {
		return
	}
	x.g, x.id, x.line, x.qualified, x.file, x.sig, x.list = r.g, id, int32(r.line), qualified, r.file, sig, list
	x.result, x.base, x.posting, x.calls, x.named = result, base, posting, calls, named
	x.params.Store(params)
}

// passCalls passes over calls, and counts the functions that they name. All that counts of their numbers is where they end, and the lowest bit.
func (r *functionReader) passCalls(n int) {
	d, i := r.D[r.P:], 0
	for ; n > 0; n-- {
		left := 2 // numbers of the call
		if i < len(d) && d[i]&1 != 0 {
			r.named++
			left = 1
		}
		for ; left > 0; i++ {
			if i >= len(d) {
				r.Fail()
				return
			}
			if d[i] < 0x80 {
				left--
			}
		}
	}
	r.P += i
}

// reader returns a reader of the group that a function is in.
func (x *function) reader(at int32) groupReader {
	r := x.g.r
	r.P = int(at)
	return r
}

// paramCount returns how many parameters a function has.
func (s *session) paramCount(id int) (int, error) {
	x, err := s.function(id)
	if err != nil {
		return 0, err
	}
	if n := x.params.Load(); n >= 0 {
		return int(n), nil
	}
	r, err := s.listRecord(partSigs, int(x.sig))
	if err != nil {
		return 0, err
	}
	n := r.count(1)
	if err := r.check(); err != nil {
		return 0, err
	}
	x.params.Store(int32(n))
	return n, nil
}

// blocks returns the blocks that have sites of a function, if they are listed.
func (x *function) blocks() ([]int, error) {
	r := x.reader(x.posting)
	out := make([]int, r.count(1))
	at := 0
	for i := range out {
		at += r.index(math.MaxInt32)
		if out[i] = at; at >= r.f.facts.Blocks || i > 0 && at == out[i-1] {
			r.Fail()
		}
	}
	return out, r.check()
}

// inlined returns the calls that are inlined into a function.
func (x *function) inlined() ([]readEdge, error) {
	if x.calls == 0 {
		return nil, nil
	}
	if e := x.edges.Load(); e != nil {
		return *e, nil
	}
	r, named, at := x.reader(x.calls), int(x.named), int(x.line)
	out := make([]readEdge, r.count(1))
	for i := range out {
		u := r.ULEB()
		at += unzigzag(u >> 1)
		to := named
		if u&1 != 0 {
			named++
		} else if u := r.ULEB(); u&1 != 0 {
			to = r.f.roots + int(u>>1)
		} else {
			to = int(x.id) + unzigzag(u>>1)
		}
		if to < 0 || to >= r.f.funs || at != int(int32(at)) {
			r.Fail()
		}
		out[i] = readEdge{int32(to), int32(at)}
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	x.edges.Store(&out)
	return out, nil
}

func unzigzag(u uint64) int { return int(u>>1) ^ -int(u&1) }

// about returns what names a function and where it is declared, without its parameters: nothing else is told of callers.
func (s *session) about(id int) (*Function, error) {
	if x, known := s.abouts[id]; known {
		return x, nil
	}
	x, err := s.function(id)
	if err != nil {
		return nil, err
	}
	out := &Function{DeclLine: int(x.line)}
	name, err := s.nameText(id)
	if err != nil {
		return nil, err
	}
	if out.Name, err = s.textOf(name); err != nil {
		return nil, err
	}
	if out.Qualified = out.Name; x.qualified != noText {
		if out.Qualified, err = s.textOf(x.qualified); err != nil {
			return nil, err
		}
	}
	if x.file != noText {
		if out.DeclFile, err = s.textOf(x.file); err != nil {
			return nil, err
		}
	}
	s.abouts[id] = out
	return out, nil
}

// describe returns a function as sites have it.
func (s *session) describe(id int) (*Function, error) {
	if x, known := s.whole[id]; known {
		return x, nil
	}
	x, err := s.function(id)
	if err != nil {
		return nil, err
	}
	about, err := s.about(id)
	if err != nil {
		return nil, err
	}
	out := *about
	r := x.reader(x.list)
	if x.sig >= 0 {
		if r, err = s.listRecord(partSigs, int(x.sig)); err != nil {
			return nil, err
		}
	}
	list := readList(&r)
	if err := r.check(); err != nil {
		return nil, err
	}
	if len(list) > 0 {
		out.Params = make([]Param, len(list))
	}
	for i, n := range list {
		if out.Params[i], err = s.param(n); err != nil {
			return nil, err
		}
	}
	s.whole[id] = &out
	return &out, nil
}

// blocksOf returns blocks among which are all that have sites of a function.
func (s *session) blocksOf(id int) ([]int, error) {
	for {
		x, err := s.function(id)
		if err != nil {
			return nil, err
		}
		if x.posting >= 0 {
			return x.blocks()
		}
		if id < s.f.roots {
			b, err := s.blockOfRoot(id)
			return []int{b}, err
		}
		// The function that names it first: those before it have named fewer.
		next, err := s.namer(id)
		if err != nil {
			return nil, err
		}
		if next >= id {
			return nil, s.f.own.Errorf(s.f.parts[partFunctions].From, "function %d is named by a later one", id)
		}
		id = next
	}
}

// namer returns the function that is the first to name another one.
func (s *session) namer(id int) (int, error) {
	g, err := s.searchGroup(partFunctions, id)
	if err != nil {
		return 0, err
	}
	_, named, err := s.f.group(partFunctions, g)
	if err != nil {
		return 0, err
	}
	for i := g * groupSize; i < min(s.f.funs, (g+1)*groupSize); i++ {
		x, err := s.function(i)
		if err != nil {
			return 0, err
		}
		edges, err := x.inlined()
		if err != nil {
			return 0, err
		}
		for _, e := range edges {
			if int(e.to) == id {
				return i, nil
			}
		}
	}
	return 0, s.f.own.Errorf(s.f.parts[partFunctions].From, "no function names function %d, although %d are named before", id, named)
}

// searchGroup returns the last group of a part whose number is at most id.
func (s *session) searchGroup(part, id int) (int, error) {
	var failed error
	g := sort.Search(groups(s.f.parts[part].N), func(i int) bool {
		_, extra, err := s.f.offset(part, i)
		if err != nil {
			failed = err
		}
		return err != nil || extra > id
	}) - 1
	if failed == nil && g < 0 {
		failed = s.f.own.Errorf(s.f.parts[part].From, "number %d is before the first group", id)
	}
	return g, failed
}

// blockOfRoot returns the block of which a function is the root.
func (s *session) blockOfRoot(id int) (int, error) {
	g, err := s.searchGroup(partBlocks, id)
	if err != nil {
		return 0, err
	}
	r, roots, err := s.f.group(partBlocks, g)
	if err != nil {
		return 0, err
	}
	for i := range r.n {
		n := r.ULEB()
		b := r.Bytes(n)
		if r.Bad || len(b) == 0 {
			return 0, r.failed("a block is cut short")
		}
		if b[0]&blockRoot == 0 {
			if roots == id {
				return g*groupSize + i, nil
			}
			roots++
		}
	}
	return 0, s.f.own.Errorf(s.f.parts[partBlocks].From, "no block has function %d as its root", id)
}
