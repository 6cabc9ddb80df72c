package prologue

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
)

// fetcher writes one prologue. The arguments that need no helper and cannot
// fault are computed last, into their registers. The others are fetched first,
// in units of one read for one or several arguments or of one computation, and
// wait in the stack.
type fetcher struct {
	computer
	args      []Arg
	fetches   []fetch // one for each argument
	units     []*unit
	unfetched []Unfetched
	missing   int32 // err bits that are known to be set

	err    asm.Register // collects the err bits of units
	hasErr bool         // err holds a value
}

// fetch is how one argument is fetched.
type fetch struct {
	arg    int
	value  *node // nil: not fetched
	reason dwarfloc.Reason
	unit   *unit // nil: computed last

	// Of what waits in the stack: where, how wide, and how it is extended.
	slot   int
	size   int
	extend *node // an OpZExt or OpSExt above the read, or nil
}

// unit is a part of the prologue that may fault.
type unit struct {
	fetches []*fetch
	read    *node // the read whose result is the value; nil for a computation
	span    int   // bytes to read for several arguments, from the first one on
}

func newFetcher(args []Arg, o *Options) *fetcher {
	f := &fetcher{args: args, fetches: make([]fetch, len(args))}
	f.o, f.ctx = o, asm.R1
	for i := range args {
		t := &f.fetches[i]
		t.arg = i
		if t.value, t.reason = lower(&args[i], o); t.value == nil {
			f.missing |= 1 << i
			f.unfetched = append(f.unfetched, Unfetched{i, t.reason})
		}
	}
	f.plan()
	return f
}

// plan decides which arguments are fetched first, and which are read together.
func (f *fetcher) plan() {
	var frame []*fetch
	for i := range f.fetches {
		t := &f.fetches[i]
		if t.value == nil || t.value.pure() {
			continue
		}
		t.unit = &unit{fetches: []*fetch{t}}
		f.units = append(f.units, t.unit)
		read := t.value
		if (read.op == dwarfloc.OpZExt || read.op == dwarfloc.OpSExt) && read.a.op == dwarfloc.OpDeref {
			t.extend, read = read, read.a
		}
		if read.op != dwarfloc.OpDeref || read.divides {
			t.extend = nil
			t.size = 8
			continue
		}
		t.unit.read = read
		t.size = int(read.size)
		if _, off, ok := f.inFrame(read); ok && loadable(t.size) && off%int64(t.size) == 0 {
			frame = append(frame, t)
		}
	}
	f.merge(frame)
}

// inFrame tells at which register and offset a read is, if it is in the stack
// frame of the site.
func (f *fetcher) inFrame(read *node) (reg uint64, off int64, ok bool) {
	a := read.a
	if a.op == dwarfloc.OpAdd && a.b.isConst() {
		off, a = int64(a.b.k), a.a
	}
	ok = a.op == dwarfloc.OpReg && (a.k == uint64(f.o.Arch.SP) || slices.Contains(f.o.Frame, uint16(a.k)))
	return a.k, off, ok
}

// maxSpan is how many bytes one read for several arguments covers at most.
const maxSpan = 64

// merge joins reads of neighbouring memory in one stack frame. The arguments then
// fault together or not at all, and so they would one by one: a frame is on a
// stack that is mapped as a whole. Of other memory this is not known, and one
// argument's bad page must not take another with it.
//
// BPF loads from the stack only what is aligned (check_ptr_alignment in
// kernel/bpf/verifier.c is strict there on all machines), hence only arguments
// that are aligned with respect to the register are joined, and the buffer
// begins at the same offset within 8 bytes as they do.
func (f *fetcher) merge(frame []*fetch) {
	at := func(t *fetch) (uint64, int64) {
		reg, off, _ := f.inFrame(t.unit.read)
		return reg, off
	}
	slices.SortStableFunc(frame, func(a, b *fetch) int {
		ra, oa := at(a)
		rb, ob := at(b)
		return cmp.Or(cmp.Compare(ra, rb), cmp.Compare(oa, ob))
	})
	for i := 0; i < len(frame); {
		first := frame[i]
		reg, off := at(first)
		u, span := first.unit, uint64(first.size)
		joined := []*fetch{first}
		for i++; i < len(frame); i++ {
			r, o := at(frame[i])
			end := uint64(o-off) + uint64(frame[i].size)
			if r != reg || uint64(o-off) > maxSpan || end > maxSpan {
				break
			}
			span = max(span, end)
			joined = append(joined, frame[i])
		}
		if len(joined) == 1 {
			continue
		}
		u.fetches, u.span = joined, int(span)
		for _, t := range joined[1:] {
			f.units = slices.DeleteFunc(f.units, func(v *unit) bool { return v == t.unit })
			_, o := at(t)
			t.slot = int(o - off) // from the first one, until there is a buffer
			t.unit = u
		}
		slices.SortFunc(joined, func(a, b *fetch) int { return cmp.Compare(a.arg, b.arg) })
	}
}

// helperCalls counts the calls on the longest path.
func (f *fetcher) helperCalls() int {
	n := 0
	for _, u := range f.units {
		n += u.fetches[0].value.calls
	}
	return n
}

func (f *fetcher) emit() {
	calls := f.helperCalls() > 0
	// One read alone, or no read at all, leaves nothing that could destroy R2.
	f.err = asm.R9
	if !calls || len(f.units) == 1 && f.units[0].read != nil {
		f.err = asm.R2
	}
	if calls {
		f.comment = f.unitComment(f.units[0])
		f.reg(asm.Mov, asm.R6, asm.R1)
		f.ctx = asm.R6
	}
	for i, u := range f.units {
		if i > 0 || !calls {
			f.comment = f.unitComment(u)
		}
		if u.read != nil {
			f.emitRead(u)
		} else {
			f.emitComputation(u)
		}
	}
	for i := range f.fetches {
		f.deliver(&f.fetches[i])
	}
	f.deliverErr()
	if calls {
		f.reg(asm.Mov, asm.R1, asm.R6)
	}
}

// scratch are the registers to compute a unit in, besides R0.
func (f *fetcher) scratch() regSet {
	return (callerSaved | setOf(asm.R7, asm.R8)) &^ setOf(asm.R0, f.err)
}

// emitRead reads one argument, or several at once, to where they wait. Faults of
// earlier reads, for its address, lead behind it: R0 is negative there if any
// read faulted.
func (f *fetcher) emitRead(u *unit) {
	var done label
	f.fault = &done
	first := u.fetches[0]
	if u.span > 0 {
		_, off, _ := f.inFrame(u.read)
		skew := int(off & 7)
		room := (skew + u.span + 7) &^ 7
		buf := f.push(room) + skew
		f.compute(u.read.a, asm.R3, f.scratch()&^setOf(asm.R3))
		f.callRead(buf, u.span)
		for _, t := range u.fetches {
			t.slot += buf
		}
	} else {
		first.slot = f.push(8)
		temp := u.read.a.calls > 0 && (u.read.a.narrow || !loadable(first.size))
		f.readSlot = first.slot
		if temp {
			// A fault must leave 0 where the value will be looked for. Otherwise
			// the helper sees to it, as all reads go there and all are 8 bytes wide.
			f.readSlot = f.push(8)
			f.clearSlot(first.slot)
		}
		f.read(u.read, first.slot, f.scratch())
		if temp {
			f.pop(8)
		}
	}
	f.bind(&done)

	// Without a jump, so that the verifier need not go both ways through the
	// program behind. Helpers return 0 or a negative errno.
	var mask int32
	for _, t := range u.fetches {
		mask |= 1 << t.arg
	}
	if mask == 1 {
		f.imm(asm.RSh, asm.R0, 63)
	} else {
		f.imm(asm.ArSh, asm.R0, 63)
		f.imm(asm.And, asm.R0, mask)
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
	var done label
	f.fault = &done
	t := u.fetches[0]
	bit := int32(1) << t.arg
	if f.hasErr {
		f.imm(asm.Or, f.err, bit)
	} else {
		f.imm(asm.Mov, f.err, bit)
	}
	f.hasErr = true
	t.slot = f.push(8)
	f.clearSlot(t.slot)
	if t.value.calls > 0 {
		f.readSlot = f.push(8)
	}
	f.compute(t.value, asm.R0, f.scratch())
	if t.value.calls > 0 {
		f.pop(8)
	}
	f.add(asm.StoreMem(asm.R10, int16(t.slot), asm.R0, asm.DWord))
	f.imm(asm.Xor, f.err, bit)
	f.bind(&done)
}

// deliver sets an argument's register.
func (f *fetcher) deliver(t *fetch) {
	dst := asm.R3 + asm.Register(t.arg)
	switch {
	case t.value == nil:
		f.comment = f.note(f.args[t.arg].Name + ": not fetched: " + t.reason.String())
		f.imm(asm.Mov, dst, 0)
	case t.unit == nil:
		free := (callerSaved | calleeSaved) &^ setOf(f.ctx)
		for r := asm.R3; r <= dst; r++ {
			free &^= setOf(r)
		}
		if f.hasErr {
			free &^= setOf(f.err)
		}
		f.comment = f.argComment(t)
		f.compute(t.value, dst, free)
	case t.extend != nil && t.extend.op == dwarfloc.OpSExt:
		f.loadSlot(dst, t.slot, t.size)
		f.signExtend(dst, int(t.extend.size))
	case t.extend != nil && loadable(t.size) && loadable(int(t.extend.size)):
		slot := t.slot
		if f.o.BigEndian {
			slot += t.size - int(t.extend.size)
		}
		f.loadSlot(dst, slot, int(t.extend.size))
	default:
		f.loadSlot(dst, t.slot, t.size)
		if t.extend != nil {
			f.zeroExtend(dst, int(t.extend.size))
		}
	}
}

// deliverErr sets R2.
func (f *fetcher) deliverErr() {
	if f.missing != 0 {
		var parts []string
		for _, u := range f.unfetched {
			parts = append(parts, f.args[u.Arg].Name+": "+u.Reason.String())
		}
		f.comment = f.note("err: " + strings.Join(parts, "; "))
	} else if len(f.args) == 0 {
		f.comment = f.note("no arguments")
	}
	if !f.hasErr {
		f.imm(asm.Mov, asm.R2, f.missing)
		return
	}
	f.move(asm.R2, f.err)
	if f.missing != 0 {
		f.imm(asm.Or, asm.R2, f.missing)
	}
}

// note makes a comment of a text and the site.
func (f *fetcher) note(text string) string {
	if f.o.Site != "" {
		text += " · " + f.o.Site
	}
	return text
}

func (f *fetcher) argComment(t *fetch) string {
	arg := &f.args[t.arg]
	return f.note(arg.Name + ": " + arg.Loc.Text(f.o.Arch))
}

func (f *fetcher) unitComment(u *unit) string {
	parts := make([]string, len(u.fetches))
	for i, t := range u.fetches {
		arg := &f.args[t.arg]
		parts[i] = arg.Name + ": " + arg.Loc.Text(f.o.Arch)
	}
	return f.note(strings.Join(parts, ", "))
}
