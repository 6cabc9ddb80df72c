// Package tracer runs definitions: it attaches a small program at every site, and
// reports each hit with the values of the arguments.
//
//	for h, err := range tracer.Trace(ctx, "vmlinux", "vfs_read count") {
//		if err != nil {
//			log.Fatal(err)
//		}
//		fmt.Println(h.Comm, h.Value("count"))
//	}
//
// Trace takes these steps, each of which has options:
//
//	img, err := dwarfloc.Open("vmlinux", nil)
//	running, err := instances.Find(img, instances.FindOptions{})
//	def, err := probe.Parse("vfs_read count")
//	p, err := plan.New(ctx, img, def, plan.Options{Target: running.Target()})
//	session, err := tracer.Open(ctx, running, []*plan.Plan{p}, tracer.Options{})
//	defer session.Close()
//	err = session.Run(ctx, func(h *tracer.Hit) error {
//		fmt.Println(h.Comm, p.Sites[h.Site], h.Values)
//		return nil
//	})
//
// A context bounds the time for which probes live: Run returns when it ends, with all probes silent, and
// Close ends them. Use context.WithTimeout so that a leaked session cannot live forever.
//
// All plans of a session are for one image; Options.With joins sessions of several, also of the kernel and of programs, to one stream of
// hits. Plans may have either convention. Probes end with
// the session, or with the process, however it ends. Hits by this process itself are not
// reported. A session needs Linux 5.15, for attach cookies, and root or CAP_BPF and
// CAP_PERFMON.
package tracer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/kernelerr"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// Options are options of Open. The zero Options report the hits of all processes.
type Options struct {
	// PID, if not 0, is the only process whose hits are reported, by its ID in the PID
	// namespace of this process.
	PID int
	// PIDs, if there are any, are more such processes: hits of PID and of these are reported.
	PIDs []int
	// Groups, if there are any, are directories of control groups (version 2): hits are reported of processes that are in one of them or
	// below, also of those that begin later. PID and PIDs exclude all others still.
	Groups []string
	// Descendants extends PID to the processes that descend from it, whenever they began: its children,
	// theirs, and so on. A process whose parents have ended no longer descends from PID, unless that is a
	// subreaper (prctl(2), PR_SET_CHILD_SUBREAPER). With the ID of this process, which is never reported
	// itself, it is whatever this process starts; another one must be in the initial PID namespace. It
	// needs BTF of the kernel: otherwise the error is ErrNoTree.
	Descendants bool
	// Buffer is the size of the ring buffer in bytes: a power of two, at least the page
	// size and at most 2 GiB. 0 means 1 MiB.
	Buffer int
	// Sample, if more than 1, lets one of so many hits through, chosen at random.
	Sample int
	// MaxRate, if not 0, is how many hits are let through in each second of the machine's clock.
	// Session.Limited counts the others.
	MaxRate int
	// Stack is which stacks a hit has. Each takes 1 KiB of the buffer.
	Stack Stacks
	// Cost, if not nil, is set by OpenSpans, and by OpenSummary for spans, to what the probes themselves add to the duration of a run, the
	// least and the most of all sites: it is measured, with an empty function of this process. Both are 0 if that is not known, as for
	// kernels.
	Cost *[2]time.Duration
	// With, if not nil, is a session that was opened before, of hits as this one or of runs as this one. Its Run reports the hits of both, in the
	// order in which they were, and its Unreported counts them; Run of this one is an error. Both are closed. Sample and Buffer are
	// those of the first session, and so is MaxRate, which is for all hits together.
	With *Session
	// End is as in instances.AttachOptions.
	End func(files []*os.File) error
	// Progress, if not nil, is called as sites of all plans are attached.
	Progress func(done, total int)

	inProgram bool // for tests: the program compares PID even where the kernel can
}

// Hit is one firing of a probe.
type Hit struct {
	Time     time.Duration // since the machine started, not counting suspensions
	PID, TID int           // in this process's PID namespace; of processes in another one: in the initial one
	Comm     string        // name of the task
	Plan     *plan.Plan
	Site     int          // index in Plan.Sites
	Err      uint64       // bit i is set if argument i was not fetched, or is doubtful and the plan's Doubt is plan.DoubtKeep
	Values   []plan.Value // valid until the next hit
	Stack    *Stack       // nil without Options.Stack

	// The rest is of a whole run, in a session of OpenSpans.
	Span     *plan.Span
	Duration time.Duration
	End      int          // index in Span.End.Sites; -1 without an end
	Results  []plan.Value // valid until the next hit
	// Outcome is "" of a run that ended. Else it is why there is no end, and so no duration and no results: "began again" if another one began
	// in the same frame, "not ended" if it was open when the session's Run ended.
	Outcome string
}

// Session is attached probes whose hits are reported.
type Session struct {
	// Attachments are the attached and the refused sites of each plan.
	Attachments []*instances.Attachment

	with     *Session   // whose Run reports the hits of this one; or nil
	others   []*Session // those that have this one as with
	first    int        // of the numbers of plans, or spans, in what they report: numbers of all sessions that are joined
	plans    []*plan.Plan
	programs []*instances.Dispatched
	events   *ebpf.Map
	lost     *ebpf.Map
	limits   limits
	calls    calls
	stack    Stacks
	who      processes                        // of OpenSampler
	samplers map[samplerKey]*ebpf.ProgramSpec // of Around
	reader   *ringbuf.Reader
	spans    *spans // nil if hits are reported as they are
}

// Open loads a program for each instance of some plans and attaches it at all sites of the
// instance, where r says that the image runs. The caller must close the session.
//
// A plan all sites of which are refused is no error if another one is attached: Attachments
// has what was refused. Other errors name the plan. They wrap an error of
// instances.ProgramSpecs or instances.Attach (instances.ErrTargetMismatch,
// instances.ErrRefused, plan.ErrMissingArgument, instances.ErrNotSupported,
// *prologue.StackError, the kernel's syscall.Errno) or an *ebpf.VerifierError. After an error
// nothing stays attached.
func Open(ctx context.Context, r *instances.Running, plans []*plan.Plan, o Options) (s *Session, err error) {
	s = &Session{plans: plans}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
			s = nil
		}
	}()
	if err := s.join(o.With, len(plans), maxPlans); err != nil {
		return s, err
	}
	who, err := s.prepare(r, &o)
	if err != nil {
		return s, err
	}
	err = s.load(r, s.keyOf(false), func(k programKey) asm.Instructions {
		return s.program(plans[0].Image.Arch(), k.convention, k.size, who)
	})
	if err != nil {
		return s, err
	}
	return s, s.attachAll(ctx, r, &o, who, func(i int, _ *plan.Plan) func(int) uint64 {
		return func(site int) uint64 { return uint64(s.first+i)<<32 | uint64(site) }
	})
}

// join makes the session one with another one, if that is not nil. They have at most so many plans, or spans, together.
func (s *Session) join(with *Session, n, most int) error {
	if with != nil {
		if with.with != nil {
			with = with.with
		}
		if (with.spans == nil) != (s.spans == nil) {
			return errors.New("hits and whole runs are not of one stream")
		}
		s.with, s.first = with, with.next()
		with.others = append(with.others, s)
	}
	if s.first+n > most {
		return fmt.Errorf("%d definitions: at most %d at a time", s.first+n, most)
	}
	return nil
}

// count returns how many plans, or spans, the session has, and next the first number that no session has which is joined to it.
func (s *Session) count() int {
	if s.spans != nil {
		return len(s.spans.plans)
	}
	return len(s.plans)
}

func (s *Session) next() int {
	all := s.all()
	last := all[len(all)-1]
	return last.first + last.count()
}

// all returns the sessions that are joined: this one is the first.
func (s *Session) all() []*Session { return append([]*Session{s}, s.others...) }

// of returns the session with a plan, or a span, and the number that it has there.
func (s *Session) of(number int) (*Session, int) {
	for _, x := range s.all() {
		if n := number - x.first; n >= 0 && n < x.count() {
			return x, n
		}
	}
	return s, number
}

// record is what a program needs to know of the record that it gets.
type record struct {
	size  int // bytes
	frame int // of runs: where the frame is, which is the last of the definition's arguments
}

// programKey is what a program is made for. All plans share those that are equal.
type programKey struct {
	convention prologue.Convention
	record
	plan   int    // its index; 0 for a program of all
	counts string // of a summary: where the arguments that it counts are
}

// keyOf returns the key of an instance's program: each plan has its own, or all have the same.
func (s *Session) keyOf(own bool) func(n, instance int) programKey {
	return func(n, instance int) programKey {
		p := s.plans[n]
		key := programKey{convention: p.Convention, record: record{size: recordSize(p, &p.Instances[instance])}}
		if s.spans != nil {
			in := &p.Instances[instance]
			key.frame = sourceOf(p, instance, ref(len(p.Sites[in.Sites[0]].Args)-1)).Offset
		}
		if own {
			key.plan = n
		}
		return key
	}
}

// filters finds out which hits programs let through.
func (s *Session) filters(r *instances.Running, o *Options) (who processes, err error) {
	raiseFiles(s.plans)
	if who, err = o.processes(r); err != nil {
		return who, err
	}
	s.stack = o.Stack
	if s.with != nil {
		who.limits = &s.with.limits
		return who, nil
	}
	s.limits, err = o.limits()
	who.limits = &s.limits
	return who, err
}

// prepare makes the maps of a session.
func (s *Session) prepare(r *instances.Running, o *Options) (who processes, err error) {
	buffer, err := o.buffer()
	if err != nil {
		return who, err
	}
	if who, err = s.filters(r, o); err != nil {
		return who, err
	}
	if s.with != nil {
		s.events, s.lost = s.with.events, s.with.lost
		return who, nil
	}
	if s.events, err = ebpf.NewMap(&ebpf.MapSpec{Name: "events", Type: ebpf.RingBuf, MaxEntries: buffer}); err != nil {
		return who, fmt.Errorf("make the ring buffer: %w", kernelerr.Explain(err))
	}
	if s.lost, err = ebpf.NewMap(&ebpf.MapSpec{Name: "lost", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1}); err != nil {
		return who, fmt.Errorf("make the counter of lost events: %w", err)
	}
	return who, nil
}

// attachAll attaches all plans, and opens the buffer, if there is one. cookie returns the cookies of one.
func (s *Session) attachAll(ctx context.Context, r *instances.Running, o *Options, who processes, cookie func(i int, p *plan.Plan) func(site int) uint64) error {
	progress := o.Progress
	before, total := 0, 0
	for _, p := range s.plans {
		total += p.NumProbes()
	}
	for i, p := range s.plans {
		if progress != nil {
			o.Progress = func(done, _ int) { progress(before+done, total) }
		}
		a, err := s.programs[i].Attach(ctx, r, instances.AttachOptions{PID: o.PID, End: o.End, Progress: o.Progress, None: true, Cookie: cookie(i, p)})
		if err != nil {
			return fmt.Errorf("%v: %w", p.Definition, err)
		}
		s.Attachments = append(s.Attachments, a)
		before += p.NumProbes()
	}
	if err := s.refused(); err != nil {
		return err
	}
	if s.spans == nil { // spans find their own
		if err := s.countCalls(ctx, r, o, who); err != nil {
			return err
		}
	}
	if s.events == nil || s.with != nil {
		return nil
	}
	return s.read()
}

// read opens the buffer.
func (s *Session) read() (err error) {
	s.reader, err = ringbuf.NewReader(s.events)
	return err
}

// raiseFiles raises the limit of open files to what probes and programs need. If that is not
// allowed, Attach returns EMFILE.
func raiseFiles(plans []*plan.Plan) {
	need := uint64(256)
	for _, p := range plans {
		need += uint64(len(p.Sites) + len(p.Instances))
	}
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) == nil && l.Cur < need {
		if unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: need, Max: max(l.Max, need)}) != nil {
			// Only root may raise Max. Where one link attaches many sites, that is enough.
			_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: l.Max, Max: l.Max})
		}
	}
}

// maxBuffer is the largest power of two that a map's max_entries, and an int, holds.
const maxBuffer = min(1<<31, math.MaxInt/2+1)

// buffer returns the size of the ring buffer. The kernel accepts powers of two that are whole
// pages.
func (o *Options) buffer() (uint32, error) {
	page := os.Getpagesize()
	switch n := o.Buffer; {
	case n == 0:
		return 1 << 20, nil
	case n >= page && n <= maxBuffer && n&(n-1) == 0:
		return uint32(n), nil
	default:
		near := page
		for near < maxBuffer && n-near > 2*near-n {
			near *= 2
		}
		return 0, fmt.Errorf("a ring buffer of %d bytes: it has a power of two of bytes, from %d to %d; the nearest is %d", n, page, maxBuffer, near)
	}
}

// processes are the processes that programs compare the current one with, and how many of their
// hits are let through.
type processes struct {
	self   *process
	only   []*process // if there are any
	groups []uint64   // if there are any
	tree   *tree
	limits *limits
}

func (o *Options) processes(r *instances.Running) (who processes, err error) {
	if who.self, err = thisProcess(); err != nil {
		return who, err
	}
	if who.groups, err = findGroups(o.Groups); err != nil {
		return who, err
	}
	if o.Descendants {
		if len(o.PIDs) > 0 {
			return who, errors.New("the descendants of several processes: they are known of one")
		}
		if who.tree, err = findTree(o.PID); err != nil {
			return who, err
		}
		o.PID = 0
		return who, nil
	}
	// A uprobe is made for one process, a kprobe is not.
	if r == nil || o.PID == 0 && len(o.PIDs) == 0 || len(o.PIDs) == 0 && r.Target().UserSpace() && !o.inProgram {
		return who, nil
	}
	for _, pid := range append([]int{o.PID}, o.PIDs...) {
		if pid == 0 {
			continue
		}
		p, err := findProcess(pid)
		if err != nil {
			return who, err
		}
		who.only = append(who.only, p)
	}
	o.PID = 0
	return who, nil
}

// load loads the programs of all plans. Instances with equal keys have the same.
func (s *Session) load(r *instances.Running, keyOf func(n, instance int) programKey, program func(programKey) asm.Instructions) (err error) {
	defer func() {
		if err != nil && len(s.plans) == 1 {
			err = fmt.Errorf("%v: %w", s.plans[0].Definition, err)
		}
	}()
	if r == nil {
		return fmt.Errorf("%w: it is not known where that is", instances.ErrTargetMismatch)
	}
	specs := make(map[programKey]*ebpf.ProgramSpec)
	spec := func(n, instance int) *ebpf.ProgramSpec {
		key := keyOf(n, instance)
		if specs[key] == nil {
			specs[key] = &ebpf.ProgramSpec{Name: "trace", License: "GPL", Instructions: program(key)}
		}
		return specs[key]
	}
	all, err := instances.NewDispatches(s.plans, spec)
	if err != nil {
		return err
	}
	s.programs, err = instances.LoadDispatches(all)
	return err
}

// refused returns the error for a session in which nothing is attached.
func (s *Session) refused() error {
	var errs []error
	for i, a := range s.Attachments {
		p := s.plans[i]
		switch {
		case len(a.Attached) > 0:
			return nil
		case len(a.Refused) == 0:
			errs = append(errs, fmt.Errorf("%v: %w", p.Definition, p.Nothing()))
		default:
			first := &a.Refused[0]
			errs = append(errs, fmt.Errorf("%v: %w: %d of %d sites, the first is %v: %w", p.Definition, instances.ErrRefused,
				len(a.Refused), len(p.Sites), &p.Sites[first.Site], first.Err))
		}
	}
	return errors.Join(errs...)
}

// recordSize returns the size in bytes of a record, or of the arguments in registers.
func recordSize(p *plan.Plan, in *plan.Instance) int {
	if p.Convention == prologue.ConventionRecord || len(in.Sites) == 0 {
		return in.Prologue.Layout.Size
	}
	return 8 * len(p.Sites[in.Sites[0]].Args)
}

// Run calls f for each hit until ctx ends or f returns an error, which Run returns. The end of
// ctx is not an error. From then on probes are silent, and what is in the buffer is still
// reported: whoever reads the reports may hit probes himself.
func (s *Session) Run(ctx context.Context, f func(*Hit) error) error {
	if s.with != nil {
		return errors.New("the session that this one is with reports its hits")
	}
	var silence error
	silent := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(silent)
		for _, x := range s.all() {
			silence = errors.Join(silence, x.calls.silence(true))
			for _, a := range x.Attachments {
				silence = errors.Join(silence, a.Silence(true))
			}
		}
		_ = s.reader.Flush()
	})
	defer func() {
		if !stop() {
			<-silent // nothing of Run goes on after it
		}
	}()
	var record ringbuf.Record
	for {
		switch err := s.reader.ReadInto(&record); {
		case errors.Is(err, ringbuf.ErrFlushed), errors.Is(err, os.ErrClosed):
			if ctx.Err() != nil {
				<-silent
			}
			return errors.Join(silence, s.unended(f))
		case err != nil:
			return err
		}
		decode := s.hit
		if s.spans != nil {
			decode = s.runOf
		}
		h, err := decode(record.RawSample)
		if err != nil {
			return err
		}
		if err := f(h); err != nil {
			return err
		}
	}
}

// hit decodes one hit from the ring buffer.
func (s *Session) hit(d []byte) (*Hit, error) {
	h, cookie, err := head(d)
	if err != nil {
		return nil, err
	}
	s, plan := s.of(int(cookie >> 32 & (maxPlans - 1)))
	site := int(uint32(cookie))
	if plan >= len(s.plans) || site >= len(s.plans[plan].Sites) {
		return nil, fmt.Errorf("an event with the unknown cookie %#x", cookie)
	}
	h.Plan, h.Site = s.plans[plan], site
	end := len(d) - s.stack.size()
	if end < atRecord {
		return nil, fmt.Errorf("an event of %d bytes: it has no room for stacks", len(d))
	}
	h.Values = h.Plan.Values(site, h.Err, d[atRecord:end])
	if s.stack != 0 {
		inProgram := h.Plan.Target.UserSpace()
		h.Stack = s.stack.read(d[end:], inProgram && atEntry(&h.Plan.Sites[site]))
		h.Stack.PID, h.Stack.Plan, h.Stack.Site = h.PID, h.Plan, site
		if len(h.Stack.User) > 0 && inProgram {
			h.Stack.At = h.Stack.User[0]
		}
	}
	return h, nil
}

// head decodes the head of an event.
func head(d []byte) (h *Hit, cookie uint64, err error) {
	if len(d) < atRecord {
		return nil, 0, fmt.Errorf("an event of %d bytes: its head has %d", len(d), atRecord)
	}
	ne := binary.NativeEndian
	task := ne.Uint64(d[atTask:])
	comm, _, _ := strings.Cut(string(d[atComm:atComm+commSize]), "\x00")
	h = &Hit{Time: time.Duration(ne.Uint64(d[atTime:])), PID: int(task >> 32), TID: int(uint32(task)), Comm: comm, Err: ne.Uint64(d[atErr:])}
	return h, ne.Uint64(d[atCookie:]), nil
}

// Unreported is how many hits were not reported, by the cause.
type Unreported struct {
	Lost     uint64 // the buffer was full, or all of the room for large records in use
	Limited  uint64 // there were Options.MaxRate in their second
	Missing  uint64 // a condition could not be computed, if plan.Options.CountMissing is set
	Overflow uint64 // there was no room for their keys, in a summary
	Excluded uint64 // the definition's condition was false; only a thousand or some more of each definition are counted
	Without  uint64 // the definition's condition on $duration or $retval did not hold
	Unpaired        // they were not one run, in a session of OpenSpans
}

// Unreported returns how many hits were not reported, of this session and those that are with it. With an error, some of the numbers are not known.
func (s *Session) Unreported() (u Unreported, err error) {
	for _, x := range s.others {
		o, err := x.Unreported()
		if err != nil {
			return u, err
		}
		u.add(&o)
	}
	var errs [4]error
	if s.lost != nil && s.with == nil {
		var lost uint64
		errs[0] = s.lost.Lookup(uint32(0), &lost)
		u.Lost += lost
	}
	for _, p := range s.programs {
		crowded, missing, excluded, err := p.Unseen()
		u.Excluded += excluded
		u.Lost, u.Missing, errs[1] = u.Lost+crowded, u.Missing+missing, errors.Join(errs[1], err)
	}
	own := Unreported{}
	own.Limited, errs[2] = s.limits.dropped()
	errs[3] = s.unpaired(&own)
	u.add(&own)
	return u, errors.Join(errs[:]...)
}

// add adds what others did not report.
func (u *Unreported) add(o *Unreported) {
	for _, x := range []struct {
		to *uint64
		n  uint64
	}{
		{&u.Lost, o.Lost}, {&u.Limited, o.Limited}, {&u.Missing, o.Missing}, {&u.Overflow, o.Overflow}, {&u.Excluded, o.Excluded}, {&u.Without, o.Without},
		{&u.Ends, o.Ends}, {&u.Begins, o.Begins}, {&u.Open, o.Open}, {&u.Full, o.Full},
	} {
		*x.to += x.n
	}
}

// Close detaches all probes and frees the programs and maps.
func (s *Session) Close() error {
	if s.with != nil {
		s.with.others = slices.DeleteFunc(s.with.others, func(x *Session) bool { return x == s })
	}
	errs := []error{s.limits.close(), s.calls.close()}
	for _, a := range s.Attachments {
		errs = append(errs, a.Close())
	}
	if s.reader != nil {
		errs = append(errs, s.reader.Close())
	}
	for _, p := range s.programs {
		errs = append(errs, p.Close())
	}
	if s.spans != nil {
		errs = append(errs, s.spans.close()...)
	}
	for _, m := range []*ebpf.Map{s.events, s.lost} {
		if m != nil && s.with == nil {
			errs = append(errs, m.Close())
		}
	}
	return errors.Join(errs...)
}
