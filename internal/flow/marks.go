package flow

// A run of a body is followed by a small automaton: outside of the body, in it, or away from
// it for a while, in instructions that the compiler moved between its own. Marks at
// instructions change its state. What may be so at an instruction, on any path from the
// function's entry, is a set of states.

// MarkKind says what a mark does.
type MarkKind uint8

const (
	// MarkEnter is where a run of the body begins if none does before.
	MarkEnter MarkKind = iota
	// MarkInside is where the body's code goes on. A run begins there only if execution
	// comes from outside of the body.
	MarkInside
	// MarkExit is where the body has ended.
	MarkExit
	// MarkAway is where execution leaves the body's code, perhaps to come back.
	MarkAway
	// MarkTwin is where another body of the same function begins or goes on. Compilers merge
	// equal ends of bodies: a run of one can end in the code of the other.
	MarkTwin
	// MarkPerhaps is where a run of the body may begin, or begins later.
	MarkPerhaps
)

// Mark is a mark before an instruction. Several marks of one instruction are in order.
type Mark struct {
	Insn int32 // number in Graph.Insns
	Kind MarkKind
	View uint32 // location view
}

// state is a set of states that are possible.
type state uint8

const (
	outside state = 1 << iota
	inside
	away
	// turning is the end of a branch inside the body that leads to where the body begins: to its
	// code, as in a loop of its own, or to what comes before it at the same address.
	turning
	// twin is in another body of the same function: a run there may go on in this one.
	twin
	// merged is in the body's code, which a compiler uses for equal code of another function too: no run.
	merged
	// unsure is not known to come to a block's first instruction before all of the marks there.
	unsure
)

// change returns the states after a mark.
func (k MarkKind) change(from state) state {
	switch {
	case from == 0:
		return 0
	case from&unsure != 0:
		return k.change(from&^unsure) | unsure
	case from&merged != 0 && (k == MarkEnter || k == MarkInside || k == MarkPerhaps):
		return k.change(from&^merged) | merged
	case from&turning != 0:
		after := k.change(from &^ turning)
		switch k {
		case MarkEnter, MarkInside, MarkPerhaps:
			return after | inside
		case MarkExit:
			return after | turning
		case MarkTwin:
			return after | twin
		}
		return after | away
	case k == MarkEnter, k == MarkInside, k == MarkPerhaps:
		return inside
	case k == MarkExit:
		return outside
	case k == MarkTwin:
		return twin
	case from&inside != 0:
		return from&^inside | away
	}
	return from
}

// begins returns the states from which a mark begins a run.
func (k MarkKind) begins() state {
	switch k {
	case MarkEnter, MarkPerhaps:
		return outside | away | twin
	case MarkInside:
		return outside
	}
	return 0
}

// decided reports whether marks say if execution that is away comes back.
func decided(marks []Mark) (back, ok bool) {
	for _, m := range marks {
		if m.Kind != MarkAway {
			return m.Kind == MarkInside || m.Kind == MarkTwin, true
		}
	}
	return false, false
}

// Several marks can be before one instruction: a run that ends with its last code, its caller's statements without code, and the next
// run. Execution that falls through passes them all. A jump may come to any place between them: compilers write its target
// behind marks of the block before.

// Join is where an edge comes to the marks before the first instruction of a block.
type Join uint8

const (
	// JoinFirst is before all of them.
	JoinFirst Join = iota
	// JoinLast is behind them: the jump's own marks before it say the same.
	JoinLast
	// JoinUnsure is at one that is not known.
	JoinUnsure
)

// begin returns the number of the first mark of the body, and that of the first one behind an end of it; they are the same if the body ends
// before it has a mark, and -1 without such a mark.
func begin(marks []Mark) (first, again int) {
	first, again = -1, -1
	ended := false
	for i, m := range marks {
		switch {
		case m.Kind == MarkExit:
			ended = true
		case m.Kind.begins() == 0:
		case first < 0:
			if first = i; ended {
				return first, i
			}
		case ended:
			return first, i
		}
	}
	return first, again
}

// behind returns the states behind marks that are not passed, of which the last one is of a kind.
func (now state) behind(last MarkKind) state {
	switch last {
	case MarkEnter, MarkInside, MarkPerhaps:
		if now&away != 0 {
			now = now&^away | inside
		}
		if now&outside != 0 {
			now = now&^outside | merged
		}
	case MarkTwin:
		if now&outside != 0 {
			now = now&^outside | twin
		}
	}
	return now
}
