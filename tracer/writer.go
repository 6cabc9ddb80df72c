package tracer

import (
	"fmt"

	"github.com/cilium/ebpf/asm"
)

// writer writes instructions with labels.
type writer struct {
	prefix  string // of labels: two writers of one program have different ones
	insns   asm.Instructions
	labels  int
	pending string // the label of the next instruction
}

func (w *writer) add(insns ...asm.Instruction) {
	for _, ins := range insns {
		if w.pending != "" {
			if ins.Symbol() != "" {
				w.insns = append(w.insns, asm.Mov.Reg(asm.R0, asm.R0).WithSymbol(w.pending))
			} else {
				ins = ins.WithSymbol(w.pending)
			}
			w.pending = ""
		}
		w.insns = append(w.insns, ins)
	}
}

// label returns a new label, and here puts one before the next instruction.
func (w *writer) label() string {
	w.labels++
	return fmt.Sprintf("%s_%d", w.prefix, w.labels)
}

func (w *writer) here(label string) {
	if w.pending != "" {
		w.add(asm.Mov.Reg(asm.R0, asm.R0))
	}
	w.pending = label
}

// increment adds 1 to a word in memory.
func (w *writer) increment(r asm.Register, at int) {
	w.add(asm.Mov.Imm(asm.R5, 1), asm.AddAtomic.Mem(r, asm.R5, asm.DWord, int16(at)))
}
