package tracer

import (
	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/internal/ending"
	"github.com/bpfprologue/bpfprologue/plan"
)

// finish writes the condition on a run that ends. R9 is what was stored when it began, R8 the record and R7 err of where it ends;
// R0 to R5 are used.
type finish struct {
	*writer
	span     *plan.Span
	begins   bool // the run begins: what is fetched then is in the record
	duration int  // where it is on the stack
	missing  int  // where the bits are, from R9, of what was not fetched when the run began
	values   int  // where that begins which was fetched then
}

// condition jumps to a label if one of some parts of the condition does not hold, or if it cannot be computed.
func (w *finish) condition(parts []*ending.Node, not, unknown string) {
	for _, n := range parts {
		holds, missing := w.label(), unknown
		if w.span.Definition.Options.Pass {
			missing = holds
		}
		w.branch(n, holds, not, missing)
		w.here(holds)
	}
}

// branch goes on at one of three labels.
func (w *finish) branch(n *ending.Node, yes, no, missing string) {
	switch n.Op {
	case "!":
		w.branch(n.A, no, yes, missing)
		return
	case "&&", "||":
		next := w.label()
		if n.Op == "&&" {
			w.branch(n.A, next, no, missing)
		} else {
			w.branch(n.A, yes, next, missing)
		}
		w.here(next)
		w.branch(n.B, yes, no, missing)
		return
	case "":
		w.load(asm.R1, n, missing)
		w.add(asm.JEq.Imm(asm.R1, 0, no), asm.Ja.Label(yes))
		return
	}
	w.load(asm.R1, n.A, missing)
	w.load(asm.R2, n.B, missing)
	size, signed := n.Common()
	if size == 4 && !signed {
		for _, r := range []asm.Register{asm.R1, asm.R2} {
			w.add(asm.LSh.Imm(r, 32), asm.RSh.Imm(r, 32))
		}
	}
	jump := map[bool]map[string]asm.JumpOp{
		false: {"==": asm.JEq, "!=": asm.JNE, "<": asm.JLT, "<=": asm.JLE, ">": asm.JGT, ">=": asm.JGE},
		true:  {"==": asm.JEq, "!=": asm.JNE, "<": asm.JSLT, "<=": asm.JSLE, ">": asm.JSGT, ">=": asm.JSGE},
	}[signed][n.Op]
	w.add(jump.Reg(asm.R1, asm.R2, yes), asm.Ja.Label(no))
}

// load loads an operand, or jumps to a label if it was not fetched.
func (w *finish) load(to asm.Register, n *ending.Node, missing string) {
	bit := int32(n.N)
	at := n.Operand
	if w.begins {
		at = ending.AtEnd // is in the record of this place
	}
	switch at {
	case ending.Number:
		w.add(asm.LoadImm(to, int64(n.N), asm.DWord))
	case ending.Duration:
		w.add(asm.LoadMem(to, asm.RFP, int16(w.duration), asm.DWord))
	case ending.AtBegin:
		w.add(asm.LoadMem(asm.R0, asm.R9, int16(w.missing), asm.DWord), asm.RSh.Imm(asm.R0, bit), asm.And.Imm(asm.R0, 1), asm.JNE.Imm(asm.R0, 0, missing),
			asm.LoadMem(to, asm.R9, int16(w.values+8*int(n.N)), asm.DWord))
	case ending.AtEnd:
		w.add(asm.Mov.Reg(asm.R0, asm.R7), asm.RSh.Imm(asm.R0, bit), asm.And.Imm(asm.R0, 1), asm.JNE.Imm(asm.R0, 0, missing),
			asm.LoadMem(to, asm.R8, int16(8*n.N), asm.DWord))
	}
}
