package packfile

import (
	"math"
	"sort"
)

// function is a function's record, as it is read.
type function struct {
	qualified uint64 // a text
	hasOwn    bool   // qualified is set; else it is the name
	file      uint64 // a text, or noText
	line      int
	sig       int // of the lists, or -1
	list      []int
	result    int
	base      int  // the function that it is, or itself
	derived   bool // its blocks follow from those of what it is in

	// What few questions are about is read when it is asked for.
	id        int
	posting   groupReader // at the list of its blocks
	calls     groupReader // at the calls that are inlined into it; with no bytes if there are none
	named     int         // functions that have been named before those
	callsRead bool
	edges     []readEdge
}

type readEdge struct{ to, line int }

// noText is the number of no text.
const noText = 1<<64 - 1

// function returns a function's record.
func (s *session) function(id int) (*function, error) {
	if id < 0 || id >= s.f.funs {
		return nil, s.f.own.Errorf(s.f.parts[partFunctions].From, "function %d of %d is asked for", id, s.f.funs)
	}
	g, known := s.groups[id/groupSize]
	if !known {
		var err error
		if g, err = s.readFunctions(id / groupSize); err != nil {
			return nil, err
		}
		s.groups[id/groupSize] = g
	}
	return g[id%groupSize], nil
}

func (s *session) readFunctions(g int) ([]*function, error) {
	r, named, err := s.f.group(partFunctions, g)
	if err != nil {
		return nil, err
	}
	all := make([]function, r.n)
	out := make([]*function, 0, r.n)
	file, line := uint64(noText), 0
	for i := range r.n {
		id := g*groupSize + i
		x := &all[i]
		*x = function{id: id, sig: -1, base: id}
		flags := r.U8()
		if x.hasOwn = flags&funQualified != 0; x.hasOwn {
			x.qualified = r.ULEB()
		}
		if flags&funFile != 0 {
			file = r.ULEB()
		}
		line += int(r.int())
		x.file, x.line = file, line
		if flags&funSig != 0 {
			x.sig = r.index(s.f.parts[partSigs].N)
		} else {
			x.list = readList(&r)
		}
		x.result = r.index(math.MaxInt32)
		if flags&funVariant != 0 {
			x.base = r.index(s.f.funs)
		}
		if x.derived = flags&funPosting == 0; !x.derived {
			x.posting = r
			for range r.count(1) {
				r.ULEB()
			}
		}
		if flags&funEdges != 0 {
			x.calls, x.named = r, named
			for range r.count(1) {
				if r.ULEB()&1 != 0 {
					named++
				} else {
					r.ULEB()
				}
			}
		}
		if r.Bad {
			return nil, r.check()
		}
		out = append(out, x)
	}
	return out, nil
}

// blocks returns the blocks that have sites of a function, if they are listed.
func (x *function) blocks() ([]int, error) {
	r := x.posting
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
	if x.callsRead || len(x.calls.D) == 0 {
		return x.edges, nil
	}
	r, named, at := x.calls, x.named, x.line
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
			to = x.id + unzigzag(u>>1)
		}
		if to < 0 || to >= r.f.funs {
			r.Fail()
		}
		out[i] = readEdge{to, at}
	}
	x.edges, x.callsRead = out, !r.Bad
	return out, r.check()
}

func unzigzag(u uint64) int { return int(u>>1) ^ -int(u&1) }

// describe returns a function as callers have it.
func (s *session) describe(id int) (*Function, error) {
	if x, known := s.whole[id]; known {
		return x, nil
	}
	x, err := s.function(id)
	if err != nil {
		return nil, err
	}
	out := &Function{DeclLine: x.line}
	if out.Name, err = s.textOf(uint64(s.names[id])<<1 | 1); err != nil {
		return nil, err
	}
	if out.Qualified = out.Name; x.hasOwn {
		if out.Qualified, err = s.textOf(x.qualified); err != nil {
			return nil, err
		}
	}
	if x.file != noText {
		if out.DeclFile, err = s.textOf(x.file); err != nil {
			return nil, err
		}
	}
	list := x.list
	if x.sig >= 0 {
		if list, err = s.listAt(partSigs, x.sig); err != nil {
			return nil, err
		}
	}
	for _, n := range list {
		p, err := s.param(n)
		if err != nil {
			return nil, err
		}
		out.Params = append(out.Params, p)
	}
	s.whole[id] = out
	return out, nil
}

// blocksOf returns blocks among which are all that have sites of a function.
func (s *session) blocksOf(id int) ([]int, error) {
	for {
		x, err := s.function(id)
		if err != nil {
			return nil, err
		}
		if !x.derived {
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
			if e.to == id {
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
