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
	Unit   *Unit
	texts  *texts // of the unit; another code's may number files otherwise
	Arch   *insn.Arch
	Top    int32 // the function's record
	Bodies []Body
	Ranges []dw.Range // the function's code, by address
	Graph  *flow.Graph
	Why    string // it could not be followed, or ""
	Rows   []dw.Row
	marked bool // see Marked
	// mayPatch says that it is a kernel's: a NOP may become another instruction.
	mayPatch bool
	// What other functions' codes can use again.
	spare   *flow.Graph
	numbers []int32            // of readBodies
	edges   []edge             // of readRows
	first   map[Function]int32 // of readTwins
	extents []dw.Range         // of the bodies
	copied  []dw.Row           // Rows, if they are not the unit's

	twinsIn    []*Twins // for each body those of its function, if there are several
	twinsRead  bool
	Statements []Statement     // by address and view
	Ended      []Statement     // the same of bodies without code there, which end
	AnyMerged  bool            // one of the bodies
	held       *held.Registers // see Held
	stored     map[Slot]int64  // see StoredNarrow
	frame      *frame          // see framed
	frameRead  bool
	changes    struct {
		Changes
		read bool
	}
	Owner []int32 // for each instruction of the graph: index in Bodies of the innermost body that has it
}

// Body is the function itself or one inlined instance.
type Body struct {
	Rec    int32
	Parent int32 // index in Code.Bodies, or -1
	First  int32 // the body's own index
	End    int32 // index after the bodies inside this one
	Ranges []dw.Range
	Start  uint64 // where the debug information says that it begins
	View   uint64
	Viewed bool // the view is known: the start is that of the body's first marker
	Live   bool // Start is known
	Marked bool // it is that of an entry (DW_AT_entry_pc)
	Text   Text
	Call   CallPlace
	Merged bool // it, or a body around it, is what a compiler merged of several instances
}

// EntersFirst reports whether a body begins with its first statement where the debug information says that it is entered: GCC notes
// that, with a view.
func (b *Body) EntersFirst(u *Unit) bool { return b.Marked && b.Live && u.GNU() && u.Views() }

// Held returns what the function's registers hold, or nil if its code is not known.
func (c *Code) Held() *held.Registers {
	if c.held == nil && c.Graph != nil {
		c.held = held.Of(c.Graph, c.Arch)
	}
	return c.held
}

// Astray reports whether the code was followed, but for a jump that leads to where it is not known.
func (c *Code) Astray() bool { return c.Graph != nil && c.Graph.Why != "" }

// BodyOf returns the index in Bodies of a record's.
func (c *Code) BodyOf(rec int32) (i int, ok bool) {
	return slices.BinarySearchFunc(c.Bodies, rec, func(b Body, r int32) int { return cmp.Compare(b.Rec, r) })
}

// CallPlace is where an instance is called.
type CallPlace struct{ File, Line, Column uint32 }

// Statement is a row of the line table that begins a statement, at an instruction that is
// reached.
type Statement struct {
	Addr, View uint64
	Place      Place
	Own        int32 // index in Code.Bodies of the body that it belongs to
	Insn       int32 // in the graph
	Past       int32 // the first instruction from there on that is no padding
	Block      int32 // of insn
}

// Place is a place in the source, in one body.
type Place struct {
	File, Line, Column uint32
	Own                int32 // index in Code.Bodies of the innermost body: several may be of one function
}

// edge is that a body begins or ends at a link-time address.
type edge struct {
	addr uint64
	body int32
}

// Function is equal for bodies of one function. A macro can declare several at one line.
type Function struct {
	Text
	root int32
}

// Has reports whether a body is this one or inside it.
func (b *Body) Has(own int32) bool { return own >= b.First && own < b.End }

// FunctionOf returns what is equal for bodies of the function of one.
func (c *Code) FunctionOf(i int32) Function {
	return Function{c.Bodies[i].Text, c.Unit.Recs[c.Bodies[i].Rec].Root}
}

// PlaceOf returns the place of an instruction, which has the row.
func (c *Code) PlaceOf(r *dw.Row, n int32) Place {
	return Place{r.File, r.Line, r.Column, c.Owner[n]}
}

// RowAt returns the row that an instruction was compiled for, or nil.
func (c *Code) RowAt(n int32) *dw.Row {
	return dw.RowAt(c.Rows, c.Graph.Insns[n].Addr)
}

// Past returns the first instruction from one on that is no padding.
func (c *Code) Past(n int32) int32 {
	insns := c.Graph.Insns
	for n+1 < int32(len(insns)) && insns[n].Kind == flow.Nop && insns[n].Addr+uint64(insns[n].Size) == insns[n+1].Addr {
		n++
	}
	return n
}

// What code does with registers and slots of the frame, over a few instructions.

// Slot is memory at a register, by its DWARF number, plus an offset.
type Slot = insn.Slot

// Registers is a set of registers by their DWARF numbers.
type Registers = insn.Registers

// Reads is what a value depends on: registers by their DWARF numbers, and memory.
type Reads = insn.Writes

// Changes is what the function's instructions change, and nothing that it calls.
type Changes struct {
	Registers Registers
	Calls     bool
	Known     bool // else there may be more
}
