package prologue

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/internal/bpfstack"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/references"
)

// Conditions. A prologue with conditions ends the program with the result 0 before anything is
// fetched, unless all of them are true. They are computed in the order of their cost, so a comparison
// of a register goes before one of memory. One that faults is false, or does not count, as
// Options.IfMissing says. Nothing computed for a condition is kept for an argument.

// conditions lowers the conditions.
func (f *fetcher) conditions() error {
	f.tests = f.tests[:0]
	for i, e := range f.o.If {
		f.lowering.left = maxNodes
		x, err := f.lowering.expr(e)
		if err != nil {
			return fmt.Errorf("condition %d: %w", i+1, err)
		}
		f.tests = append(f.tests, f.lowering.of(x))
	}
	f.reads = f.o.Reads
	for _, n := range f.tests {
		f.helpers += f.asked(n)
	}
	slices.SortStableFunc(f.tests, func(a, b *node) int {
		return cmp.Or(cmp.Compare(f.asked(a), f.asked(b)), cmp.Compare(a.needs, b.needs))
	})
	return nil
}

// emitConditions writes the instructions that end the program unless all conditions hold.
func (f *fetcher) emitConditions() {
	if len(f.tests) == 0 {
		return
	}
	f.pending = note{kind: noteIf}
	if slices.ContainsFunc(f.tests, func(n *node) bool { return n.calls > 0 }) {
		f.saveCtx()
	}
	free := (callerSaved | calleeSaved) &^ setOf(asm.R0, f.ctx)
	var no, missing, yes label
	for i, n := range f.tests {
		last := i == len(f.tests)-1
		var next label
		f.fault = &missing
		if f.o.IfMissing {
			f.fault = &next
		}
		if n.calls > 0 {
			f.readSlot = f.push(8)
		}
		if last && eval.Comparison(n.op) {
			other := *n
			other.op = eval.Inverse(n.op)
			f.unless(&other, asm.R0, free, &yes)
		} else {
			f.unless(n, asm.R0, free, &no)
			if last {
				f.jump(&yes)
			}
		}
		if n.calls > 0 {
			f.pop(8)
		}
		if last {
			yes.from = append(yes.from, next.from...)
		} else {
			f.bind(&next)
		}
	}
	f.bind(&no)
	if !f.o.CountMissing {
		f.bind(&missing)
	} else {
		f.countFalse()
	}
	f.end0()
	if len(missing.from) > 0 {
		f.bind(&missing)
		f.wide(asm.R1, counterMark, 0)
		f.imm(asm.Mov, asm.R2, 1)
		f.add(opAdd, asm.R1, asm.R2, 0, 0)
		f.end0()
	}
	f.bind(&yes)
}

// countFalse counts that a condition did not hold, unless enough were counted.
func (f *fetcher) countFalse() {
	var enough label
	f.wide(asm.R1, counterMark, references.FalseCounter<<32)
	f.load(asm.R2, asm.R1, 0, 8)
	f.jumpImm(asm.JGE, asm.R2, references.MaxFalse, &enough)
	f.imm(asm.Add, asm.R2, 1)
	f.add(uint8(asm.StoreMemOp(asm.DWord)), asm.R1, asm.R2, 0, 0)
	f.bind(&enough)
}

// saveCtx keeps ctx where calls do not destroy it.
func (f *fetcher) saveCtx() {
	if f.ctx == asm.R1 {
		f.reg(asm.Mov, asm.R6, asm.R1)
		f.ctx = asm.R6
	}
}

// restoreCtx puts ctx where the user's program gets it.
func (f *fetcher) restoreCtx() {
	if f.ctx != asm.R1 {
		f.reg(asm.Mov, asm.R1, f.ctx)
	}
}

// end0 ends the program with the result 0.
func (f *fetcher) end0() {
	f.imm(asm.Mov, asm.R0, 0)
	f.add(opJump|uint8(asm.Exit), 0, 0, 0, 0)
}

// taskCalls are the helpers for numbers of the current task, and what is done with their result.
var taskCalls = map[ops.TaskNumber]struct {
	helper     asm.BuiltinFunc
	high, word bool // the upper half counts, the lower half counts
}{
	ops.TaskPID: {asm.FnGetCurrentPidTgid, true, false}, ops.TaskTID: {asm.FnGetCurrentPidTgid, false, true},
	ops.TaskGID: {asm.FnGetCurrentUidGid, true, false}, ops.TaskUID: {asm.FnGetCurrentUidGid, false, true},
	ops.TaskCPU: {asm.FnGetSmpProcessorId, false, true}, ops.TaskCgroup: {asm.FnGetCurrentCgroupId, false, false},
	ops.TaskTime: {asm.FnKtimeGetNs, false, false},
}

// task sets dst to a number of the current task.
func (c *computer) task(t ops.TaskNumber, dst asm.Register) {
	if t >= ops.TaskComm {
		slot := c.push(bpfstack.CommSize)
		c.callInto(asm.FnGetCurrentComm, slot, bpfstack.CommSize)
		c.loadSlot(dst, slot+8*int(t-ops.TaskComm), 8)
		c.pop(bpfstack.CommSize)
		return
	}
	x := taskCalls[t]
	c.call(x.helper)
	switch {
	case x.high:
		c.imm(asm.RSh, asm.R0, 32)
	case x.word:
		c.zeroExtend(asm.R0, 4)
	}
	c.move(dst, asm.R0)
}

// readText calls the helper that reads a string at the address in R3 into bytes of the stack.
//
// No helper that all kernels have reads strings from pages that are not resident. So with ReadSleep the
// page of its beginning, and if that is not enough that of its end, is touched before.
func (c *computer) readText(reads Reads, slot, bytes int) {
	if reads != ReadSleep {
		c.callInto(stringHelpers[reads], slot, bytes)
		return
	}
	var done label
	kept := c.push(8)
	c.store(kept, asm.R3)
	c.callInto(asm.FnCopyFromUser, slot, 1)
	c.loadSlot(asm.R3, kept, 8)
	c.callInto(stringHelpers[reads], slot, bytes)
	c.jumpImm(asm.JSGE, asm.R0, 0, &done)
	from := c.count
	c.loadSlot(asm.R3, kept, 8)
	c.imm(asm.Add, asm.R3, int32(bytes-1))
	c.callInto(asm.FnCopyFromUser, slot, 1)
	c.loadSlot(asm.R3, kept, 8)
	c.callInto(stringHelpers[reads], slot, bytes)
	c.rare += c.count - from
	c.bind(&done)
	c.pop(8)
}

// text sets dst to the first 8 bytes of a string. The helper writes a NUL after at most 8 of them.
func (c *computer) text(n *node, dst asm.Register, free regSet) {
	const room = 16
	slot := c.push(room)
	c.compute(n.a, asm.R3, (free|callerSaved|setOf(dst))&^setOf(asm.R3))
	c.clearSlot(slot)
	c.clearSlot(slot + 8)
	c.readText(c.reads, slot, 8+1)
	c.jumpImm(asm.JSLT, asm.R0, 0, c.fault)
	c.loadSlot(dst, slot, 8)
	c.pop(room)
}
