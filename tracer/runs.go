package tracer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// A summary of runs stores what it counts by in the map of open runs, each argument in a slot of its own: the program where a run ends
// does not know at which site it began. It puts the results beside that, with the duration, and counts the run as a
// summary of hits does, with the entry as its arguments.

// runDuration is the name of the argument that is a run's duration.
const runDuration = "$duration"

// run is what is counted of the runs of a span.
type run struct {
	span  *plan.Span
	used  []usedArg // first what the condition needs of the beginning
	byEnd bool      // the key has the site where the run ended
	keyAt int       // of the key in the entry
	size  int       // bytes of an entry
	open  *ebpf.Map
}

// usedArg is an argument that is counted, and its slot in the entry.
type usedArg struct {
	plan *plan.Plan // nil for the duration
	ref
	slot prologue.Field
}

// The layout of an entry, after the head that entries of open runs have: bits of what was not fetched, the site of the end, and where the
// run began, as a key has it. Slots follow, and the key.
const (
	runMissing = atRecord
	runEnd     = runMissing + 8
	runCaller  = runEnd + 8
	runSlots   = runCaller + keyStackSize
)

// The layout of what a key of runs has after its head.
const (
	runOutcome = keyHead
	runEndSite = runOutcome + 8
	runHead    = 16
)

// What became of a run.
const (
	outcomeEnded = iota
	outcomeAgain
	outcomeOpen
)

var outcomes = []string{"", "began again", "not ended"}

// maxUsed is how many arguments have a bit.
const maxUsed = 64

func newRun(p *plan.Span) *run {
	r := &run{span: p}
	if p.If != nil {
		for i := range p.If.Begin {
			r.used = append(r.used, usedArg{plan: p.Begin, ref: ref(i)})
		}
	}
	return r
}

// own returns the names of the arguments that are not the definition's.
func (r *run) own() (names []string) {
	for _, p := range []*plan.Plan{r.span.Begin, r.span.End} {
		for _, a := range p.Definition.Args {
			if !slices.ContainsFunc(r.span.Definition.Args, func(b probe.Arg) bool { return a.Name == b.Name }) && a.Name != "retval" {
				names = append(names, a.Name)
			}
		}
	}
	return names
}

// argument returns the index of an argument among those that are used, or -1.
func (r *run) argument(name string) int {
	u := usedArg{ref: -1}
	switch {
	case name == runDuration:
		u.ref = 0
	case slices.Contains(r.own(), name):
	default:
		for _, p := range []*plan.Plan{r.span.Begin, r.span.End} {
			if u.ref < 0 {
				u.plan, u.ref = p, ref(argument(p, name))
			}
		}
	}
	if u.ref < 0 {
		return -1
	}
	return r.use(u)
}

// use returns the index of something among what is used.
func (r *run) use(u usedArg) int {
	if at := slices.IndexFunc(r.used, func(x usedArg) bool { return x.plan == u.plan && x.ref == u.ref }); at >= 0 {
		return at
	}
	r.used = append(r.used, u)
	return len(r.used) - 1
}

// layOut gives everything its place in the entry. Without runs there is nothing to do.
func (r *run) layOut(c *counted) error {
	if r == nil {
		return nil
	}
	if len(r.used) > maxUsed {
		return fmt.Errorf("%d arguments of runs: at most %d", len(r.used), maxUsed)
	}
	at := runSlots
	for i := range r.used {
		u := &r.used[i]
		u.slot = prologue.Field{Offset: at, Size: 8}
		if u.plan != nil {
			u.slot.Size = c.room(i)
		}
		at += u.slot.Size
	}
	r.keyAt, r.size = at, at+c.key
	return nil
}

// openSpans loads and attaches the programs that count runs.
func (s *Summary) openSpans(ctx context.Context, r *instances.Running, o *Options, who processes) error {
	x := s.session.spans
	for _, c := range s.of {
		x.sizes = append(x.sizes, c.run.size-atRecord)
	}
	if err := x.makeMaps(); err != nil {
		return err
	}
	for i, c := range s.of {
		c.run.open = x.open[i]
	}
	// The programs of instances that have what is counted in the same places are the same.
	from := make(map[programKey][]source)
	size := s.session.keyOf(true)
	err := s.session.load(r, func(n, instance int) programKey {
		key, f := size(n, instance), s.of[n/2].run.fields(s.session.plans[n], instance)
		key.counts = fmt.Sprint(f)
		from[key] = f
		return key
	}, func(k programKey) asm.Instructions {
		w := &summaryWriter{counted: s.of[k.plan/2], writer: &writer{prefix: "count"}, base: asm.R8}
		w.key, w.fields = w.run.keyAt, w.slots()
		if k.plan%2 == 0 {
			return w.begin(x, k.plan/2, k.record, from[k], s.overflow, who)
		}
		return w.end(x, k.plan/2, k.record, from[k], s.overflow, who)
	})
	if err != nil {
		return err
	}
	return s.session.attachSpans(ctx, r, o, who)
}

// fields returns where an instance of a plan has what is used.
func (r *run) fields(p *plan.Plan, instance int) []source {
	out := make([]source, len(r.used))
	for i, u := range r.used {
		if u.plan == p {
			out[i] = sourceOf(p, instance, u.ref)
		}
	}
	return out
}

// slots returns where the entry has what is counted.
func (c *counted) slots() (f fields) {
	for _, a := range c.args {
		f.Key = append(f.Key, c.source(0, a))
	}
	for _, k := range c.sums {
		f.Sums = append(f.Sums, c.source(0, k.arg).Field)
	}
	for _, k := range c.hists {
		f.Hists = append(f.Hists, c.source(0, k.arg).Field)
	}
	return f
}

// keep copies what a plan fetches from the record at R8 to the slots of the entry at R9, and makes R7 the bits of what it did
// not fetch, in the order of the slots.
func (w *summaryWriter) keep(p *plan.Plan, size int, from []source) {
	w.add(useDoubtful(p, size)...)
	w.add(asm.Mov.Imm(asm.R3, 0))
	for i, u := range w.run.used {
		if u.plan != p {
			continue
		}
		if bit := from[i].Bit; bit >= 0 {
			w.add(asm.Mov.Reg(asm.R1, asm.R7), asm.RSh.Imm(asm.R1, int32(bit)), asm.And.Imm(asm.R1, 1), asm.LSh.Imm(asm.R1, int32(i)), asm.Or.Reg(asm.R3, asm.R1))
		} else {
			w.add(asm.LoadImm(asm.R1, 1<<i, asm.DWord), asm.Or.Reg(asm.R3, asm.R1))
		}
		n := min(from[i].Size, u.slot.Size)
		w.add(copyWords(asm.R9, u.slot.Offset, asm.R8, from[i].Offset, n)...)
		w.add(asm.Mov.Imm(asm.R0, 0))
		for ; n < u.slot.Size; n += 8 {
			w.add(asm.StoreMem(asm.R9, int16(u.slot.Offset+n), asm.R0, asm.DWord))
		}
		w.add(zeros(asm.R9, u.slot.Offset, from[i].Zeros)...)
	}
	w.add(asm.Mov.Reg(asm.R7, asm.R3))
}

// bits returns the bits of what a plan fetches.
func (r *run) bits(p *plan.Plan) (bits uint64) {
	for i, u := range r.used {
		if u.plan == p {
			bits |= 1 << i
		}
	}
	return bits
}

// Where a program that counts a run that began again keeps registers, on the stack below what spans have there.
const (
	savedErr    = -spanStack - 8
	savedRecord = -spanStack - 16
)

// began writes how a run is counted that was open where another one begins: R9 is what is stored of it. Labels have a prefix.
func (w *summaryWriter) began(prefix string, overflow *ebpf.Map) asm.Instructions {
	a := &summaryWriter{counted: w.counted, fields: w.fields, writer: &writer{prefix: prefix}, base: w.base, key: w.key, outcome: outcomeAgain}
	a.add(
		asm.StoreMem(asm.RFP, savedErr, asm.R7, asm.DWord), asm.StoreMem(asm.RFP, savedRecord, asm.R8, asm.DWord),
		asm.Mov.Reg(asm.R8, asm.R9), asm.LoadMem(asm.R7, asm.R8, runMissing, asm.DWord),
	)
	done := a.label()
	a.tally(overflow, done)
	a.here(done)
	a.add(
		asm.Mov.Reg(asm.R9, asm.R8),
		asm.LoadMem(asm.R7, asm.RFP, savedErr, asm.DWord), asm.LoadMem(asm.R8, asm.RFP, savedRecord, asm.DWord),
	)
	return a.insns
}

// begin returns the program that runs where a run begins.
func (w *summaryWriter) begin(x *spans, span int, rec record, from []source, overflow *ebpf.Map, who processes) asm.Instructions {
	w.add(x.entered(span, rec, who, w.began("again", overflow))...)
	w.add(asm.FnGetCurrentPidTgid.Call(), asm.StoreMem(asm.R9, atTask, asm.R0, asm.DWord))
	w.add(asm.Mov.Reg(asm.R1, asm.R9), asm.Add.Imm(asm.R1, atComm), asm.Mov.Imm(asm.R2, commSize), asm.FnGetCurrentComm.Call())
	w.keep(w.run.span.Begin, rec.size, from)
	w.add(
		asm.LoadImm(asm.R1, int64(^w.run.bits(w.run.span.Begin)), asm.DWord), // the others are not known yet
		asm.Or.Reg(asm.R7, asm.R1),
		asm.StoreMem(asm.R9, runMissing, asm.R7, asm.DWord),
	)
	if slices.Contains(w.what.By, byCaller) || slices.Contains(w.what.By, byStack) {
		w.add(asm.Mov.Reg(asm.R8, asm.R9),
			asm.LoadMem(asm.R9, asm.RFP, spanCookie, asm.DWord), asm.RSh.Imm(asm.R9, cookieEntry), asm.And.Imm(asm.R9, 1))
		w.caller(runCaller)
		if slices.Contains(w.what.By, byStack) {
			w.stackIDs(runCaller)
		}
		w.add(asm.Mov.Reg(asm.R9, asm.R8))
	}
	w.add(
		asm.FnKtimeGetNs.Call(), // last: what this program does is not part of the run
		asm.StoreMem(asm.R9, atTime, asm.R0, asm.DWord),
		asm.Ja.Label(labelExit),
	)
	w.add(x.excluded(span, w.began("left", overflow))...)
	full := x.count(countFull)
	full[0] = full[0].WithSymbol(labelFull)
	w.add(full...)
	w.add(asm.Mov.Imm(asm.R0, 0).WithSymbol(labelExit), asm.Return())
	return w.insns
}

// end returns the program that runs where a run ends.
func (w *summaryWriter) end(x *spans, span int, rec record, from []source, overflow *ebpf.Map, who processes) asm.Instructions {
	w.add(x.ended(span, rec, who, runMissing, runSlots)...)
	w.keep(w.run.span.End, rec.size, from)
	w.add(asm.LoadMem(asm.R1, asm.RFP, spanCookie, asm.DWord), asm.LSh.Imm(asm.R1, 64-siteBits), asm.RSh.Imm(asm.R1, 64-siteBits),
		asm.StoreMem(asm.R9, runEnd, asm.R1, asm.DWord))
	for i, u := range w.run.used {
		if u.plan == nil {
			w.add(asm.LoadMem(asm.R1, asm.RFP, spanDuration, asm.DWord), asm.StoreMem(asm.R9, int16(w.run.used[i].slot.Offset), asm.R1, asm.DWord))
		}
	}
	w.add(
		asm.Mov.Reg(asm.R8, asm.R9),
		asm.LoadMem(asm.R1, asm.R8, runMissing, asm.DWord),
		asm.LoadImm(asm.R2, int64(w.run.bits(w.run.span.Begin)), asm.DWord),
		asm.And.Reg(asm.R1, asm.R2),
		asm.Or.Reg(asm.R7, asm.R1),
	)
	w.tally(overflow, labelOwn)
	w.add(x.left(span)...)
	return w.insns
}

// writeOutcome writes what a key of runs has after its head.
func (w *summaryWriter) writeOutcome() {
	w.add(asm.Mov.Imm(asm.R0, int32(w.outcome)), asm.StoreMem(w.base, int16(w.key+runOutcome), asm.R0, asm.DWord))
	if w.run.byEnd {
		w.add(asm.LoadMem(asm.R0, asm.R8, runEnd, asm.DWord))
	} else {
		w.add(asm.Mov.Imm(asm.R0, 0))
	}
	w.add(asm.StoreMem(w.base, int16(w.key+runEndSite), asm.R0, asm.DWord))
}

// outcome returns what became of the runs that a key counts.
func (c *counted) outcome(key []byte) string {
	if c.run == nil {
		return ""
	}
	return outcomes[binary.NativeEndian.Uint64(key[runOutcome:])]
}

// siteOf returns the site at which an argument was fetched, or -1: that where a hit was, or a run began, or that where it ended.
func (c *counted) siteOf(site int, key []byte, arg int) int {
	p, _ := c.of(arg)
	if p == c.plan {
		return site
	}
	if end := int(binary.NativeEndian.Uint64(key[runEndSite:])); c.run.byEnd && end < len(p.Sites) {
		return end
	}
	return -1
}

// openRuns adds the runs that have not ended to their rows.
func (c *counted) openRuns(rowFor func(key []byte) *Row) error {
	if c.run == nil {
		return nil
	}
	var key, entry []byte
	entries := c.run.open.Iterate()
	for entries.Next(&key, &entry) {
		c.addTo(rowFor(c.keyOf(entry)), c.valueOf(entry))
	}
	if err := entries.Err(); err != nil && !errors.Is(err, ebpf.ErrIterationAborted) {
		return err
	}
	return nil
}

// word reads a word of an entry.
func word(entry []byte, at int) uint64 { return binary.NativeEndian.Uint64(entry[at:]) }

// fetched reports whether an argument is in the entry of a run that has begun, and returns its first word.
func (r *run) fetched(entry []byte, arg int) (n uint64, is bool) {
	if arg < 0 || word(entry, runMissing)>>arg&1 != 0 {
		return 0, false
	}
	return word(entry, r.used[arg].slot.Offset), true
}

// keyOf returns the key that a program would make of an entry (writeKey).
func (c *counted) keyOf(entry []byte) []byte {
	key := make([]byte, c.key)
	put := func(at int, n uint64) { binary.NativeEndian.PutUint64(key[at:], n) }
	head := uint64(0)
	if c.bySit {
		head = word(entry, atCookie) & (1<<siteBits - 1)
	}
	for i, arg := range c.args {
		if _, is := c.run.fetched(entry, arg); !is {
			head |= 1 << (32 + i)
		}
	}
	put(0, head)
	put(runOutcome, outcomeOpen)
	for _, p := range c.parts {
		switch p.what {
		case bySite, byFunction:
		case byCaller, byStack:
			copy(key[p.at:p.at+p.size], entry[runCaller:])
		case byComm:
			copy(key[p.at:], entry[atComm:atComm+commSize])
		case byPID:
			put(p.at, word(entry, atTask)>>32)
		case byTID:
			put(p.at, word(entry, atTask)&(1<<32-1))
		default:
			for _, x := range p.pieces {
				if arg := c.args[x.arg]; arg >= 0 {
					copy(key[x.at:x.at+x.size], entry[c.run.used[arg].slot.Offset:])
				}
			}
		}
	}
	return key
}

// valueOf returns the value that a program would make of an entry alone (tally).
func (c *counted) valueOf(entry []byte) []byte {
	v := make([]byte, c.value)
	put := func(at int, n uint64) { binary.NativeEndian.PutUint64(v[at:], n) }
	put(0, 1)
	for _, k := range c.sums {
		n, is := c.run.fetched(entry, k.arg)
		if !is {
			put(k.at+totalMissing, 1)
			continue
		}
		put(k.at+totalSum, n)
		if k.signed {
			n ^= 1 << 63
		}
		put(k.at+totalMax, n)
		put(k.at+totalMin, ^n)
	}
	for _, k := range c.hists {
		if n, is := c.run.fetched(entry, k.arg); is {
			put(k.at+8+8*k.slot(n), 1)
		} else {
			put(k.at, 1)
		}
	}
	return v
}
