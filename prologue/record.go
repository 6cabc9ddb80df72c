package prologue

import (
	"fmt"

	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
)

// The record convention. The record is on the stack, and each argument goes to its place
// there directly: only ctx and err stay in registers. All bytes of the record are written on
// all paths, padding included, so a program can use it as the key of a map or pass it whole
// to a helper.

// writeRecord writes the prologue that fetches f.args into a record.
func (f *fetcher) writeRecord() error {
	// The layout of a prologue outlives the fetcher.
	f.layout = Layout{Fields: make([]Field, len(f.args))}
	f.layout.place(f.args, f.o.Doubts)
	for i := range f.args {
		a := &f.args[i]
		t := &f.fetches[i]
		*t = fetch{arg: i}
		switch {
		case a.Kind >= kindCount:
			return fmt.Errorf("%w: %d", errBadKind, a.Kind)
		case a.Kind == KindScalar:
			t.value, t.reason = f.lowering.lower(a)
			f.noteMissing(t, t.value == nil)
		default:
			t.placed, t.reason = f.lowering.lowerPlaced(a, f.o)
			f.noteMissing(t, t.reason.Code != reasons.None)
			if t.reason.Code != reasons.None {
				t.placed = placed{}
			}
		}
	}
	f.planRecord()
	f.emitRecord()
	if f.outside() {
		if f.layout.Size > f.o.RecordBytes {
			return fmt.Errorf("record of %d bytes exceeds the limit of %d", f.layout.Size, f.o.RecordBytes)
		}
		return checkStack(0, f.maxStack, 0)
	}
	return checkStack(f.layout.Size, f.maxStack-f.layout.Size, 0)
}

// planRecord decides how scalars are fetched, and which are read together.
func (f *fetcher) planRecord() {
	for i := range f.fetches {
		t := &f.fetches[i]
		if t.value != nil && !t.value.pure() {
			f.addUnit(t)
			t.size = 8
			if t.read = readBelow(t.value); t.read != nil {
				t.unit.read, t.size = t.read, int(t.read.size)
			}
		}
		f.reads = f.readsOf(t)
		f.helpers += f.asked(t.addr) + f.asked(t.length)
		if t.helper != 0 {
			f.helpers++
			if t.text == ReadSleep {
				f.helpers++ // see readText
			}
			f.calls = true
		}
		for _, w := range t.words {
			f.helpers += f.asked(w)
			f.calls = f.calls || w.calls > 0
		}
	}
	f.joinUnits()
}

// readBelow returns the one read that a value is computed from, using only constants besides,
// if the value is 0 for a read of 0; else nil. A fault reads as 0, and so makes the value 0.
// Most bit-fields are such values.
func readBelow(n *node) *node {
	switch n.op {
	case ops.Deref:
		if n.divides {
			return nil
		}
		return n
	case ops.ZExt, ops.SExt, ops.Neg:
		return readBelow(n.a)
	case ops.Mul, ops.And, ops.Shl, ops.Shr, ops.Shra:
		if immediate(n.op, n.b) {
			return readBelow(n.a)
		}
	}
	return nil
}

// above computes a value from what was read, which is in a register.
func (f *fetcher) above(n, read *node, r asm.Register) {
	if n == read {
		return
	}
	f.above(n.a, read, r)
	switch n.op {
	case ops.ZExt:
		f.zeroExtend(r, int(n.size))
	case ops.SExt:
		f.signExtend(r, int(n.size), f.o.SignExtends)
	case ops.Neg:
		f.imm(asm.Neg, r, 0)
	default:
		f.imm(aluOps[n.op], r, int32(n.b.k))
	}
}

// field returns an argument's place as a slot: an offset from R10, if the record is on the stack.
func (f *fetcher) field(t *fetch) int {
	if f.outside() {
		return recordMark + f.layout.Fields[t.arg].Offset
	}
	return f.layout.Fields[t.arg].Offset - f.layout.Size
}

// doubtsField returns the place of the word that says which arguments are doubtful, as a slot.
func (f *fetcher) doubtsField() int {
	if f.outside() {
		return recordMark + f.layout.Doubts.Offset
	}
	return f.layout.Doubts.Offset - f.layout.Size
}

// outside reports whether the record is not on the stack.
func (f *fetcher) outside() bool { return f.o.Convention == ConventionRecord && f.o.RecordBytes > 0 }

func (f *fetcher) emitRecord() {
	onStack := f.layout.Size
	if f.outside() {
		onStack = 0
		f.saveCtx()
		f.takeRecord()
	}
	f.push(onStack)
	f.err = asm.R9
	for i := range f.fetches {
		t := &f.fetches[i]
		f.reads = f.readsOf(t)
		if t.unit != nil && t.unit.fetches[0] == t {
			f.noteUnit(t.unit)
		} else if t.unit == nil {
			f.notePlace(t)
		}
		if i == 0 && f.calls {
			f.saveCtx()
		}
		f.emitField(t)
	}
	f.deliverErr()
	f.restoreCtx()
	if f.outside() {
		f.reg(asm.Mov, asm.R3, recordBase)
		return
	}
	f.reg(asm.Mov, asm.R3, asm.R10)
	if f.layout.Size > 0 {
		f.imm(asm.Add, asm.R3, int32(-f.layout.Size))
	}
}

// emitField fetches one argument into its place, with others that are joined to it.
func (f *fetcher) emitField(t *fetch) {
	switch {
	case t.words != nil:
		f.emitWords(t, t.words)
	case t.helper != 0:
		f.emitInPlace(t)
	case t.value == nil:
		f.clearPlace(t)
	case t.unit == nil:
		f.storeValue(f.field(t), t.value)
	case t.unit.fetches[0] != t:
		// It was read with another one.
	case t.unit.read == nil:
		f.emitWords(t, []*node{t.value})
	case t.unit.span > 0:
		f.emitJoined(t.unit)
		for _, t := range t.unit.fetches[:t.unit.n] {
			f.deliverField(t)
		}
		if f.stack = f.layout.Size; f.outside() {
			f.stack = 0
		}
	default:
		f.emitScalar(t)
	}
}

// clearPlace writes zeros to an argument's place.
func (f *fetcher) clearPlace(t *fetch) {
	for at := range f.layout.Fields[t.arg].Size / 8 {
		f.clearSlot(f.field(t) + 8*at)
	}
}

// storeValue computes a word of the record.
func (f *fetcher) storeValue(slot int, v *node) {
	if v.isConst() && fitsImm(v.k) {
		f.storeImm(slot, int32(v.k))
		return
	}
	f.compute(v, asm.R0, f.scratch())
	f.store(slot, asm.R0)
}

// emitScalar reads one scalar, as emitRead does, and computes the value from it. If the value
// is just what was read, the helper writes it to its place.
func (f *fetcher) emitScalar(t *fetch) {
	f.fault = &f.done
	u := t.unit
	plain := t.value == t.read
	t.slot = f.field(t)
	f.readSlot = t.slot
	temp := u.read.a.calls > 0 && (u.read.a.narrow || !loadable(t.size))
	if temp {
		f.readSlot = f.push(8)
		f.clearSlot(t.slot)
	}
	if f.loads(u.read) {
		f.loadUnit(u, plain)
	} else {
		if plain && t.size < 8 {
			f.readPart(u.read, t.slot, f.scratch())
		} else {
			f.read(u.read, t.slot, f.scratch())
		}
		f.bind(&f.done)
		f.collect(u.mask())
	}
	if temp {
		f.pop(8)
	}
	if !plain {
		f.deliverField(t)
	}
}

// inPlace reports whether the bytes that a unit reads at once are laid out like its places
// in the record, beginning with the first argument in memory.
func (f *fetcher) inPlace(u *unit, first *fetch) bool {
	if f.o.Convention != ConventionRecord || u.span != 8*u.n {
		return false
	}
	for _, t := range u.fetches[:u.n] {
		if t.size != 8 || t.value != t.read || f.field(t)-f.field(first) != t.slot {
			return false
		}
	}
	return true
}

// deliverField moves a scalar that was read to its place.
func (f *fetcher) deliverField(t *fetch) {
	to := f.field(t)
	if t.value == t.read && t.slot == to && t.size == 8 {
		return
	}
	f.loadSlot(asm.R0, t.slot, t.size)
	f.above(t.value, t.read, asm.R0)
	f.store(to, asm.R0)
}

// emitWords computes the words of an argument, 8 bytes each, which may fault anywhere.
//
// If the verifier knew values that differ between the path with a fault and the one without,
// it would go through the rest of the program twice, and 2^n times after n such arguments.
// So these values are computed from numbers that it does not know.
func (f *fetcher) emitWords(t *fetch, words []*node) {
	f.fault = &f.done
	temp, sure := false, true
	for _, w := range words {
		temp = temp || w.calls > 0
		sure = sure && f.sure(w)
	}
	if sure {
		for i, w := range words {
			f.storeValue(f.field(t)+8*i, w)
		}
		return
	}
	if temp {
		f.readSlot = f.push(8)
	}
	for i, w := range words {
		f.compute(w, asm.R0, f.scratch())
		f.store(f.field(t)+8*i, asm.R0)
	}
	if temp {
		f.pop(8)
	}
	f.unknown(asm.And) // 0
	f.jump(&f.end)
	f.bind(&f.done)
	f.unknown(asm.Or) // -1
	f.reg(asm.Mov, asm.R2, asm.R0)
	f.imm(asm.Xor, asm.R2, -1)
	for i := range words {
		f.store(f.field(t)+8*i, asm.R2)
	}
	f.bind(&f.end)
	f.collect(1 << t.arg)
}

// unknown sets R0 to 0, for asm.And, or to -1, for asm.Or, without the verifier knowing: it
// combines some number with its complement.
func (f *fetcher) unknown(op asm.ALUOp) {
	f.load(asm.R0, f.ctx, f.registerAt(uint64(f.o.Arch.SP), f.o.Arch.WordSize), f.o.Arch.WordSize)
	f.reg(asm.Mov, asm.R2, asm.R0)
	f.imm(asm.Xor, asm.R2, -1)
	f.reg(op, asm.R0, asm.R2)
}

// emitInPlace lets a helper fill a place. A helper that faults clears the bytes that it was
// to fill. The bytes after them are cleared before the call; all bytes are if a string may
// end early or a read for the address may fault.
func (f *fetcher) emitInPlace(t *fetch) {
	f.fault = &f.done
	slot, size := f.field(t), f.layout.Fields[t.arg].Size
	chain := t.addr != nil && !t.addr.pure()
	if kind := f.args[t.arg].Kind; chain || kind == KindString || kind == KindUserString || kind == KindSlice {
		f.clearPlace(t)
	} else if t.bytes%8 != 0 {
		f.clearSlot(slot + size - 8)
	}
	if t.addr == nil {
		f.callInto(t.helper, slot, t.bytes)
		f.collect(1 << t.arg)
		return
	}
	divides := t.addr.divides
	if t.length != nil {
		divides = divides || t.length.divides
		f.emitCounted(t, slot)
	} else {
		if t.addr.calls > 0 {
			f.readSlot = f.push(8)
		}
		f.compute(t.addr, asm.R3, f.scratch()&^setOf(asm.R3))
		if t.text != ReadAuto {
			f.readText(t.text, slot, t.bytes)
		} else {
			f.callInto(t.helper, slot, t.bytes)
		}
		if t.addr.calls > 0 {
			f.pop(8)
		}
	}
	if divides {
		// A division by 0 leaves nothing in R0.
		f.jump(&f.end)
		f.bind(&f.done)
		f.unknown(asm.Or)
		f.bind(&f.end)
	}
	f.bind(&f.done)
	if t.slice > 0 {
		f.clearIfFaulted(slot)
	}
	f.collect(1 << t.arg)
}

// clearIfFaulted clears a slot if R0 is negative. It does not jump, for the reason in collect.
func (f *fetcher) clearIfFaulted(slot int) {
	f.reg(asm.Mov, asm.R1, asm.R0)
	f.imm(asm.RSh, asm.R1, 63)
	f.imm(asm.Xor, asm.R1, 1)
	f.loadSlot(asm.R2, slot, 8)
	f.reg(asm.Mul, asm.R2, asm.R1)
	f.store(slot, asm.R2)
}

// emitCounted reads a string with a length, or a slice, whose length goes to its place. An
// empty one may have any address, also one that helpers refuse. The length is compared right before the call:
// verifiers before Linux 5.10 forget what is known of a number when it goes through the stack.
func (f *fetcher) emitCounted(t *fetch, slot int) {
	length, room := slot, t.bytes
	if t.slice > 0 {
		slot, room = slot+8, t.bytes/t.slice
	} else {
		length = f.push(8)
	}
	calls := t.addr.calls+t.length.calls > 0
	if calls {
		f.readSlot = f.push(8)
	}
	f.compute(t.length, asm.R0, f.scratch())
	f.store(length, asm.R0)
	f.compute(t.addr, asm.R3, f.scratch()&^setOf(asm.R3))
	f.unknown(asm.And) // the result, if there is nothing to read
	f.loadSlot(asm.R2, length, 8)
	f.jumpImm(asm.JLE, asm.R2, int32(room), &f.fits)
	f.imm(asm.Mov, asm.R2, int32(room))
	f.bind(&f.fits)
	f.jumpImm(asm.JEq, asm.R2, 0, &f.fits)
	if t.slice > 1 {
		f.imm(asm.Mul, asm.R2, int32(t.slice))
	}
	f.pointTo(slot)
	f.call(t.helper)
	f.bind(&f.fits)
	if calls {
		f.pop(8)
	}
	if t.slice == 0 {
		f.pop(8)
	}
}
