package packfile

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/radix"
)

// fun is a function while a pack is made.
type fun struct {
	*Function
	base    *fun // another one that is the same function, with the parameters that most sites have; or nil
	id      int
	given   bool // id is set
	root    bool // the id is that of a block's root
	edges   []edge
	edgeOf  map[edge]int // nil if there are few
	parent  *fun         // one that it is inlined into, or nil
	parents bool         // there are others
	blocks  []int32      // in which it has nodes
	result  int          // the most frequent one, by rank
	results []counted
	rooted  int  // blocks of which it is the root
	derived bool // its blocks follow from those of what it is in
	sig     []int
	sigKey  string
}

// counted is a result by its rank, and how many nodes have it. Nearly all functions have one.
type counted struct{ rank, nodes int32 }

// count notes a node's result.
func (f *fun) count(rank int32) {
	i := slices.IndexFunc(f.results, func(c counted) bool { return c.rank == rank })
	if i < 0 {
		i = len(f.results)
		f.results = append(f.results, counted{rank: rank})
	}
	f.results[i].nodes++
}

// fewEdges are so few that they are looked through.
const fewEdges = 8

// edge returns the number of a call, or -1.
func (f *fun) edge(x edge) int {
	if f.edgeOf == nil {
		return slices.Index(f.edges, x)
	}
	if at, known := f.edgeOf[x]; known {
		return at
	}
	return -1
}

// add adds a call, and returns its number.
func (f *fun) add(x edge) int {
	at := len(f.edges)
	f.edges = append(f.edges, x)
	switch {
	case f.edgeOf != nil:
		f.edgeOf[x] = at
	case len(f.edges) > fewEdges:
		f.edgeOf = make(map[edge]int)
		for i, e := range f.edges {
			f.edgeOf[e] = i
		}
	}
	return at
}

// edge is a call that was inlined: of what, and in which line of the caller.
type edge struct {
	to   *fun
	line int32
}

// node is a site, or a function around sites that is none.
type node struct {
	s      *written // nil if it is no site
	f      *fun
	parent int32 // index in the block; -1 for the root
	depth  int32 // of nesting
	edge   int32 // in the parent's function
	file   int32
	line   int32
	tuple  int32 // rank, or -1 if it is written where it is
	list   int32 // of the encoder's
	frame  int32
	result int32
}

type block struct{ nodes []node }

// encoder makes the parts of a pack.
type encoder struct {
	w     *Writer
	final func(TypeID) TypeID

	blockList []block
	funs      []*fun // by id
	roots     int    // functions that are roots of blocks have the first ids

	values                []*Value // by rank
	ranks                 []int    // of the writer's values
	counts                []int
	mapped                []bool
	lists                 [][]int // all lists of values
	tuples                [][]int // those that several nodes have, by rank
	frames                []int   // values, by rank
	results               []int
	frameRank, resultRank map[int]int
	params                []Param
	sigs                  [][]int
	sigRank               map[string]int
	typ                   []TypeID // of parameters, by rank

	names, texts     []string // sorted; texts are those that are no names
	nameIDs, textIDs map[string]int
}

func newEncoder(w *Writer, final func(TypeID) TypeID) *encoder { return &encoder{w: w, final: final} }

// types gives types their numbers, in the order of the sites that name them first, and finds out which values are equal then.
func (e *encoder) types() {
	w := e.w
	funs, tuples := make([]bool, len(w.funs.all)), make([]bool, len(w.tuples.all))
	e.mapped = make([]bool, len(w.values.all))
	of := func(x *wrote) {
		if !tuples[x.tuple] {
			tuples[x.tuple] = true
			for _, v := range w.tuples.all[x.tuple] {
				e.mapValue(v)
			}
		}
		e.mapValue(x.frame)
		e.mapValue(x.result)
	}
	for i := range w.sites {
		s := &w.sites[i]
		if f := w.funs.all[s.fun]; !funs[s.fun] {
			funs[s.fun] = true
			for j := range f.Params {
				f.Params[j].Type = e.final(f.Params[j].Type)
			}
		}
		of(&wrote{s.tuple, s.frame, s.result})
		for _, v := range w.valuesAt(s) {
			if v != nil {
				of(v)
			}
		}
	}
	var again interned[*Value]
	e.ranks = make([]int, len(w.values.all))
	for i, v := range w.values.all {
		key, _ := appendValue(nil, v, func(s string) uint64 { return uint64(w.text(s)) }, func(t TypeID) uint64 { return uint64(t) })
		e.ranks[i] = int(again.add(key, func() *Value { return v }))
	}
	e.values = again.all
}

func (e *encoder) mapValue(i int32) {
	if e.mapped[i] {
		return
	}
	e.mapped[i] = true
	v := e.w.values.all[i]
	if v.Own {
		v.Type = e.final(v.Type)
	}
	for p := &v.Pointee; *p != nil; p = &(*p).Pointee {
		c := **p
		c.Type = e.final(c.Type)
		*p = &c
	}
}

// look is what a function looks like but for its parameters; ordinal tells apart those of a block that look the same.
type look struct {
	name, qualified, declFile string
	declLine, ordinal         int
}

func lookOf(f *Function, ordinal int) look {
	return look{f.Name, f.Qualified, f.DeclFile, f.DeclLine, ordinal}
}

// whole is a look, by its number, with parameters.
type whole struct {
	look   int
	params string
}

// blocks makes blocks of sites: the trees of what is inlined into each function.
func (e *encoder) blocks() error {
	w := e.w
	known := make(map[whole]*fun, len(w.funs.all))
	bases := make([]*fun, 1, len(w.funs.all)+1) // by look
	lookIDs := make(map[look]int, len(w.funs.all))
	numberOf := func(f *Function, ordinal int) int {
		key := lookOf(f, ordinal)
		id := lookIDs[key]
		if id == 0 {
			id = len(bases)
			lookIDs[key], bases = id, append(bases, nil)
		}
		return id
	}
	var params []byte
	function := func(f *Function, ordinal int) *fun {
		key := numberOf(f, ordinal)
		params = params[:0]
		for i := range f.Params {
			params = binary.AppendUvarint(binary.AppendUvarint(params, uint64(w.text(f.Params[i].Name))), uint64(f.Params[i].Type))
		}
		whole := whole{key, string(params)}
		x := known[whole]
		if x == nil {
			x = &fun{Function: f}
			known[whole] = x
			if b := bases[key]; b != nil {
				x.base = b
			} else {
				bases[key] = x
			}
		}
		return x
	}
	type twin struct {
		fun     int32
		ordinal int
	}
	first := make([]*fun, len(w.funs.all)) // what function returns for the ordinal 0, as most have
	found := make(map[twin]*fun)           // and for others
	looks := make([]int, len(w.funs.all))  // numbers, from 1, of what functions look like but for their parameters
	type numbers struct {
		of []uint64
		in int // the block's
	}
	var ofs []numbers // of a block, by looks: numbers of functions that look the same
	var room []node   // of a block whose size is not known yet
	for i := 0; i < len(w.sites); {
		b := block{room[:0]}
		in := w.sites[i].in
		var stack []int32 // nodes around the next one
		number := len(e.blockList) + 1
		for ; i < len(w.sites) && w.sites[i].in == in; i++ {
			s := &w.sites[i]
			f := w.funs.all[s.fun]
			look := looks[s.fun]
			if look == 0 {
				look = numberOf(f, 0)
				looks[s.fun] = look
			}
			if look >= len(ofs) {
				ofs = append(ofs, make([]numbers, len(bases)-len(ofs))...)
			}
			same := &ofs[look]
			if same.in != number {
				same.of, same.in = same.of[:0], number
			}
			ordinal := slices.Index(same.of, s.of)
			if ordinal < 0 {
				ordinal = len(same.of)
				same.of = append(same.of, s.of)
			}
			x := first[s.fun]
			if ordinal > 0 {
				x = found[twin{s.fun, ordinal}]
			}
			if x == nil {
				x = function(f, ordinal)
				if ordinal == 0 {
					first[s.fun] = x
				} else {
					found[twin{s.fun, ordinal}] = x
				}
			}
			n := node{s: s, f: x, parent: -1, file: s.callFile, line: s.callLine}
			if !s.inline {
				if len(b.nodes) > 0 {
					return fmt.Errorf("the function at %#x begins in the middle of another", s.addr)
				}
				stack = append(stack[:0], 0)
				b.nodes = append(b.nodes, n)
				continue
			}
			stack = e.enclose(&b, stack, s.chain, function)
			if len(stack) > maxNesting {
				return fmt.Errorf("inlined bodies at %#x are nested more than %d deep", s.addr, maxNesting)
			}
			n.parent, n.depth = stack[len(stack)-1], int32(len(stack))
			stack = append(stack, int32(len(b.nodes)))
			b.nodes = append(b.nodes, n)
		}
		if len(b.nodes) > maxNodes {
			return fmt.Errorf("%d bodies are inlined into the function at %#x, and a pack has room for %d", len(b.nodes), b.base(), maxNodes)
		}
		room = b.nodes
		e.blockList = append(e.blockList, block{slices.Clone(b.nodes)})
	}
	for i := range e.blockList {
		b := &e.blockList[i]
		for j := range b.nodes {
			n := &b.nodes[j]
			if l := n.f.blocks; len(l) == 0 || l[len(l)-1] != int32(i) {
				n.f.blocks = append(l, int32(i))
			}
			if n.parent < 0 {
				n.f.rooted++
				continue
			}
			p := b.nodes[n.parent].f
			x := edge{n.f, n.line}
			at := p.edge(x)
			if at < 0 {
				at = p.add(x)
				n.f.parents = n.f.parents || n.f.parent != nil && n.f.parent != p
				n.f.parent = p
			}
			n.edge = int32(at)
		}
	}
	e.numberFunctions()
	for _, f := range e.funs {
		f.edgeOf = nil
	}
	return nil
}

// maxNesting bounds how deep inlined bodies are nested.
const maxNesting = 512

// enclose returns the nodes that enclose a site with a chain of callers, innermost last. Those that are not there are made.
func (e *encoder) enclose(b *block, stack []int32, at int32, function func(*Function, int) *fun) []int32 {
	w := e.w
	var callers []*chain // innermost first
	for ; at >= 0; at = w.chains.all[at].next {
		callers = append(callers, &w.chains.all[at])
	}
	same := 0
	for ; same < min(len(stack), len(callers)); same++ {
		c := callers[len(callers)-1-same]
		n := &b.nodes[stack[same]]
		if n.f.Name != w.strings.all[c.function] || n.f.Qualified != w.strings.all[c.qualified] || n.file != c.file || n.line != c.line {
			break
		}
	}
	stack = stack[:same]
	for ; same < len(callers); same++ {
		c := callers[len(callers)-1-same]
		f := function(&Function{Name: w.strings.all[c.function], Qualified: w.strings.all[c.qualified]}, 0)
		n := node{f: f, parent: -1, depth: int32(same), file: c.file, line: c.line}
		if same > 0 {
			n.parent = stack[same-1]
		}
		stack = append(stack, int32(len(b.nodes)))
		b.nodes = append(b.nodes, n)
	}
	return stack
}

// numberFunctions gives functions their ids: first those that are roots of blocks, in the order of the blocks, then others in the
// order in which functions before them name them. So what is named for the first time needs no number.
func (e *encoder) numberFunctions() {
	give := func(f *fun) {
		if !f.given {
			f.given, f.id = true, len(e.funs)
			e.funs = append(e.funs, f)
		}
	}
	for i := range e.blockList {
		f := e.blockList[i].nodes[0].f
		f.root = true
		give(f)
	}
	e.roots = len(e.funs)
	for i := 0; i < len(e.funs); i++ {
		for _, x := range e.funs[i].edges {
			give(x.to)
		}
	}
	for _, f := range e.funs {
		switch {
		case f.root:
			f.derived = f.rooted == 1 && len(f.blocks) == 1
		default:
			f.derived = f.parent != nil && f.parent != f && !f.parents
		}
	}
}

// rankAll sorts what sites share by how often they do.
func (e *encoder) rankAll() error {
	w := e.w
	// Values, by how many parameters have them.
	e.counts = make([]int, len(e.values))
	tupleKey := func(list []int32) string {
		var k []byte
		for _, v := range list {
			k = binary.AppendUvarint(k, uint64(e.ranks[v]))
		}
		return string(k)
	}
	each := func(f func(n *node)) {
		for i := range e.blockList {
			for j := range e.blockList[i].nodes {
				if n := &e.blockList[i].nodes[j]; n.s != nil {
					f(n)
				}
			}
		}
	}
	// Lists of values that were told apart by the numbers of types can be equal by now.
	same := make([]int, len(w.tuples.all))
	first := make(map[string]int)
	for i, list := range w.tuples.all {
		k := tupleKey(list)
		if _, known := first[k]; !known {
			first[k] = i
		}
		same[i] = first[k]
	}
	uses := make([]int, len(same))
	var inOrder []int
	each(func(n *node) {
		t := same[n.s.tuple]
		if uses[t]++; uses[t] == 1 {
			inOrder = append(inOrder, t)
		}
		for _, v := range w.tuples.all[t] {
			e.counts[e.ranks[v]]++
		}
	})
	order := make([]int, len(e.values))
	keys := make([][]byte, len(e.values))
	for i := range order {
		order[i] = i
		var err error
		if keys[i], err = e.appendValue(nil, e.values[i]); err != nil {
			return err
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(e.counts[b], e.counts[a]), slices.Compare(keys[a], keys[b]))
	})
	rankOf := make([]int, len(order))
	sorted := make([]*Value, len(order))
	for i, v := range order {
		rankOf[v], sorted[i] = i, e.values[v]
	}
	e.values = sorted
	for i := range e.ranks {
		e.ranks[i] = rankOf[e.ranks[i]]
	}
	radix.By(inOrder, func(a, b *int) int { return cmp.Compare(uses[*b], uses[*a]) })
	e.lists = make([][]int, len(same))
	tupleRank := make([]int32, len(same))
	for _, t := range inOrder {
		e.lists[t], tupleRank[t] = e.list(w.tuples.all[t]), -1
		if uses[t] > 1 {
			tupleRank[t] = int32(len(e.tuples))
			e.tuples = append(e.tuples, e.lists[t])
		}
	}
	frames, results := make(map[int]int), make(map[int]int)
	each(func(n *node) {
		n.list = int32(same[n.s.tuple])
		n.tuple = tupleRank[n.list]
		n.frame, n.result = int32(e.ranks[n.s.frame]), int32(e.ranks[n.s.result])
		frames[int(n.frame)]++
		results[int(n.result)]++
		for _, v := range w.valuesAt(n.s) {
			if v != nil {
				frames[e.ranks[v.frame]]++
				results[e.ranks[v.result]]++
			}
		}
	})
	e.frames, e.results = byCount(frames), byCount(results)
	e.frameRank, e.resultRank = inverse(e.frames), inverse(e.results)
	each(func(n *node) {
		n.frame, n.result = int32(e.frameRank[int(n.frame)]), int32(e.resultRank[int(n.result)])
		n.f.count(n.result)
	})
	for _, f := range e.funs {
		if len(f.results) > 0 {
			most := slices.MinFunc(f.results, func(a, b counted) int { return cmp.Or(cmp.Compare(b.nodes, a.nodes), cmp.Compare(a.rank, b.rank)) })
			f.result = int(most.rank)
		}
	}
	return nil
}

func (e *encoder) list(values []int32) []int {
	out := make([]int, len(values))
	for i, v := range values {
		out[i] = e.ranks[v]
	}
	return out
}

// byCount returns keys, those with the highest count first.
func byCount(m map[int]int) []int {
	out := make([]int, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b int) int { return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b)) })
	return out
}

func inverse(l []int) map[int]int {
	out := make(map[int]int, len(l))
	for i, v := range l {
		out[v] = i
	}
	return out
}

// rankTexts sorts texts: names of functions are a table of their own.
func (e *encoder) rankTexts() {
	e.nameIDs, e.textIDs = make(map[string]int), make(map[string]int)
	for _, f := range e.funs {
		if _, known := e.nameIDs[f.Name]; !known {
			e.nameIDs[f.Name] = 0
			e.names = append(e.names, f.Name)
		}
	}
	for _, t := range e.w.strings.all {
		if _, name := e.nameIDs[t]; !name {
			e.texts = append(e.texts, t)
		}
	}
	slices.Sort(e.names)
	slices.Sort(e.texts)
	for i, n := range e.names {
		e.nameIDs[n] = i
	}
	for i, t := range e.texts {
		e.textIDs[t] = i
	}
}

// text returns the number of a text: of a function's name, or of another one.
func (e *encoder) text(s string) uint64 {
	if i, ok := e.nameIDs[s]; ok {
		return uint64(i)<<1 | 1
	}
	return uint64(e.textIDs[s]) << 1
}

func (e *encoder) appendValue(b []byte, v *Value) ([]byte, error) {
	return appendValue(b, v, e.text, func(t TypeID) uint64 { return uint64(t) })
}
