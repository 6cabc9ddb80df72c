package tracer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/inside/hooks"
	"github.com/bpfprologue/bpfprologue/internal/kernelerr"
	"github.com/bpfprologue/bpfprologue/plan"
)

// A span is one event for a run: a program where the run begins stores what it fetches in a map,
// by process, frame and body, and a program where it ends finds that, adds the time and the result,
// and reports both. So only whole runs are reported, and what does not fit together is counted:
//
//   - an end without a beginning: the run began before the probes were attached, or at a way in
//     that has no probe. At ways out that execution also passes without a run this means nothing
//   - a beginning while a run of the same body in the same frame is open: that one ended by
//     longjmp, or by a signal handler that did not return, or at a way out that has no probe. At
//     ways in with Way.Again it is another turn of a loop, and the run goes on
//
// Go's stacks move while a function runs; $frame is a goroutine's own there.

// spans is the part of a session that pairs beginnings and ends.
type spans struct {
	plans  []*plan.Span
	open   []*ebpf.Map // of each span
	counts *ebpf.Map
	zero   *ebpf.Map // a value of zeros, for each record size
	bodies map[hooks.Body]uint64
	first  int   // the number of the first one in cookies
	sizes  []int // bytes of the record at the beginning, at most
}

// Unpaired counts what was not one run.
type Unpaired struct {
	Ends   uint64 // ends without a beginning
	Begins uint64 // beginnings that another beginning in the same frame followed
	// Open is runs that have not ended yet, or whose end a return probe did not see: that of a function in C sees no call that is
	// nested deeper than 64. In a session without spans it is calls of functions with such probes.
	Open uint64
	Full uint64 // beginnings for which there was no room
}

// maxOpen is how many runs of one definition can be open at a time.
const maxOpen = 1 << 14

// The cookie of a probe of a span, with the span's index where a Dispatch has the prologue's number.
const (
	siteBits = 24 // the site's index in its plan, in the lowest bits
	bodyBits = 23 // then the number of its body
	// Then there is cookieEntry.
	spanBits = 15 // then the span's index
	spanAt   = cookieEntry + 1
	againBit = 63 // in the attach cookie: the probe also fires without a run beginning, or ending, there
)

// Offsets in the value of spans.counts.
const (
	countEnds   = 0
	countBegins = 8
	countFull   = 16
	countNot    = 24 // the condition did not hold
	countUnsure = 32 // it could not be computed
	countFalse  = 40 // it was false where the run began
	countsSize  = 48
)

// The layout of what follows the record of the beginning in an event of a span.
const (
	endDuration = 0
	endCookie   = 8
	endErr      = 16
	endRecord   = 24
)

// OpenSpans is Open for spans: a hit is a whole run, with its results and its duration.
func OpenSpans(ctx context.Context, r *instances.Running, list []*plan.Span, o Options) (s *Session, err error) {
	s, err = newSpans(list, &o)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
			s = nil
		}
	}()
	if err != nil {
		return s, err
	}
	who, err := s.prepare(r, &o)
	if err != nil {
		return s, err
	}
	for _, p := range list {
		size := 0
		for i := range p.Begin.Instances {
			size = max(size, recordSize(p.Begin, &p.Begin.Instances[i]))
		}
		s.spans.sizes = append(s.spans.sizes, size)
	}
	if err := s.spans.makeMaps(); err != nil {
		return s, err
	}
	err = s.load(r, s.keyOf(true), func(k programKey) asm.Instructions {
		if k.plan%2 == 0 {
			return s.spans.begin(s, k.plan/2, k.record, who)
		}
		return s.spans.end(s, k.plan/2, k.record, who)
	})
	if err != nil {
		return s, err
	}
	return s, s.attachSpans(ctx, r, &o, who)
}

// newSpans returns a session of spans without anything that must be closed, also with an error.
func newSpans(list []*plan.Span, o *Options) (*Session, error) {
	s := &Session{spans: &spans{plans: list, bodies: make(map[hooks.Body]uint64)}}
	for _, p := range list {
		s.plans = append(s.plans, p.Begin, p.End)
	}
	if err := s.join(o.With, len(list), 1<<spanBits-1); err != nil {
		return s, err
	}
	s.spans.first = s.first
	switch {
	case o.Stack != 0:
		return s, errStackOfRuns
	case o.Sample > 1 || o.MaxRate > 0:
		return s, errors.New("a sample of runs: their beginnings and ends would not be of the same runs")
	}
	return s, nil
}

// attachSpans attaches the programs. The kernel runs those of one address in the reverse order of their attaching: where
// a run begins right after another, that must end first.
func (s *Session) attachSpans(ctx context.Context, r *instances.Running, o *Options, who processes) (err error) {
	if o.Cost != nil {
		if *o.Cost, err = measureCost(s.spans.plans); err != nil {
			return err
		}
	}
	return s.attachAll(ctx, r, o, who, func(_ int, p *plan.Plan) func(int) uint64 {
		return func(site int) uint64 { return s.spans.cookie(site, &p.Sites[site]) }
	})
}

// makeMaps makes the maps of open runs, whose sizes are known.
func (x *spans) makeMaps() (err error) {
	if x.counts, err = ebpf.NewMap(&ebpf.MapSpec{Name: "counts", Type: ebpf.Array, KeySize: 4, ValueSize: countsSize, MaxEntries: 1}); err != nil {
		return fmt.Errorf("make the counters: %w", kernelerr.Explain(err))
	}
	largest := 0
	for i := range x.plans {
		largest = max(largest, x.entrySize(i))
		m, err := ebpf.NewMap(&ebpf.MapSpec{Name: "open", Type: ebpf.Hash, KeySize: spanKeySize, ValueSize: uint32(x.entrySize(i)), MaxEntries: maxOpen})
		if err != nil {
			return fmt.Errorf("make the map of open runs: %w", kernelerr.Explain(err))
		}
		x.open = append(x.open, m)
	}
	if x.zero, err = ebpf.NewMap(&ebpf.MapSpec{Name: "zero", Type: ebpf.Array, KeySize: 4, ValueSize: uint32(largest), MaxEntries: 1}); err != nil {
		return fmt.Errorf("make a value of zeros: %w", kernelerr.Explain(err))
	}
	return nil
}

// entrySize returns how many bytes are stored of an open run: a head and the record, and for a condition then, at missingAt,
// the bits of what was not fetched.
func (x *spans) entrySize(span int) int {
	if x.plans[span].If != nil {
		return x.missingAt(span) + 8
	}
	return x.missingAt(span)
}

func (x *spans) missingAt(span int) int { return atRecord + x.sizes[span] }

// cookie returns the cookie of a site's probe.
func (x *spans) cookie(index int, site *plan.Site) uint64 {
	b := inside.Body(site.Site)
	n, known := x.bodies[b]
	if !known {
		n = uint64(len(x.bodies))
		x.bodies[b] = n
	}
	return uint64(index)&(1<<siteBits-1) | n&(1<<bodyBits-1)<<siteBits | entryBit(site)
}

// The key of an open run, on the stack of a program: the process, the frame, the body's number.
const (
	spanKeySize  = 24
	spanKey      = -spanKeySize
	spanCookie   = spanKey - 8
	spanDuration = spanCookie - 8
	spanStack    = -spanDuration
	labelExit    = "exit"
	labelFull    = "full"
	labelFound   = "found"
	labelEntered = "entered"
	labelUnknown = "unknown"
	labelOwn     = "own"
	labelNot     = "not"
	labelUnsure  = "unsure"
	labelFalse   = "false"
	labelVague   = "vague"
)

// head writes what both programs begin with: R6 is the context, R7 err, R8 the record, and the
// key and the cookie are on the stack.
func (x *spans) head(rec record, span int, who processes) asm.Instructions {
	insns := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.Mov.Reg(asm.R7, asm.R2),
		asm.Mov.Reg(asm.R8, asm.R3),
	}
	insns = append(insns, who.filter(spanStack, labelExit)...)
	return append(insns,
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.FnGetAttachCookie.Call(),
		asm.LoadImm(asm.R1, int64(-1)<<againBit|1<<spanAt-1, asm.DWord),
		asm.And.Reg(asm.R0, asm.R1),
		asm.LoadImm(asm.R1, int64(x.first+span)<<spanAt, asm.DWord),
		asm.Or.Reg(asm.R0, asm.R1),
		asm.StoreMem(asm.RFP, spanCookie, asm.R0, asm.DWord),
		asm.LSh.Imm(asm.R0, 64-siteBits-bodyBits),
		asm.RSh.Imm(asm.R0, 64-bodyBits),
		asm.StoreMem(asm.RFP, spanKey+16, asm.R0, asm.DWord),
		// Frames of threads are at different addresses, and a goroutine can change its thread.
		asm.FnGetCurrentPidTgid.Call(),
		asm.RSh.Imm(asm.R0, 32),
		asm.StoreMem(asm.RFP, spanKey, asm.R0, asm.DWord),
		asm.LoadMem(asm.R0, asm.R8, int16(rec.frame), asm.DWord),
		asm.StoreMem(asm.RFP, spanKey+8, asm.R0, asm.DWord),
	)
}

// again jumps to a label if the probe also fires without a run beginning, or ending, there.
func again(label string) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.RFP, spanCookie, asm.DWord),
		asm.JSLT.Imm(asm.R1, 0, label),
	}
}

// keyTo sets R1 and R2 to the map and the key.
func (x *spans) keyTo(span int) asm.Instructions {
	return asm.Instructions{
		asm.LoadMapPtr(asm.R1, x.open[span].FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, spanKey),
	}
}

// count adds 1 to a counter.
func (x *spans) count(at uint32) asm.Instructions {
	return asm.Instructions{
		asm.LoadMapValue(asm.R1, x.counts.FD(), at),
		asm.Mov.Imm(asm.R2, 1),
		asm.StoreXAdd(asm.R1, asm.R2, asm.DWord),
	}
}

// entered writes what a program begins with that runs where a run begins: R9 is what is stored of it, with its cookie. between, if not nil,
// is for the run that was open in the same frame, with R9 as that; it may change neither R7 nor R8. It leaves for labelFalse or labelVague if the
// condition says so.
func (x *spans) entered(span int, rec record, who processes, between asm.Instructions) asm.Instructions {
	insns := x.head(rec, span, who)
	if p := x.plans[span]; p.If != nil && len(p.If.Start) > 0 {
		// As in ended.
		w := finish{writer: &writer{prefix: "if"}, span: p, begins: true}
		w.add(asm.Mov.Reg(asm.R4, asm.R7))
		w.add(useDoubtful(p.Begin, rec.size)...)
		w.condition(p.If.Start, labelFalse, labelVague)
		w.add(asm.Mov.Reg(asm.R7, asm.R4))
		insns = append(insns, w.insns...)
	}
	insns = append(insns, x.keyTo(span)...)
	insns = append(insns,
		asm.LoadMapValue(asm.R3, x.zero.FD(), 0),
		asm.Mov.Imm(asm.R4, 1), // BPF_NOEXIST
		asm.FnMapUpdateElem.Call(),
		asm.JEq.Imm(asm.R0, 0, labelFound),
		asm.JNE.Imm(asm.R0, -int32(unix.EEXIST), labelFull),
	)
	insns = append(insns, again(labelExit)...) // another turn of a loop: the run goes on
	insns = append(insns, x.count(countBegins)...)
	lookup := func() asm.Instructions {
		return append(x.keyTo(span), asm.FnMapLookupElem.Call(), asm.JEq.Imm(asm.R0, 0, labelExit), asm.Mov.Reg(asm.R9, asm.R0))
	}
	if between != nil {
		insns = append(append(append(insns, lookup()...), between...), asm.Ja.Label(labelEntered))
	}
	found := lookup()
	found[0] = found[0].WithSymbol(labelFound)
	insns = append(insns, found...)
	return append(insns,
		asm.LoadMem(asm.R1, asm.RFP, spanCookie, asm.DWord).WithSymbol(labelEntered),
		asm.StoreMem(asm.R9, atCookie, asm.R1, asm.DWord),
	)
}

// excluded writes what is done for a run that begins and for which the condition is false: if one is open in its frame, that was left.
// between, if not nil, is as in entered.
func (x *spans) excluded(span int, between asm.Instructions) (insns asm.Instructions) {
	p := x.plans[span]
	if p.If == nil || len(p.If.Start) == 0 {
		return nil
	}
	const remove = "remove-left"
	if !p.Definition.Options.Pass {
		add := x.count(countUnsure)
		add[0] = add[0].WithSymbol(labelVague)
		insns = append(append(insns, add...), asm.Ja.Label(remove))
	}
	add := x.count(countFalse)
	add[0] = add[0].WithSymbol(labelFalse)
	insns = append(insns, add...)
	turn := again(labelExit) // of a loop: the run goes on
	turn[0] = turn[0].WithSymbol(remove)
	insns = append(insns, turn...)
	insns = append(append(insns, x.keyTo(span)...), asm.FnMapLookupElem.Call(), asm.JEq.Imm(asm.R0, 0, labelExit), asm.Mov.Reg(asm.R9, asm.R0))
	insns = append(insns, x.count(countBegins)...)
	insns = append(insns, between...)
	insns = append(append(insns, x.keyTo(span)...), asm.FnMapDeleteElem.Call(), asm.Ja.Label(labelExit))
	return insns
}

// begin returns the program that runs where a run begins.
func (x *spans) begin(s *Session, span int, rec record, who processes) asm.Instructions {
	insns := x.entered(span, rec, who, x.report(s, span, "again-"))
	insns = append(insns, who.store(spanStack)...)
	insns = append(insns,
		asm.StoreMem(asm.R9, atErr, asm.R7, asm.DWord),
	)
	insns = append(insns, copyWords(asm.R9, atRecord, asm.R8, 0, rec.size)...)
	if p := x.plans[span]; p.If != nil {
		insns = append(insns, useDoubtful(p.Begin, rec.size)...)
		insns = append(insns, asm.StoreMem(asm.R9, int16(x.missingAt(span)), asm.R7, asm.DWord))
	}
	insns = append(insns,
		asm.Mov.Reg(asm.R1, asm.R9),
		asm.Add.Imm(asm.R1, atComm),
		asm.Mov.Imm(asm.R2, commSize),
		asm.FnGetCurrentComm.Call(),
		asm.FnKtimeGetNs.Call(), // last: what this program does is not part of the run
		asm.StoreMem(asm.R9, atTime, asm.R0, asm.DWord),
		asm.Ja.Label(labelExit),
	)
	insns = append(insns, x.excluded(span, x.report(s, span, "left-"))...)
	full := x.count(countFull)
	full[0] = full[0].WithSymbol(labelFull)
	insns = append(insns, full...)
	return append(insns, asm.Mov.Imm(asm.R0, 0).WithSymbol(labelExit), asm.Return())
}

// ended writes what a program begins with that runs where a run ends: R9 is what was stored when it began, and its duration
// is on the stack. It leaves for labelOwn if the condition does not hold.
func (x *spans) ended(span int, rec record, who processes, missingAt, valuesAt int) asm.Instructions {
	insns := x.head(rec, span, who)
	insns = append(insns, x.keyTo(span)...)
	insns = append(insns,
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, labelUnknown),
		asm.Mov.Reg(asm.R9, asm.R0),
		asm.FnKtimeGetNs.Call(),
		asm.LoadMem(asm.R1, asm.R9, atTime, asm.DWord),
		asm.Sub.Reg(asm.R0, asm.R1),
		asm.StoreMem(asm.RFP, spanDuration, asm.R0, asm.DWord),
	)
	p := x.plans[span]
	if p.If == nil {
		return insns
	}
	// The bits of what the condition needs are those of err, but for doubtful values that are to be used. R4 keeps err.
	w := finish{writer: &writer{prefix: "if"}, span: p, duration: spanDuration, missing: missingAt, values: valuesAt}
	w.add(asm.Mov.Reg(asm.R4, asm.R7))
	w.add(useDoubtful(p.End, rec.size)...)
	w.condition(p.If.All, labelNot, labelUnsure)
	w.add(asm.Mov.Reg(asm.R7, asm.R4))
	return append(insns, w.insns...)
}

// left writes what a program ends with that runs where a run ends: how the ends are counted that are of no run, or of one for which the
// condition does not hold, and that the run is no longer open.
func (x *spans) left(span int) (insns asm.Instructions) {
	for _, c := range []struct {
		label string
		count uint32
	}{{labelNot, countNot}, {labelUnsure, countUnsure}} {
		if p := x.plans[span]; p.If == nil || len(p.If.All) == 0 || c.label == labelUnsure && (p.Definition.Options.Pass || !p.If.Unsure()) {
			continue // nothing leads there
		}
		add := x.count(c.count)
		add[0] = add[0].WithSymbol(c.label)
		insns = append(append(insns, add...), asm.Ja.Label(labelOwn))
	}
	remove := x.keyTo(span)
	remove[0] = remove[0].WithSymbol(labelOwn)
	insns = append(insns, remove...)
	insns = append(insns, asm.FnMapDeleteElem.Call(), asm.Ja.Label(labelExit))
	unknown := again(labelExit)
	unknown[0] = unknown[0].WithSymbol(labelUnknown)
	insns = append(insns, unknown...)
	if p := x.plans[span]; p.Begin.Definition.Options.If == nil && (p.If == nil || len(p.If.Start) == 0) { // or the run was left out
		insns = append(insns, x.count(countEnds)...)
	}
	return append(insns, asm.Mov.Imm(asm.R0, 0).WithSymbol(labelExit), asm.Return())
}

// end returns the program that runs where a run ends.
func (x *spans) end(s *Session, span int, rec record, who processes) asm.Instructions {
	began := x.missingAt(span)
	insns := x.ended(span, rec, who, began, atRecord)
	insns = append(insns,
		asm.LoadMapPtr(asm.R1, s.events.FD()),
		asm.Mov.Imm(asm.R2, int32(began+endRecord+rec.size)),
		asm.Mov.Imm(asm.R3, 0),
		asm.FnRingbufReserve.Call(),
		asm.JEq.Imm(asm.R0, 0, labelFull),
		asm.Mov.Reg(asm.R6, asm.R0),
		asm.LoadMem(asm.R1, asm.RFP, spanDuration, asm.DWord),
		asm.StoreMem(asm.R6, int16(began+endDuration), asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, spanCookie, asm.DWord),
		asm.StoreMem(asm.R6, int16(began+endCookie), asm.R1, asm.DWord),
		asm.StoreMem(asm.R6, int16(began+endErr), asm.R7, asm.DWord),
	)
	insns = append(insns, copyWords(asm.R6, 0, asm.R9, 0, began)...)
	insns = append(insns, copyWords(asm.R6, began+endRecord, asm.R8, 0, rec.size)...)
	insns = append(insns,
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Imm(asm.R2, 0),
		asm.FnRingbufSubmit.Call(),
		asm.Ja.Label(labelOwn),
		asm.LoadMapValue(asm.R1, s.lost.FD(), 0).WithSymbol(labelFull),
		asm.Mov.Imm(asm.R2, 1),
		asm.StoreXAdd(asm.R1, asm.R2, asm.DWord),
		asm.Ja.Label(labelOwn),
	)
	return append(insns, x.left(span)...)
}

// runOf decodes one run of this session, or of one that is with it.
func (s *Session) runOf(d []byte) (*Hit, error) {
	h, cookie, err := head(d)
	if err != nil {
		return nil, err
	}
	of, span := s.of(int(cookie << 1 >> (spanAt + 1)))
	return of.spans.hit(h, cookie, span, d)
}

// hit decodes one run, of which the head is decoded.
func (x *spans) hit(h *Hit, cookie uint64, span int, d []byte) (*Hit, error) {
	if err := x.begun(h, cookie, span, d); err != nil {
		return nil, err
	}
	end := d[atRecord+x.sizes[span]:]
	if len(end) < endRecord {
		return nil, fmt.Errorf("an event of %d bytes: it has no room for the end of a run", len(d))
	}
	return h, x.endOf(h, end)
}

// unpaired adds what was not one run, in a session of OpenSpans, and in another one the calls whose return was not seen.
func (s *Session) unpaired(u *Unreported) (err error) {
	x := s.spans
	if x == nil {
		u.Open, err = s.calls.open()
		return err
	}
	d := make([]byte, countsSize)
	if err := x.counts.Lookup(uint32(0), &d); err != nil {
		return err
	}
	ne := binary.NativeEndian
	u.Ends, u.Begins, u.Full = ne.Uint64(d[countEnds:]), ne.Uint64(d[countBegins:]), ne.Uint64(d[countFull:])
	u.Without, u.Missing, u.Excluded = ne.Uint64(d[countNot:]), ne.Uint64(d[countUnsure:]), ne.Uint64(d[countFalse:])
	for i, m := range x.open {
		var key [spanKeySize]byte
		value := make([]byte, x.entrySize(i))
		entries := m.Iterate()
		for entries.Next(&key, &value) {
			u.Open++
		}
		if err := entries.Err(); err != nil && !errors.Is(err, ebpf.ErrIterationAborted) {
			return err
		}
	}
	return nil
}

func (x *spans) close() (errs []error) {
	for _, m := range append(x.open, x.counts, x.zero) {
		if m != nil {
			errs = append(errs, m.Close())
		}
	}
	return errs
}
