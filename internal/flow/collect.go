package flow

import "github.com/bpfprologue/bpfprologue/internal/radix"

// The ways in and out, once what comes to each block is known.

// collect adds the ways in and out of a block.
func (s *Solver) collect(n int32, r *Runs) {
	b := &s.g.Blocks[n]
	if s.in[n]|s.late[n] == 0 {
		return
	}
	now := s.enter(n)
	if s.in[n]&away != 0 && now&away == 0 {
		r.Out = s.gone(r.Out, n)
	}
	// Where paths meet of which only some were in the body, the run ends before.
	met := now&inside != 0 && now != inside && s.drain(n)
	if met {
		r.Out = s.edgesOut(r.Out, n)
		now &^= inside
	}
	heads := s.heads(n)
	for i, m := range s.of(n) {
		if i == heads {
			now = now&^unsure | s.late[n]
		}
		begins := m.Kind.begins()
		r.Joined = r.Joined || begins != 0 && now&twin&^begins != 0
		switch {
		case now&begins != 0:
			r.In = s.way(r.In, n, i, now, begins, m)
		case begins == 0 && now&inside != 0 && m.Kind != MarkTwin && (m.Kind != MarkAway || !s.comesBack(n, i)):
			out := s.end(n, m)
			out.Again = now != inside
			r.Out = append(r.Out, out)
		}
		now = s.change(n, i, m.Kind, now)
	}
	if len(s.of(n)) == heads {
		now = now&^unsure | s.late[n]
	}
	if now&inside == 0 {
		return
	}
	switch s.g.Insns[b.Last-1].Kind {
	case Last:
		r.Ends++
		fallthrough
	case Leave:
		r.Out = append(r.Out, Way{Insn: b.Last - 1, Probe: b.Last - 1, View: LastView, Again: now != inside})
	case Quit:
		r.Out = append(r.Out, Way{Insn: b.Last - 1, Probe: b.Last - 1, View: LastView, Again: true})
	case Halt:
		r.Ends++
	}
}

// drain reports whether nothing of the body runs from a block's beginning on before it ends.
func (s *Solver) drain(n int32) bool {
	if s.drained {
		return s.drains[n]
	}
	s.drained = true
	g := s.g
	s.drains = zeros(s.drains, len(g.Blocks))
	for i := range s.drains {
		s.drains[i] = true
	}
	work := s.work[:0]
	for i := range g.Blocks {
		if m := s.of(int32(i)); len(m) > 0 && (m[0].Kind.begins() != 0 || m[0].Kind == MarkTwin) {
			s.drains[i] = false
			work = append(work, int32(i))
		}
	}
	for len(work) > 0 {
		to := work[len(work)-1]
		work = work[:len(work)-1]
		for _, p := range g.preds[to] {
			if s.drains[p] && len(s.of(p)) == 0 {
				s.drains[p] = false
				work = append(work, p)
			}
		}
	}
	s.work = work
	return s.drains[n]
}

// meets reports whether paths meet at a block of which only some were in the body, which has
// ended there.
func (s *Solver) meets(n int32) bool {
	return s.in[n]&inside != 0 && s.in[n] != inside && s.drain(n)
}

// edgesOut adds the ways out before a block where paths meet: at the last instructions of the
// blocks before it that are only reached in the body, if they lead to nowhere else.
func (s *Solver) edgesOut(out []Way, n int32) []Way {
	at := s.past(n, s.g.Blocks[n].First)
	unsure := Way{Insn: at, Probe: at, Again: true}
	edges := out
	for _, p := range s.g.preds[n] {
		switch {
		case s.along(p, n)&inside == 0, s.meets(p) && len(s.of(p)) == 0:
			continue // it was not in the body, or the way out is before it
		case s.along(p, n) != inside:
			return append(out, unsure)
		}
		for _, to := range s.g.Blocks[p].Succs {
			if !s.meets(to) {
				return append(out, unsure)
			}
		}
		last := s.last(p)
		edges = append(edges, Way{Insn: last, View: LastView, Probe: last})
	}
	return edges
}

// gone adds the ways out before a block from which execution that is away does not come back.
func (s *Solver) gone(out []Way, n int32) []Way {
	at := s.past(n, s.g.Blocks[n].First)
	if s.in[n] == away {
		return append(out, Way{Insn: at, Probe: at})
	}
	edges := out
	for _, p := range s.g.preds[n] {
		switch {
		case s.along(p, n)&away == 0:
			continue
		case s.along(p, n) != away || len(s.g.Blocks[p].Succs) != 1:
			return append(out, Way{Insn: at, Probe: at, Again: true})
		}
		last := s.last(p)
		edges = append(edges, Way{Insn: last, View: LastView, Probe: last})
	}
	return edges
}

// LastView is the view of a way out that is after everything at its instruction's address.
const LastView = 1<<32 - 1

// way adds the ways in at a mark of a block, which has a number among the block's. States of blocks before it meet at the first one.
func (s *Solver) way(out []Way, n int32, mark int, now, begins state, m Mark) []Way {
	at := Way{Insn: m.Insn, View: m.View, Probe: m.Insn}
	others := now&^begins != 0 || m.Kind == MarkPerhaps
	if !others && (mark >= s.heads(n) || s.late[n] == 0) {
		return append(out, at)
	}
	at.Again = true
	// Where a branch of the body leads to the address of the way, it may be a loop of the body or
	// of its caller.
	if mark > 0 && others || m.Kind == MarkPerhaps || n == s.g.entry || now&(turning|unsure) != 0 {
		return append(out, at)
	}
	edges := out
	var before []int32
	for _, p := range s.g.preds[n] {
		along, _ := s.reached(p, n)
		if along == 0 || mark == 0 && along&begins == 0 {
			continue
		}
		last := s.last(p)
		kind := s.g.Insns[last].Kind
		if mark == 0 && along&^begins != 0 || len(s.g.Blocks[p].Succs) != 1 || kind != Jump && kind != Nop && kind != Plain ||
			!s.idle(s.g.Blocks[n].First, m.Insn) {
			return append(out, at)
		}
		before = append(before, last)
		if kind != Plain {
			edges = append(edges, Way{Insn: m.Insn, View: m.View, Probe: last})
		}
	}
	if len(edges)-len(out) < len(before) {
		at.Before = before
		return append(out, at)
	}
	return edges
}

// end returns the way out at a mark of a block: there, or else at the instruction before it.
func (s *Solver) end(n int32, m Mark) Way {
	at := s.past(n, m.Insn)
	switch {
	case s.refused(at) && m.Insn > s.g.Blocks[n].First:
		return Way{Insn: m.Insn - 1, View: LastView, Probe: m.Insn - 1}
	case at == m.Insn:
		return Way{Insn: at, View: m.View, Probe: at}
	}
	return Way{Insn: at, Probe: at}
}

// past returns the first instruction of a block from one on that uprobes do not refuse, or the
// block's last one.
func (s *Solver) past(n, at int32) int32 {
	for at+1 < s.g.Blocks[n].Last && s.refused(at) {
		at++
	}
	return at
}

// last returns the last instruction of a block that uprobes do not refuse, or the block's first.
func (s *Solver) last(n int32) int32 {
	b := &s.g.Blocks[n]
	at := b.Last - 1
	for at > b.First && s.refused(at) {
		at--
	}
	return at
}

// refused reports whether an instruction does nothing and is no place for a uprobe.
func (s *Solver) refused(at int32) bool {
	return s.g.refuses != nil && s.g.Insns[at].Kind == Nop && s.g.refuses(s.g.Bytes(at))
}

// idle reports whether nothing happens from one instruction to another.
func (s *Solver) idle(from, to int32) bool {
	for ; from < to; from++ {
		if s.g.Insns[from].Kind != Nop {
			return false
		}
	}
	return true
}

// merge sorts ways and leaves one of several at an instruction.
func merge(ways []Way) []Way {
	ways = radix.Sort(ways, func(w *Way) uint64 { return uint64(w.Insn)<<32 | uint64(w.View) })
	ways = radix.Sort(ways, func(w *Way) uint64 { return uint64(w.Probe) })
	out := ways[:0]
	for _, w := range ways {
		if n := len(out); n > 0 && out[n-1].Probe == w.Probe {
			out[n-1].Again = out[n-1].Again || w.Again
			continue
		}
		out = append(out, w)
	}
	return out
}
