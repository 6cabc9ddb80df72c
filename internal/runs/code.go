package runs

import (
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/motion"
)

// Code is the code of one function, in which the runs of bodies are found. It is not for concurrent use.
type Code struct {
	motion.Rules
	solver *flow.Solver
	marks  []flow.Mark // memory of statements
	blocks []rowRun    // of the statements
	joins  map[[2]int32]flow.Join

	ends     map[body.Text]map[uint64]bool // see endsOf
	nearby   []int32                       // memory of nearTwins, which is of nearbyOf
	nearbyOf *body.Twins
	sameText map[body.Function][]int32 // bodies, by function; see kinOf
	begins   map[int32][]int32         // see beginsOf
}

// rowRun is a run of statements of one block: where it ends, and the bodies that they belong to.
type rowRun struct {
	first, end  int32 // in Code.Statements
	least, most int32
	last        uint64 // address of the last one
}

// Follow follows the function that a record is, or is inlined into.
func Follow(u *body.Unit, rec int32) (*Code, error) {
	c := new(Code)
	return c, c.Follow(u, rec)
}

// Follow is the function Follow in the memory of the code of another function, which is not used any more.
func (c *Code) Follow(u *body.Unit, rec int32) error {
	code, solver := c.Code, c.solver
	if code == nil {
		code = new(body.Code)
	}
	if solver == nil {
		solver = new(flow.Solver)
	}
	*c = Code{Rules: motion.Of(code), marks: c.marks[:0], blocks: c.blocks[:0]}
	if _, err := u.CodeIn(code, rec); err != nil {
		*c = Code{} // what it has is not all: it is no function's
		return err
	}
	if c.Why != "" {
		return nil
	}
	c.solver = c.Graph.SolverIn(solver)
	c.readRuns()
	if c.Marked() {
		c.joins = c.Joins()
		c.solver.SetJoins(c.joins)
	}
	return nil
}

// readRuns finds the runs of statements.
func (c *Code) readRuns() {
	c.blocks = c.blocks[:0]
	for k := 0; k < len(c.Statements); {
		first := &c.Statements[k]
		run := rowRun{first: int32(k), least: first.Own, most: first.Own}
		for ; k < len(c.Statements) && c.Statements[k].Block == first.Block; k++ {
			own := c.Statements[k].Own
			run.least, run.most = min(run.least, own), max(run.most, own)
		}
		run.end, run.last = int32(k), c.Statements[k-1].Addr
		c.blocks = append(c.blocks, run)
	}
}
