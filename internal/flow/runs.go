package flow

import (
	"math"
	"slices"
)

// Way is an instruction at which a run of a body begins, or that follows its end.
type Way struct {
	Insn int32 // the instruction before which it is
	View uint32
	// Probe is the instruction where a probe sees this way and no other. It is Insn, or an
	// instruction before it that only jumps there or does nothing.
	Probe int32
	// Again is set if a probe there also fires without the way being taken: at a way in, for
	// another turn of a loop of the body; at a way out, for execution that was never in the
	// body.
	Again bool
	// Before are the instructions from which alone a way in with Again is entered, the last ones
	// before it. What they change is not as it is at the way.
	Before []int32
}

// Runs is what is known of the runs of one body.
type Runs struct {
	In, Out []Way
	// Ends is how many calls and traps in the body are not returned from.
	Ends int
	// Joined is set if a run of another body of the function may go on in this one.
	Joined bool
}

// Solver finds runs in one graph. It is not for concurrent use.
type Solver struct {
	g       *Graph
	in      []state // before each block
	out     []state
	queued  []bool
	work    []int32
	marks   []Mark
	own     func(insn int32) bool
	drains  []bool
	drained bool                  // drains is known
	late    []state               // behind the marks at the first instruction of each block, on edges that come there
	joins   map[[2]int32]Join     // see SetJoins
	joined  []bool                // the blocks to which they lead
	spans   []int32               // of marks, by block: where they begin
	has     []has                 // what marks each block has
	begins  []int32               // the blocks with marks at which runs begin
	headed  []int32               // how many marks of each block are before its first instruction that is no padding
	firsts  []int32               // that instruction
	back    []bool                // before each block: execution that is away may come back to the body
	turns   map[[2]int32]blockSet // edges between blocks that begin another turn of a loop: its blocks, once needed
	over    map[[2]int32]bool     // such edges that end a run that is away
	exits   []bool                // see Exits
	states  []uint8               // memory of readTurns
	found   Runs                  // memory of Solve
}

// has says what marks a block has: most have none of the body's.
type has uint8

const (
	hasNone  has = iota
	hasExits     // MarkExit alone: what comes in is outside behind them
	hasOthers
)

// Solver returns a solver.
func (g *Graph) Solver() *Solver { return g.SolverIn(new(Solver)) }

// SolverIn makes a solver that of the graph, in the memory of what it was before, and returns it.
func (g *Graph) SolverIn(s *Solver) *Solver {
	n := len(g.Blocks)
	*s = Solver{
		g: g, in: zeros(s.in, n), out: zeros(s.out, n), late: zeros(s.late, n), has: zeros(s.has, n), headed: zeros(s.headed, n), firsts: g.firsts(zeros(s.firsts, n)),
		queued: zeros(s.queued, n), spans: zeros(s.spans, n+1), begins: s.begins, back: zeros(s.back, n), turns: s.turns, over: s.over,
		work: s.work[:0], drains: s.drains[:0], states: zeros(s.states, n), found: s.found,
	}
	if s.turns == nil {
		s.turns, s.over = make(map[[2]int32]blockSet), make(map[[2]int32]bool)
	}
	clear(s.over)
	s.readTurns()
	return s
}

// zeros returns n of them, in the memory of others.
func zeros[T any](of []T, n int) []T {
	of = slices.Grow(of[:0], n)[:n]
	clear(of)
	return of
}

// readTurns finds the edges between blocks that lead back to a block on the way to them.
func (s *Solver) readTurns() {
	g, out, states := s.g, s.turns, s.states
	clear(out)
	if g.entry < 0 {
		return
	}
	const (
		fresh = iota
		open
		done
	)
	type visit struct{ block, next int32 }
	path := []visit{{block: g.entry}}
	states[g.entry] = open
	for len(path) > 0 {
		v := &path[len(path)-1]
		succs := g.Blocks[v.block].Succs
		if int(v.next) == len(succs) {
			states[v.block] = done
			path = path[:len(path)-1]
			continue
		}
		to := succs[v.next]
		v.next++
		switch states[to] {
		case fresh:
			states[to] = open
			path = append(path, visit{block: to})
		case open:
			out[[2]int32{v.block, to}] = nil
		}
	}
}

// along returns the states in which execution goes from one block to another.
func (s *Solver) along(from, to int32) state {
	now := s.out[from]
	if now&away != 0 && s.turn(from, to) {
		now = now&^away | outside
	}
	return now
}

// turn reports whether an edge begins another turn of a loop that has code of the body. What is
// away from the body then does not come back: a loop of the body's own has nothing of others.
func (s *Solver) turn(from, to int32) bool {
	e := [2]int32{from, to}
	blocks, is := s.turns[e]
	if !is {
		return false
	}
	over, known := s.over[e]
	if known {
		return over
	}
	if blocks == nil {
		blocks = s.g.loop(from, to)
		s.turns[e] = blocks
	}
	over = slices.ContainsFunc(s.begins, blocks.has)
	s.over[e] = over
	return over
}

// Exits returns for each block whether execution comes to it from a loop that it is not in.
func (s *Solver) Exits() []bool {
	if s.exits != nil {
		return s.exits
	}
	s.exits = make([]bool, len(s.g.Blocks))
	for e, blocks := range s.turns {
		if blocks == nil {
			blocks = s.g.loop(e[0], e[1])
			s.turns[e] = blocks
		}
		for n := range blocks.all {
			for _, to := range s.g.Blocks[n].Succs {
				s.exits[to] = s.exits[to] || !blocks.has(to)
			}
		}
	}
	return s.exits
}

// SetJoins says where edges, by the numbers of their blocks, come to marks, if not before all.
func (s *Solver) SetJoins(joins map[[2]int32]Join) {
	s.joins, s.joined = joins, nil
	if len(joins) > 0 {
		s.joined = make([]bool, len(s.g.Blocks))
	}
	for e := range joins {
		s.joined[e[1]] = true
	}
}

// firsts sets out to the first instruction of each block that is no padding, or its last one.
func (g *Graph) firsts(out []int32) []int32 {
	for n := range out {
		b := &g.Blocks[n]
		at := b.First
		for at+1 < b.Last && g.Insns[at].Kind == Nop {
			at++
		}
		out[n] = at
	}
	return out
}

// heads returns how many marks of a block are before its first instruction that is no padding.
func (s *Solver) heads(n int32) int { return int(s.headed[n]) }

// reached returns the states that an edge brings before the marks of a block, and behind those at its first instruction.
func (s *Solver) reached(from, to int32) (first, late state) {
	now := s.along(from, to)
	if now == 0 {
		return 0, 0
	}
	if s.headed[to] == 0 {
		return now, 0
	}
	heads := s.of(to)[:s.headed[to]]
	join := JoinFirst
	if s.joined != nil && s.joined[to] {
		join = s.joins[[2]int32{from, to}]
	}
	if now&inside != 0 && join == JoinFirst && s.fromBody(from) {
		switch first, again := begin(heads); {
		case again > 0 && first < again:
			join = JoinUnsure
		case first > 0:
			return now&^inside | turning, 0
		}
	}
	switch join {
	case JoinLast:
		last := heads[len(heads)-1].Kind
		if last.begins() == 0 || now&outside == 0 {
			return 0, now.behind(last)
		}
		// What comes from elsewhere may be equal code of another function: the way is marked.
		return outside | unsure, (now &^ outside).behind(last)
	case JoinUnsure:
		return now | unsure, now.behind(heads[len(heads)-1].Kind)
	}
	return now, 0
}

// fromBody reports whether a block ends with a branch of the body.
func (s *Solver) fromBody(n int32) bool {
	last := s.g.Blocks[n].Last - 1
	k := s.g.Insns[last].Kind
	return s.own != nil && (k == Jump || k == Branch) && s.own(last)
}

// Solve returns the ways in and out for marks, which are sorted by instruction. own, which may be
// nil, reports whether an instruction is in the body.
func (s *Solver) Solve(marks []Mark, own func(insn int32) bool) Runs {
	g := s.g
	var r Runs
	if g.entry < 0 || len(marks) == 0 {
		return r
	}
	s.marks, s.own = marks, own
	s.spread()
	clear(s.over)
	s.findBack()
	clear(s.in)
	clear(s.out)
	clear(s.late)
	s.in[g.entry] = outside
	s.push(g.entry)
	for len(s.work) > 0 {
		n := s.work[len(s.work)-1]
		s.work = s.work[:len(s.work)-1]
		s.queued[n] = false
		after := s.after(n)
		if after == s.out[n] {
			continue
		}
		s.out[n] = after
		for _, to := range g.Blocks[n].Succs {
			reached, late := after, state(0)
			if after != outside && (s.headed[to] != 0 || after&away != 0) || s.joined != nil && s.joined[to] {
				reached, late = s.reached(n, to)
			}
			if s.in[to]|reached != s.in[to] || s.late[to]|late != s.late[to] {
				s.in[to] |= reached
				s.late[to] |= late
				s.push(to)
			}
		}
	}
	s.drained = false
	r.In, r.Out = s.found.In[:0], s.found.Out[:0]
	for n := range g.Blocks {
		if s.in[n] != outside || s.has[n] == hasOthers || s.late[n] != 0 {
			s.collect(int32(n), &r)
		}
	}
	s.found.In, s.found.Out = r.In, r.Out
	r.In, r.Out = slices.Clone(merge(r.In)), slices.Clone(merge(r.Out))
	return r
}

// spread finds the marks of each block.
func (s *Solver) spread() {
	m, marks, blocks := 0, s.marks, s.g.Blocks
	s.begins = s.begins[:0]
	for ; m < len(marks) && marks[m].Insn < blocks[0].First; m++ {
	}
	for n := range blocks {
		has, heads, next := hasNone, int32(0), int32(math.MaxInt32)
		if n+1 < len(blocks) {
			next = blocks[n+1].First
		}
		s.spans[n] = int32(m)
		for ; m < len(marks) && marks[m].Insn < next; m++ {
			if marks[m].Insn <= s.firsts[n] {
				heads++
			}
			if k := marks[m].Kind; k != MarkExit {
				if has = hasOthers; k.begins() != 0 && (len(s.begins) == 0 || s.begins[len(s.begins)-1] != int32(n)) {
					s.begins = append(s.begins, int32(n))
				}
			} else {
				has = max(has, hasExits)
			}
		}
		s.headed[n], s.has[n] = heads, has
	}
	s.spans[len(blocks)] = int32(len(marks))
}

// after returns the states behind a block.
func (s *Solver) after(n int32) state {
	now := s.in[n]
	if now&^(outside|inside) == 0 && s.late[n] == 0 && now != 0 && s.has[n] != hasOthers {
		if s.has[n] == hasExits {
			return outside
		}
		return now
	}
	after, of := s.enter(n), s.of(n)
	heads := s.heads(n)
	for i := range heads {
		after = s.change(n, i, of[i].Kind, after)
	}
	after = after&^unsure | s.late[n]
	for i := heads; i < len(of); i++ {
		after = s.change(n, i, of[i].Kind, after)
	}
	return after
}

func (s *Solver) push(n int32) {
	if !s.queued[n] {
		s.queued[n] = true
		s.work = append(s.work, n)
	}
}

// of returns the marks of a block.
func (s *Solver) of(n int32) []Mark { return s.marks[s.spans[n]:s.spans[n+1]] }

// findBack finds the blocks from which execution that is away from the body may come back to it,
// rather than begin another run or end.
func (s *Solver) findBack() {
	clear(s.back)
	work := s.work[:0]
	for n := range s.g.Blocks {
		if s.has[n] != hasOthers {
			continue
		}
		if back, decided := decided(s.of(int32(n))); decided && back {
			s.back[n] = true
			work = append(work, int32(n))
		}
	}
	for len(work) > 0 {
		to := work[len(work)-1]
		work = work[:len(work)-1]
		for _, p := range s.g.preds[to] {
			if s.back[p] || s.has[p] == hasExits || s.turn(p, to) {
				continue
			}
			if _, decided := decided(s.of(p)); !decided {
				s.back[p] = true
				work = append(work, p)
			}
		}
	}
	s.work = work
}

// comesBack reports whether execution may come back to the body after a mark of a block.
func (s *Solver) comesBack(n int32, mark int) bool {
	if back, ok := decided(s.of(n)[mark+1:]); ok {
		return back
	}
	return slices.ContainsFunc(s.g.Blocks[n].Succs, func(to int32) bool { return s.back[to] && !s.turn(n, to) })
}

// enter returns the states at the beginning of a block: what is away and does not come back is
// outside.
func (s *Solver) enter(n int32) state {
	if now := s.in[n]; now&away == 0 || s.back[n] {
		return now
	}
	return s.in[n]&^away | outside
}

// change returns the states after a mark of a block.
func (s *Solver) change(n int32, mark int, k MarkKind, from state) state {
	to := k.change(from)
	if k == MarkAway && to&away != 0 && !s.comesBack(n, mark) {
		to = to&^away | outside
	}
	return to
}
