package resolve

import (
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/witness"
)

// Shared is what the evaluators of one goroutine know of the unit, and of the function out of line, that they were asked about last: the ways
// of one site, and neighbours, ask the same. The zero value is ready to use.
type Shared struct {
	facts  witness.Facts
	code   *body.Code // see codeOf
	codeIs markedOf
	// large is the code of the function that took longest to follow so far, while code is that of another one.
	large   *body.Code
	largeIs markedOf
	// instructions are those of a function, without its statements.
	instructions    *body.Code
	instructionsAre markedOf
	// computing is a function whose code computes addresses from a register: see body.Unit.StoresAll.
	computing     markedOf
	computingFrom uint64
	frames        dw.CFARules
}

// markedOf is a function, or an inlined body.
type markedOf struct {
	u   *entries.Unit
	rec int32
}

// Share makes an evaluator use what others know.
func (ev *Evaluator) Share(with *Shared) { ev.shared = with }

// Share is Evaluator.Share for parameters.
func (r *Params) Share(with *Shared) { r.ev.Share(with) }

// memory returns what the evaluator shares.
func (ev *Evaluator) memory() *Shared {
	if ev.shared == nil {
		ev.shared = new(Shared)
	}
	return ev.shared
}

// tableEdges is how many edges of indirect jumps a function has whose code is kept while others are asked about: an interpreter with computed gotos has thousands, which
// take the longest to follow, and a hundred bodies are inlined into it at hundreds of places.
const tableEdges = 1 << 9

func tabled(c *body.Code) int {
	if c == nil || c.Graph == nil {
		return 0
	}
	return c.Graph.TableEdges()
}

// codeOf returns the code of the function that has a site: mostly the next site's too.
func (ev *Evaluator) codeOf(s *entries.Spot) (*body.Code, error) {
	k, of := ev.memory(), markedOf{s.U, s.U.Body.Outermost(s.Rec)}
	if k.code != nil && k.codeIs == of {
		return k.code, nil
	}
	is := k.large != nil && k.largeIs == of
	if is || tabled(k.code) >= max(tableEdges, tabled(k.large)) {
		k.code, k.codeIs, k.large, k.largeIs = k.large, k.largeIs, k.code, k.codeIs
	}
	if is {
		return k.code, nil
	}
	if k.code == nil {
		k.code = new(body.Code)
	}
	c, err := s.U.Body.CodeIn(k.code, s.Rec)
	k.code, k.codeIs = c, of
	return c, err
}

// instructionsOf is codeOf for what instructions say without statements.
func (ev *Evaluator) instructionsOf(s *entries.Spot) (*body.Code, error) {
	k, of := ev.memory(), markedOf{s.U, s.U.Body.Outermost(s.Rec)}
	switch {
	case k.code != nil && k.codeIs == of:
		return k.code, nil
	case k.large != nil && k.largeIs == of:
		return k.large, nil
	case k.instructions != nil && k.instructionsAre == of:
		return k.instructions, nil
	}
	if k.instructions == nil {
		k.instructions = new(body.Code)
	}
	c, err := s.U.Body.InstructionsIn(k.instructions, s.Rec)
	k.instructions, k.instructionsAre = c, of
	return c, err
}
