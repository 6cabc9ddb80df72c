package body

import (
	"cmp"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/held"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// Code is the machine code of one out-of-line function with everything that was inlined into
// it, followed from its entry.
type Code struct {
	u      *Unit
	texts  *texts // of u; another code's may number files otherwise
	arch   *insn.Arch
	Top    int32 // the function's record
	bodies []body
	ranges []dw.Range // the function's code, by address
	graph  *flow.Graph
	solver *flow.Solver
	Why    string // it could not be followed, or ""
	rows   []dw.Row
	marks  []flow.Mark // memory of statements
	// mayPatch says that it is a kernel's: a NOP may become another instruction.
	mayPatch bool
	// What other functions' codes can use again.
	spare   *flow.Graph
	numbers []int32 // of readBodies
	edges   []edge  // of readRows

	ends          map[text]map[uint64]bool // see endsOf
	twinsIn       []*twins                 // for each body those of its function, if there are several
	nearby        []int32                  // memory of twins.nearby, which is of nearbyOf
	nearbyOf      *twins
	statementRows []statement // by address and view
	ended         []statement // the same of bodies without code there, which end
	firstRows     []int32     // see declaredRows, which are known if
	declaredRead  bool
	runs          []rowRun                 // of statementRows
	anyMerged     bool                     // one of the bodies
	sameText      map[sameFunction][]int32 // bodies, by function; see kinOf
	begins        map[int32][]int32        // see beginsOf
	held          *held.Registers          // see Held
	stored        map[Slot]int64           // see StoredNarrow
	bares         []bool                   // see bare; nil before
	lent          map[int32]int32          // where the pieces end that these instructions are in; see isLent, which are known if
	lentRead      bool
	frame         *frame // see framed
	frameRead     bool
	changes       struct {
		Changes
		read bool
	}
	owner []int32 // for each instruction of the graph: index in bodies of the innermost body that has it
}

// body is the function itself or one inlined instance.
type body struct {
	rec    int32
	parent int32 // index in code.bodies, or -1
	first  int32 // the body's own index
	end    int32 // index after the bodies inside this one
	ranges []dw.Range
	start  uint64 // where the debug information says that it begins
	view   uint64
	viewed bool // the view is known: the start is that of the body's first marker
	live   bool // start is known
	marked bool // it is that of an entry (DW_AT_entry_pc)
	text   text
	call   callPlace
	merged bool // it, or a body around it, is what a compiler merged of several instances
}

// Held returns what the function's registers hold, or nil if its code is not known.
func (c *Code) Held() *held.Registers {
	if c.held == nil && c.graph != nil {
		c.held = held.Of(c.graph, c.arch)
	}
	return c.held
}

// Astray reports whether the code was followed, but for a jump that leads to where it is not known.
func (c *Code) Astray() bool { return c.graph != nil && c.graph.Why != "" }

// body returns the index in bodies of a record's.
func (c *Code) body(rec int32) (i int, ok bool) {
	return slices.BinarySearchFunc(c.bodies, rec, func(b body, r int32) int { return cmp.Compare(b.rec, r) })
}

// callPlace is where an instance is called.
type callPlace struct{ file, line, column uint32 }

// statement is a row of the line table that begins a statement, at an instruction that is
// reached.
type statement struct {
	addr, view uint64
	place      rowPlace
	own        int32 // index in code.bodies of the body that it belongs to
	insn       int32 // in the graph
	past       int32 // the first instruction from there on that is no padding
	block      int32 // of insn
}

// rowPlace is a place in the source, in one body.
type rowPlace struct {
	file, line, column uint32
	own                int32 // index in code.bodies of the innermost body: several may be of one function
}

// rowRun is a run of statements of one block: where it ends, and the bodies that they belong to.
type rowRun struct {
	first, end  int32 // in code.statementRows
	least, most int32
	last        uint64 // address of the last one
}

// edge is that a body begins or ends at a link-time address.
type edge struct {
	addr uint64
	body int32
}

// twins are the bodies of one function in the code of another. Compilers merge equal ends of
// such bodies, and the debug information then assigns them to one: a run of the other ends
// there, and none begins.
type twins struct {
	bodies []int32
	starts map[rowPlace]bool // of the statements at which they begin
	// unmarked are those of bodies whose entries in the debug information have no statement.
	unmarked []int32
}

// sameFunction is equal for bodies of one function. A macro can declare several at one line.
type sameFunction struct {
	text
	root int32
}

// has reports whether a body is this one or inside it.
func (b *body) has(own int32) bool { return own >= b.first && own < b.end }

func (c *Code) functionOf(i int32) sameFunction {
	return sameFunction{c.bodies[i].text, c.u.Recs[c.bodies[i].rec].Root}
}

// placeOf returns the place of an instruction, which has the row.
func (c *Code) placeOf(r *dw.Row, n int32) rowPlace {
	return rowPlace{r.File, r.Line, r.Column, c.owner[n]}
}

// rowAt returns the row that an instruction was compiled for, or nil.
func (c *Code) rowAt(n int32) *dw.Row {
	return dw.RowAt(c.rows, c.graph.Insns[n].Addr)
}

// past returns the first instruction from one on that is no padding.
func (c *Code) past(n int32) int32 {
	insns := c.graph.Insns
	for n+1 < int32(len(insns)) && insns[n].Kind == flow.Nop && insns[n].Addr+uint64(insns[n].Size) == insns[n+1].Addr {
		n++
	}
	return n
}
