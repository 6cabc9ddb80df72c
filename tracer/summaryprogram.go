package tracer

import (
	"math"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// fields is where the arguments that are counted are in what the programs of an instance get: those of
// the key, then those of counters. Instances with the same have the same program.
type fields struct {
	Args, Sums, Hists []prologue.Field // Args has one with the size of all
	Key               []source
}

func (c *counted) fields(instance int) fields {
	var f fields
	for _, a := range c.args {
		f.Key = append(f.Key, c.source(instance, a))
	}
	for _, k := range c.sums {
		f.Sums = append(f.Sums, c.source(instance, k.arg).Field)
	}
	for _, k := range c.hists {
		f.Hists = append(f.Hists, c.source(instance, k.arg).Field)
	}
	f.Args = []prologue.Field{{Size: recordSize(c.plan, &c.plan.Instances[instance])}}
	return f
}

// summaryWriter writes a program that counts a hit. R6 is the context, R7 err, R8 the arguments and
// R9 the value. The key is on the stack, or after the record, if that is not on the stack and has room for one, or, of a run, after what
// is stored of it, where R8 leads.
type summaryWriter struct {
	*counted
	fields
	*writer
	base asm.Register // from which the key is
	key  int          // at this offset

	outcome int // what became of a run
}

// program returns the program that runs at each hit.
func (c *counted) program(f fields, overflow *ebpf.Map, who processes) asm.Instructions {
	const exit = "exit"
	w := &summaryWriter{counted: c, fields: f, writer: &writer{prefix: "count"}, base: asm.RFP}
	args, stack := keepArgs(c.plan.Convention, f.Args[0].Size)
	w.add(args...)
	w.add(useDoubtful(c.plan, f.Args[0].Size)...)
	w.key = -stack - c.key
	if c.plan.RecordBytes-f.Args[0].Size >= c.key { // plan.Options.Keys
		w.base, w.key = asm.R8, f.Args[0].Size
	} else {
		stack = -w.key
	}
	w.add(who.filter(stack, exit)...)
	w.tally(overflow, exit)
	w.here(exit)
	w.add(asm.Mov.Imm(asm.R0, 0), asm.Return())
	return w.insns
}

// tally counts a hit, and goes on at a label.
func (w *summaryWriter) tally(overflow *ebpf.Map, exit string) {
	full, found := w.label(), w.label()
	w.writeKey()
	w.keyTo()
	w.add(asm.FnMapLookupElem.Call(), asm.JNE.Imm(asm.R0, 0, found))
	w.keyTo()
	w.add(asm.LoadMapValue(asm.R3, w.zero.FD(), 0), asm.Mov.Imm(asm.R4, int32(ebpf.UpdateNoExist)), asm.FnMapUpdateElem.Call())
	w.keyTo() // perhaps another processor made it
	w.add(asm.FnMapLookupElem.Call(), asm.JEq.Imm(asm.R0, 0, full))
	w.here(found)
	w.add(asm.Mov.Reg(asm.R9, asm.R0))
	w.increment(asm.R9, 0)
	for i := range w.sums {
		w.total(&w.sums[i], w.Sums[i])
	}
	for i := range w.hists {
		w.histogram(&w.hists[i], w.Hists[i])
	}
	w.add(asm.Ja.Label(exit))
	w.here(full)
	w.add(asm.LoadMapValue(asm.R1, overflow.FD(), 0))
	w.increment(asm.R1, 0)
	w.add(asm.Ja.Label(exit))
}

// useDoubtful takes the bits of doubtful arguments out of err, in R7: they are keys and numbers as others are. R8 is the record of so
// many bytes.
func useDoubtful(p *plan.Plan, size int) asm.Instructions {
	switch {
	case p.Doubt != plan.DoubtKeep:
		return nil
	case p.Convention == prologue.ConventionRecord:
		return asm.Instructions{asm.LoadMem(asm.R0, asm.R8, int16(size-8), asm.DWord), asm.Xor.Reg(asm.R7, asm.R0)}
	}
	return asm.Instructions{asm.Mov.Reg(asm.R0, asm.R7), asm.RSh.Imm(asm.R0, prologue.DoubtShift), asm.Xor.Reg(asm.R7, asm.R0)}
}

// keyTo sets R1 and R2 to the map and the key.
func (w *summaryWriter) keyTo() {
	w.add(asm.LoadMapPtr(asm.R1, w.stats.FD()), asm.Mov.Reg(asm.R2, w.base), asm.Add.Imm(asm.R2, int32(w.key)))
}

// writeKey writes the key.
func (w *summaryWriter) writeKey() {
	w.add(asm.Mov.Imm(asm.R0, 0))
	if w.bySit && w.run == nil {
		w.add(asm.Mov.Reg(asm.R1, asm.R6), asm.FnGetAttachCookie.Call())
	}
	if w.run == nil && slices.ContainsFunc(w.parts, func(p keyPart) bool { return p.what == byCaller || p.what == byStack }) {
		w.add(asm.Mov.Reg(asm.R9, asm.R0), asm.RSh.Imm(asm.R9, cookieEntry), asm.And.Imm(asm.R9, 1))
	}
	switch {
	case w.bySit && w.run != nil:
		w.add(asm.LoadMem(asm.R0, asm.R8, atCookie, asm.DWord), asm.LSh.Imm(asm.R0, 64-siteBits), asm.RSh.Imm(asm.R0, 64-siteBits))
	case w.bySit:
		w.add(asm.LSh.Imm(asm.R0, 32), asm.RSh.Imm(asm.R0, 32))
	}
	for i := range w.args {
		if bit := w.Key[i].Bit; bit < 0 {
			w.add(asm.LoadImm(asm.R1, 1<<(32+i), asm.DWord))
		} else {
			w.add(asm.Mov.Reg(asm.R1, asm.R7), asm.RSh.Imm(asm.R1, int32(bit)), asm.And.Imm(asm.R1, 1), asm.LSh.Imm(asm.R1, int32(32+i)))
		}
		w.add(asm.Or.Reg(asm.R0, asm.R1))
	}
	w.add(asm.StoreMem(w.base, int16(w.key), asm.R0, asm.DWord))
	if w.run != nil {
		w.writeOutcome()
	}
	for _, p := range w.parts {
		at := w.key + p.at
		switch p.what {
		case bySite, byFunction:
		case byCaller, byStack:
			if w.run != nil {
				w.add(copyWords(w.base, at, asm.R8, runCaller, p.size)...)
				break
			}
			w.caller(at)
			if p.what == byStack {
				w.stackIDs(at)
			}
		case byComm:
			w.add(asm.Mov.Reg(asm.R1, w.base), asm.Add.Imm(asm.R1, int32(at)), asm.Mov.Imm(asm.R2, commSize), asm.FnGetCurrentComm.Call())
		case byPID:
			w.add(asm.FnGetCurrentPidTgid.Call(), asm.RSh.Imm(asm.R0, 32), asm.StoreMem(w.base, int16(at), asm.R0, asm.DWord))
		case byTID:
			w.add(asm.FnGetCurrentPidTgid.Call(), asm.LSh.Imm(asm.R0, 32), asm.RSh.Imm(asm.R0, 32), asm.StoreMem(w.base, int16(at), asm.R0, asm.DWord))
		default:
			for _, x := range p.pieces {
				w.copyArg(w.key+x.at, x.size, &w.Key[x.arg])
			}
		}
	}
}

// copyArg copies something to the key, with zeros after it.
func (w *summaryWriter) copyArg(at, size int, from *source) {
	for i := 0; i < size; i += 8 {
		if from.Bit >= 0 && i < from.Size {
			w.add(asm.LoadMem(asm.R0, asm.R8, int16(from.Offset+i), asm.DWord), asm.StoreMem(w.base, int16(at+i), asm.R0, asm.DWord))
		} else {
			w.add(asm.Mov.Imm(asm.R0, 0), asm.StoreMem(w.base, int16(at+i), asm.R0, asm.DWord))
		}
	}
	w.add(zeros(w.base, at, from.Zeros)...)
}

// caller writes where a hit came from. R9 is 1 where a call leads.
func (w *summaryWriter) caller(at int) {
	skip := w.label()
	w.add(asm.Mov.Imm(asm.R0, 0))
	for i := 0; i < callerSize; i += 8 {
		w.add(asm.StoreMem(w.base, int16(at+i), asm.R0, asm.DWord))
	}
	a, read := w.plan.Image.Arch(), asm.FnProbeReadKernel
	if w.inProgram() {
		read = asm.FnProbeReadUser
		w.add(
			asm.FnGetCurrentPidTgid.Call(), asm.RSh.Imm(asm.R0, 32), asm.StoreMem(w.base, int16(at+callerPID), asm.R0, asm.DWord),
			asm.LoadMem(asm.R0, asm.R6, int16(a.Register(uint64(a.PC)).Offset), asm.DWord), asm.StoreMem(w.base, int16(at+callerAt), asm.R0, asm.DWord),
		)
	}
	w.add(asm.JEq.Imm(asm.R9, 0, skip))
	w.add(readReturnAddress(a, w.base, at+callerReturn, read)...)
	w.here(skip)
}

// stackIDs writes the numbers of the stacks, or an error of the helper.
func (w *summaryWriter) stackIDs(at int) {
	w.add(asm.Mov.Imm(asm.R0, -1), asm.StoreMem(w.base, int16(at+stackKernel), asm.R0, asm.DWord), asm.StoreMem(w.base, int16(at+stackUser), asm.R0, asm.DWord))
	w.stack.each(func(kind Stacks, flags int32) {
		to := at + stackKernel
		if kind == StackUser {
			to = at + stackUser
		}
		w.add(asm.Mov.Reg(asm.R1, asm.R6), asm.LoadMapPtr(asm.R2, w.stacks.FD()), asm.Mov.Imm(asm.R3, flags), asm.FnGetStackid.Call(),
			asm.StoreMem(w.base, int16(to), asm.R0, asm.DWord))
	})
}

// returnAddress returns the register that has a function's return address at its entry, or the address
// where it is.
func returnAddress(a *arch.Arch) (r *arch.Register, onStack bool) {
	if a.Link == 0 {
		return a.Register(uint64(a.SP)), true
	}
	return a.Register(uint64(a.Link)), false
}

// fetched jumps to a label after it has counted that an argument was not fetched; otherwise R1 is its
// value.
func (w *summaryWriter) fetched(k *counter, f prologue.Field, missing int, next string) {
	if k.arg < 0 {
		w.increment(asm.R9, missing)
		w.add(asm.Ja.Label(next))
		return
	}
	has := w.label()
	w.add(asm.Mov.Reg(asm.R1, asm.R7), asm.RSh.Imm(asm.R1, int32(k.arg)), asm.And.Imm(asm.R1, 1), asm.JEq.Imm(asm.R1, 0, has))
	w.increment(asm.R9, missing)
	w.add(asm.Ja.Label(next))
	w.here(has)
	w.add(asm.LoadMem(asm.R1, asm.R8, int16(f.Offset), asm.DWord))
}

// total adds an argument to a sum, and to what is largest and smallest.
func (w *summaryWriter) total(k *counter, f prologue.Field) {
	next := w.label()
	w.fetched(k, f, k.at+totalMissing, next)
	if k.arg >= 0 {
		w.add(asm.AddAtomic.Mem(asm.R9, asm.R1, asm.DWord, int16(k.at+totalSum)))
		if k.signed {
			w.add(asm.LoadImm(asm.R2, math.MinInt64, asm.DWord), asm.Xor.Reg(asm.R1, asm.R2))
		}
		w.atLeast(k.at + totalMax)
		w.add(asm.Xor.Imm(asm.R1, -1))
		w.atLeast(k.at + totalMin)
	}
	w.here(next)
}

// atLeast makes a word of the value at least R1. Only a task that lost its processor right here to
// another one can be in the way: two tries are enough unless that happens twice at once.
func (w *summaryWriter) atLeast(at int) {
	const tries = 4
	done := w.label()
	w.add(asm.LoadMem(asm.R0, asm.R9, int16(at), asm.DWord))
	for range tries {
		w.add(
			asm.JGE.Reg(asm.R0, asm.R1, done),
			asm.Mov.Reg(asm.R2, asm.R0),
			compareExchange(asm.R9, asm.R1, at),
			asm.JEq.Reg(asm.R0, asm.R2, done),
		)
	}
	w.here(done)
}

// histogram counts an argument in the slot of its bucket.
func (w *summaryWriter) histogram(k *counter, f prologue.Field) {
	next := w.label()
	w.fetched(k, f, k.at, next)
	if k.arg >= 0 {
		if k.of.Step > 0 {
			w.linear(k)
		} else {
			w.power(k)
		}
		// R1 is the slot. It cannot be outside, but the verifier may not know.
		w.add(
			asm.JGT.Imm(asm.R1, int32(k.slots-1), next),
			asm.LSh.Imm(asm.R1, 3),
			asm.Mov.Reg(asm.R2, asm.R9),
			asm.Add.Reg(asm.R2, asm.R1),
		)
		w.increment(asm.R2, k.at+8)
	}
	w.here(next)
}

// linear makes the number in R1 that of its slot.
func (w *summaryWriter) linear(k *counter) {
	below, above, done := w.label(), w.label(), w.label()
	if !k.signed {
		w.add(asm.JSLT.Imm(asm.R1, 0, above)) // more than any number with a sign
	}
	w.add(
		asm.LoadImm(asm.R2, k.of.Low, asm.DWord),
		asm.JSLT.Reg(asm.R1, asm.R2, below),
		asm.LoadImm(asm.R3, k.of.High, asm.DWord),
		asm.JSGE.Reg(asm.R1, asm.R3, above),
		asm.Sub.Reg(asm.R1, asm.R2),
		asm.LoadImm(asm.R2, k.of.Step, asm.DWord),
		asm.Div.Reg(asm.R1, asm.R2),
		asm.Add.Imm(asm.R1, 1),
		asm.Ja.Label(done),
	)
	w.here(below)
	w.add(asm.Mov.Imm(asm.R1, 0), asm.Ja.Label(done))
	w.here(above)
	w.add(asm.Mov.Imm(asm.R1, int32(k.slots-1)))
	w.here(done)
}

// power makes the number in R1 that of its slot: how many bits it has. There are no branches, or the
// verifier would go through all 64 ways.
func (w *summaryWriter) power(k *counter) {
	if k.signed {
		// R5 is 0, or -1 for a negative number, of which R1 becomes the magnitude.
		w.add(asm.Mov.Reg(asm.R5, asm.R1), asm.ArSh.Imm(asm.R5, 63), asm.Xor.Reg(asm.R1, asm.R5), asm.Sub.Reg(asm.R1, asm.R5))
	}
	w.add(asm.Mov.Imm(asm.R2, 0))
	isNot0 := func(r asm.Register) { // r becomes 1 if it is not 0
		w.add(asm.Mov.Reg(asm.R4, r), asm.Neg.Imm(asm.R4, 0), asm.Or.Reg(r, asm.R4), asm.RSh.Imm(r, 63))
	}
	for shift := int32(5); shift >= 0; shift-- {
		w.add(asm.Mov.Reg(asm.R3, asm.R1), asm.RSh.Imm(asm.R3, 1<<shift))
		isNot0(asm.R3)
		w.add(asm.LSh.Imm(asm.R3, shift), asm.RSh.Reg(asm.R1, asm.R3), asm.Add.Reg(asm.R2, asm.R3))
	}
	isNot0(asm.R1)
	w.add(asm.Add.Reg(asm.R1, asm.R2))
	if k.signed {
		// Negative numbers go down from slot 63.
		w.add(asm.Xor.Reg(asm.R1, asm.R5), asm.Sub.Reg(asm.R1, asm.R5), asm.Add.Imm(asm.R1, 64))
	}
}
