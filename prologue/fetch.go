package prologue

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// fetcher writes one prologue after the other. The arguments that need no helper
// and cannot fault are computed last, into their registers. The others are
// fetched first and wait in the stack. They are fetched in units: one read for one or
// several arguments, or one computation.
type fetcher struct {
	computer
	lowering lowering
	args     []Arg
	fetches  []fetch  // one for each argument
	units    []*unit  // in the order in which they run
	late     []*fetch // loaded from one pointer when all units have run
	lateFrom int64    // what the pointer has of their offsets
	tests    []*node  // the conditions, in the order in which they are computed
	layout   Layout
	helpers  int          // calls of helpers on the longest path on which no read faults
	calls    bool         // there are calls, of helpers or others
	reasons  []loc.Reason // why arguments are not fetched, one for each
	missing  uint64       // err bits that are known to be set

	err    asm.Register // collects the err bits of units
	hasErr bool         // err holds a value

	// Memory that the fields above use.
	opts     Options
	fetchMem []fetch
	unitMem  []unit
	near     []*fetch
	keyMem   []byte
	done     label
	end      label
	fits     label
}

// fetch is how one argument is fetched.
type fetch struct {
	arg    int
	value  *node // nil: not fetched
	reason loc.Reason
	unit   *unit // nil: computed last
	at     place // of a read that may be joined with others
	// inPlace is set for a value that is loaded into its register before the others.
	inPlace bool
	placed  // for strings and objects

	// For a value that waits in the stack: where, how wide, and how it is extended.
	slot   int
	size   int
	extend *node // a zext or sext above the read, or nil
}

// unit is a part of the prologue that may fault.
type unit struct {
	fetches [maxJoined]*fetch
	n       int
	read    *node // its result is the value; nil for a computation
	span    int   // bytes to read for several arguments, from the first one in memory on
	alone   bool  // when that faults, each argument is read alone
	certain bool  // several arguments, which are loaded and cannot fault
}

// mask returns the err bits of the unit.
func (u *unit) mask() (m uint64) {
	for _, t := range u.fetches[:u.n] {
		m |= 1 << t.arg
	}
	return m
}

// write writes the prologue that fetches args.
func (f *fetcher) write(args []Arg, o *Options) error {
	f.opts = *o
	f.opts.Convention = o.Convention.of(args)
	o = &f.opts
	most := MaxArgs
	if o.Convention == ConventionRecord {
		most = MaxRecordArgs
	}
	switch {
	case len(args) > most:
		return fmt.Errorf("%w: %d, at most %d", errTooManyArgs, len(args), most)
	case o.Arch == nil:
		return errNoArch
	case int(o.Reads) >= len(helpers):
		return fmt.Errorf("%w: %v", errBadReads, o.Reads)
	case o.Convention > ConventionRecord:
		return fmt.Errorf("unknown convention: %v", o.Convention)
	}
	if o.Arch.WordSize < 8 && o.Reads == ReadCast {
		o.Reads = ReadKernel // pointers of programs have 8 bytes
	}
	f.reset()
	f.lowering.begin(o)
	f.o, f.ctx = &f.opts, asm.R1
	f.stack, f.maxStack, f.helpers, f.calls = 0, 0, 0, false
	if len(args) > len(f.fetchMem) {
		f.fetchMem, f.unitMem = make([]fetch, len(args)), make([]unit, len(args))
	}
	f.layout = Layout{}
	f.args, f.fetches, f.units, f.late = args, f.fetchMem[:len(args)], f.units[:0], f.late[:0]
	f.reasons = slices.Grow(f.reasons[:0], len(args))[:len(args)]
	clear(f.reasons)
	f.missing, f.hasErr = 0, false
	if err := f.conditions(); err != nil {
		return err
	}
	f.emitConditions()
	if o.Convention == ConventionRecord {
		return f.writeRecord()
	}
	for i := range args {
		if args[i].Kind >= kindCount {
			return fmt.Errorf("%w: %d", errBadKind, args[i].Kind)
		}
		t := &f.fetches[i]
		*t = fetch{arg: i}
		t.value, t.reason = f.lowering.lower(&args[i])
		f.noteMissing(t, t.value == nil)
	}
	f.plan()
	f.emit()
	return nil
}

// noteMissing records why an argument is not fetched, if it is not.
func (f *fetcher) noteMissing(t *fetch, missing bool) {
	if missing {
		f.missing |= 1 << t.arg
		f.reasons[t.arg] = t.reason
	}
}

// readsOf returns the helper that reads an argument's memory.
func (f *fetcher) readsOf(t *fetch) Reads {
	if f.args[t.arg].User {
		return f.o.Reads.user()
	}
	return f.o.Reads
}

// plan decides which arguments are fetched first, and which are read together.
func (f *fetcher) plan() {
	for i := range f.fetches {
		t := &f.fetches[i]
		if t.value == nil || t.value.pure() {
			continue
		}
		f.addUnit(t)
		read := t.value
		if (read.op == ops.ZExt || read.op == ops.SExt) && read.a.op == ops.Deref {
			t.extend, read = read, read.a
		}
		if read.op != ops.Deref || read.divides {
			t.extend = nil
			t.size = 8
			continue
		}
		t.unit.read = read
		t.size = int(read.size)
	}
	f.planLate()
	f.joinUnits()
}

// joinUnits joins units, and counts the calls of what is left.
func (f *fetcher) joinUnits() {
	if len(f.units) > 1 {
		f.join()
	}
	for _, u := range f.units {
		t := u.fetches[0]
		f.reads = f.readsOf(t)
		f.calls = f.calls || t.value.calls > 0
		if !u.certain {
			f.helpers += f.asked(t.value)
		}
	}
}

// addUnit makes a unit of one argument.
func (f *fetcher) addUnit(t *fetch) {
	t.unit = &f.unitMem[t.arg]
	*t.unit = unit{fetches: [maxJoined]*fetch{t}, n: 1}
	f.units = append(f.units, t.unit)
}

func (f *fetcher) emit() {
	units := f.units
	calls := f.calls || len(f.late) > 0
	// With one read that is not repeated, or none, nothing after it destroys R2.
	f.err = asm.R9
	if !calls || len(units) == 1 && units[0].read != nil && !units[0].alone && len(f.late) == 0 {
		f.err = asm.R2
	}
	if calls {
		if len(units) > 0 {
			f.noteUnit(units[0])
		} else {
			f.noteUnit(f.late[0].unit)
		}
		f.saveCtx()
	}
	for i, u := range units {
		if i > 0 || !calls {
			f.noteUnit(u)
		}
		f.reads = f.readsOf(u.fetches[0])
		switch {
		case u.read == nil:
			f.emitComputation(u)
		case u.span > 0:
			f.emitJoined(u)
		default:
			f.emitRead(u)
		}
	}
	if len(f.late) > 0 {
		f.emitLate()
	}
	for i := range f.fetches {
		f.deliver(&f.fetches[i])
	}
	f.deliverErr()
	f.restoreCtx()
}

// scratch returns the registers, besides R0, to compute a unit in.
func (f *fetcher) scratch() regSet {
	free := (callerSaved | setOf(asm.R7, asm.R8)) &^ setOf(asm.R0, f.err)
	if f.outside() {
		free &^= setOf(recordBase)
	}
	return free
}

// emitRead reads one argument into its slot. A fault of an earlier read, for its address,
// jumps to the end of it: R0 is negative there if any read faulted.
func (f *fetcher) emitRead(u *unit) {
	f.fault = &f.done
	t := u.fetches[0]
	t.slot = f.push(8)
	temp := u.read.a.calls > 0 && (u.read.a.narrow || !loadable(t.size))
	f.readSlot = t.slot
	if temp {
		// A fault must leave 0 in the slot. In other cases the helper clears it, since
		// all reads go there and all are 8 bytes wide.
		f.readSlot = f.push(8)
		f.clearSlot(t.slot)
	}
	if f.loads(u.read) {
		t.inPlace = u == f.units[len(f.units)-1] && len(f.late) == 0
		f.loadUnit(u, false)
	} else {
		f.read(u.read, t.slot, f.scratch())
		f.bind(&f.done)
		f.collect(u.mask())
	}
	if temp {
		f.pop(8)
	}
}

// emitJoined reads several arguments at once into their slots. If that faults, and one may
// be readable without the other, it reads them again one by one.
func (f *fetcher) emitJoined(u *unit) {
	f.fault = &f.done
	first := u.fetches[0]
	for _, t := range u.fetches[1:u.n] {
		if t.slot < first.slot {
			first = t // in memory
		}
	}
	skew := int(first.at.off & 7)
	room := (skew + u.span + 7) &^ 7
	base := u.read.a
	chain := f.asked(base) > 0
	var buf int
	if f.inPlace(u, first) {
		buf = f.field(first)
	} else {
		buf = f.push(room)
	}
	for _, t := range u.fetches[:u.n] {
		t.slot += buf + skew
	}
	if chain {
		// A fault on the way to the address must leave 0 in the whole buffer.
		for slot := buf; slot < buf+room; slot += 8 {
			f.clearSlot(slot)
		}
		f.readSlot = f.push(8)
	}
	switch {
	case u.alone:
		f.emitAlone(u, first)
	case u.certain:
		base, from := origin(first)
		f.compute(base, asm.R1, f.scratch())
		f.glance(u, from, false, nil)
	default:
		f.compute(base, asm.R3, f.scratch()&^setOf(asm.R3))
		f.callRead(buf+skew, u.span)
		f.bind(&f.done)
		f.collect(u.mask())
	}
	if chain {
		f.pop(8)
	}
}

// emitAlone reads at once, and then, if that faulted, one by one.
func (f *fetcher) emitAlone(u *unit, first *fetch) {
	const base = asm.R7
	if !f.hasErr {
		f.imm(asm.Mov, f.err, 0)
		f.hasErr = true
	}
	f.compute(first.at.base, base, f.scratch()&^setOf(base))
	glances := f.within(u.fetches[:u.n])
	if glances {
		f.reg(asm.Mov, asm.R1, base)
		f.glance(u, 0, true, &f.end)
	}
	readAt := func(t *fetch, size int) {
		f.reg(asm.Mov, asm.R3, base)
		if t.at.off != 0 {
			f.addConst(asm.R3, uint64(t.at.off))
		}
		f.callRead(t.slot, size)
	}
	from := f.count
	readAt(first, u.span)
	if glances {
		f.rare += f.count + 1 - from
	}
	// The path of the fault falls through: so the verifier goes through it first, and then
	// finds the other one to be a case of it.
	f.jumpImm(asm.JEq, asm.R0, 0, &f.end)
	from = f.count
	for i, t := range u.fetches[:u.n] {
		mask, done := uint64(0), false
		for j, s := range u.fetches[:u.n] {
			if s.slot == t.slot {
				mask |= 1 << s.arg
				done = done || j < i
			}
		}
		if !done {
			readAt(t, t.size)
			f.collect(mask)
		}
	}
	if f.asked(first.at.base) > 0 {
		f.jump(&f.end)
		f.bind(&f.done)
		f.maskImm(asm.Or, f.err, u.mask(), asm.R0)
	}
	f.rare += f.count - from
	f.bind(&f.end)
}

// collect adds bits to err if R0 is negative: helpers return 0 or a negative errno.
// It does not jump, so that the verifier need not go through the rest of the program twice.
// Nor does it use an arithmetic shift and an AND: the verifier of Linux 6.18 forks there too
// (maybe_fork_scalars in kernel/bpf/verifier.c), and went 2^n times through a program that
// tested err after n arguments.
func (f *fetcher) collect(mask uint64) {
	f.imm(asm.RSh, asm.R0, 63)
	switch {
	case mask == 1:
	case mask&(mask-1) == 0:
		f.imm(asm.LSh, asm.R0, int32(bits.TrailingZeros64(mask)))
	default:
		f.maskImm(asm.Mul, asm.R0, mask, asm.R2)
	}
	if f.hasErr {
		f.reg(asm.Or, f.err, asm.R0)
	} else {
		f.reg(asm.Mov, f.err, asm.R0)
	}
	f.hasErr = true
}

// emitComputation computes an argument that may fault anywhere. It counts as not
// fetched until it is.
func (f *fetcher) emitComputation(u *unit) {
	f.fault = &f.done
	t := u.fetches[0]
	t.slot = f.push(8)
	if f.sure(t.value) {
		f.compute(t.value, asm.R0, f.scratch())
		f.store(t.slot, asm.R0)
		return
	}
	bit := uint64(1) << t.arg
	if f.hasErr {
		f.maskImm(asm.Or, f.err, bit, asm.R0)
	} else {
		f.constant(f.err, bit)
	}
	f.hasErr = true
	// A helper that faults clears what it was to read: all of the slot, if all reads are there
	// and 8 bytes wide.
	f.readSlot = t.slot
	temp := t.value.divides || t.value.narrow
	if temp {
		f.clearSlot(t.slot)
		f.readSlot = f.push(8)
	}
	f.compute(t.value, asm.R0, f.scratch())
	if temp {
		f.pop(8)
	}
	f.store(t.slot, asm.R0)
	f.maskImm(asm.Xor, f.err, bit, asm.R0)
	f.bind(&f.done)
}

// maskImm changes bits of err. If some are too high for an immediate it uses a register.
func (f *fetcher) maskImm(op asm.ALUOp, dst asm.Register, mask uint64, temp asm.Register) {
	if fitsImm(mask) {
		f.imm(op, dst, int32(mask))
		return
	}
	f.constant(temp, mask)
	f.reg(op, dst, temp)
}

// register returns the register of an argument.
func (t *fetch) register() asm.Register { return asm.R3 + asm.Register(t.arg) }

// deliver sets an argument's register.
func (f *fetcher) deliver(t *fetch) {
	dst := t.register()
	switch {
	case t.inPlace:
	case t.value == nil:
		f.noteReason(t)
		f.imm(asm.Mov, dst, 0)
	case slices.Contains(f.late, t):
		f.noteArg(t)
		f.loadRead(t, dst, asm.R0, int(t.at.off-f.lateFrom))
	case t.unit == nil:
		free := (callerSaved | calleeSaved) &^ setOf(f.ctx)
		if len(f.late) > 0 {
			free &^= setOf(asm.R0)
		}
		for _, u := range f.units {
			if s := u.fetches[0]; s.inPlace {
				free &^= setOf(s.register())
			}
		}
		for r := asm.R3; r <= dst; r++ {
			free &^= setOf(r)
		}
		if f.hasErr {
			free &^= setOf(f.err)
		}
		f.noteArg(t)
		f.compute(t.value, dst, free)
	default:
		f.loadRead(t, dst, asm.R10, t.slot)
	}
}

// loadRead loads what an argument reads, or has read, and extends it.
func (f *fetcher) loadRead(t *fetch, dst, base asm.Register, off int) {
	if t.extend == nil {
		f.load(dst, base, off, t.size)
		return
	}
	size, signed := int(t.extend.size), t.extend.op == ops.SExt
	part := loadable(t.size) && loadable(size) && size <= t.size
	if signed {
		part = part && size < 8 && f.o.SignExtends
	}
	if part {
		if f.o.BigEndian {
			off += t.size - size
		}
		if signed {
			f.loadSigned(dst, base, off, size)
		} else {
			f.load(dst, base, off, size)
		}
		return
	}
	f.load(dst, base, off, t.size)
	f.extend(t.extend, dst)
}

// extend does what a node, a zext or sext, does.
func (f *fetcher) extend(n *node, dst asm.Register) {
	if n.op == ops.SExt {
		f.signExtend(dst, int(n.size), f.o.SignExtends)
	} else {
		f.zeroExtend(dst, int(n.size))
	}
}

// deliverErr sets R2, and says which of the arguments that are fetched are doubtful.
func (f *fetcher) deliverErr() {
	f.noteErr()
	doubtful := f.doubtful()
	inRecord := f.o.Doubts && f.o.Convention == ConventionRecord
	if !f.hasErr {
		known := f.missing | doubtful
		if inRecord {
			f.storeConstant(f.doubtsField(), doubtful)
		} else {
			known |= doubtful << DoubtShift
		}
		f.constant(asm.R2, known)
		return
	}
	f.move(asm.R2, f.err)
	switch {
	case doubtful == 0 && inRecord:
		f.clearSlot(f.doubtsField())
	case doubtful != 0:
		// Those without a bit of err. R4 is free for a wide mask: with registers masks are narrow.
		f.reg(asm.Mov, asm.R0, asm.R2)
		f.maskImm(asm.And, asm.R0, doubtful, asm.R4)
		f.maskImm(asm.Xor, asm.R0, doubtful, asm.R4)
		if inRecord {
			f.store(f.doubtsField(), asm.R0)
		} else {
			f.imm(asm.LSh, asm.R0, DoubtShift)
			f.reg(asm.Or, asm.R2, asm.R0)
		}
	}
	if always := f.missing | doubtful; always != 0 {
		f.maskImm(asm.Or, asm.R2, always, asm.R0)
	}
}

// DoubtShift is how far above the err bit of a doubtful argument the one is that says that it is there: see Options.Doubts.
const DoubtShift = 16

// doubtful returns the err bits of the arguments that are doubtful, as far as that is to be said, and are not missing.
func (f *fetcher) doubtful() (m uint64) {
	if !f.o.Doubts {
		return 0
	}
	for i := range f.args {
		if f.args[i].Doubtful {
			m |= 1 << i
		}
	}
	return m &^ f.missing
}

// storeConstant stores a number in a slot.
func (f *fetcher) storeConstant(slot int, k uint64) {
	if fitsImm(k) {
		f.storeImm(slot, int32(k))
		return
	}
	f.constant(asm.R0, k)
	f.store(slot, asm.R0)
}
