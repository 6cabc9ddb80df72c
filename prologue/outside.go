package prologue

import (
	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/internal/references"
)

// Records that do not fit on the stack are in a map, references.RecordMap.
// A prologue takes one that is free: it begins to look at the number of its processor, and sets a mark
// with an atomic exchange, so that a hit inside of another one, or on a processor that has changed
// meanwhile, finds another. Who calls the user's program after the prologue clears the mark. If several
// in a row are taken the program ends with the result 0, and the first word of the map counts that.
const (
	recordTries = 6
	recordBase  = references.RecordBase // points to the record, and 8 bytes after its mark
	recordMark  = 1 << 20
)

// slotAt returns where a slot is: on the stack, or, from recordMark on, in the record outside of it.
func slotAt(slot int) (base asm.Register, off int) {
	if slot >= recordMark {
		return recordBase, slot - recordMark
	}
	return asm.R10, slot
}

// takeRecord sets recordBase to a free record.
func (f *fetcher) takeRecord() {
	var taken label
	f.call(asm.FnGetSmpProcessorId)
	f.reg(asm.Mov, asm.R7, asm.R0)
	for range recordTries {
		f.imm(asm.And, asm.R7, references.RecordSlots-1)
		f.wide(recordBase, recordsMark, references.RecordHead<<32)
		f.reg(asm.Mov, asm.R1, asm.R7)
		f.imm(asm.Mul, asm.R1, int32(8+f.o.RecordBytes))
		f.reg(asm.Add, recordBase, asm.R1)
		f.imm(asm.Mov, asm.R1, 1)
		f.add(opAdd, recordBase, asm.R1, 0, atomicXchg)
		f.jumpImm(asm.JEq, asm.R1, 0, &taken)
		f.imm(asm.Add, asm.R7, 1)
	}
	f.wide(asm.R1, recordsMark, 0)
	f.imm(asm.Mov, asm.R2, 1)
	f.add(opAdd, asm.R1, asm.R2, 0, 0)
	f.end0()
	f.bind(&taken)
	f.imm(asm.Add, recordBase, 8)
}
