// Package tracer runs definitions: it attaches a small program at every site, and
// reports each hit with the values of the arguments.
//
//	running, err := instances.InKernel(img, false)
//	session, err := tracer.Open(ctx, running, plans, tracer.Options{})
//	defer session.Close()
//	err = session.Run(ctx, func(h *tracer.Hit) error {
//		fmt.Println(h.Comm, h.Site, h.Values)
//		return nil
//	})
//
// Plans are of one image and of either convention. Probes end with the session, and
// with the process, however it ends. What this process itself does is not reported. It
// needs Linux 5.15: a ring buffer and cookies.
package tracer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// Options say how to trace.
type Options struct {
	PID      int                   // one process, 0 for all; of user space
	Buffer   int                   // bytes of the ring buffer, a power of two; 0: 1 MiB
	Progress func(done, total int) // is called as sites of all plans are attached, if it is not nil
}

// Hit is one time that a probe fired.
type Hit struct {
	Time     time.Duration // since the machine started, without suspensions
	PID, TID int
	Comm     string
	Plan     *instances.Plan
	Site     int               // index of Plan.Sites
	Err      uint64            // as programs get it
	Values   []instances.Value // valid until the next hit
}

// Session is attached probes.
type Session struct {
	// Attachments are what is attached of each plan, and where the kernel refused.
	Attachments []*instances.Attachment

	plans    []*instances.Plan
	programs []*ebpf.Program
	events   *ebpf.Map
	lost     *ebpf.Map
	reader   *ringbuf.Reader
}

// Open loads a program for each instance of some plans, and attaches them at all
// sites, where their image runs. A plan all of whose sites are refused is an error, and
// then nothing stays attached.
func Open(ctx context.Context, r *instances.Running, plans []*instances.Plan, o Options) (s *Session, err error) {
	raiseFiles(plans)
	// Kernels before 5.11 count maps against the limit of locked memory; on others it
	// does no harm that this fails.
	_ = rlimit.RemoveMemlock()
	s = &Session{plans: plans}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
			s = nil
		}
	}()
	buffer := o.Buffer
	if buffer == 0 {
		buffer = 1 << 20
	}
	if s.events, err = ebpf.NewMap(&ebpf.MapSpec{Name: "events", Type: ebpf.RingBuf, MaxEntries: uint32(buffer)}); err != nil {
		return s, fmt.Errorf("make the ring buffer: %w%s", err, instances.Hint(err))
	}
	if s.lost, err = ebpf.NewMap(&ebpf.MapSpec{Name: "lost", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1}); err != nil {
		return s, fmt.Errorf("make the counter of lost events: %w", err)
	}
	progress := o.Progress
	before, total := 0, 0
	for _, p := range plans {
		total += p.Served()
	}
	for i, p := range plans {
		if progress != nil {
			o.Progress = func(done, _ int) { progress(before+done, total) }
		}
		if err := s.attach(ctx, r, i, p, &o); err != nil {
			return s, fmt.Errorf("%v: %w", p.Definition, err)
		}
		before += p.Served()
	}
	s.reader, err = ringbuf.NewReader(s.events)
	return s, err
}

// raiseFiles makes room for a file descriptor for each probe and program. Where that is
// not allowed, attaching says what is missing.
func raiseFiles(plans []*instances.Plan) {
	need := uint64(256)
	for _, p := range plans {
		need += uint64(len(p.Sites) + len(p.Instances))
	}
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) == nil && l.Cur < need {
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: need, Max: max(l.Max, need)})
	}
}

func (s *Session) attach(ctx context.Context, r *instances.Running, number int, p *instances.Plan, o *Options) error {
	if r == nil {
		return instances.ErrNowhere
	}
	programs := make([]*ebpf.Program, len(p.Instances))
	for i := range p.Instances {
		in := &p.Instances[i]
		insns, err := p.PreprocessAt(i, program(s.events, s.lost, p.Convention, recordSize(p, in), os.Getpid()), r.Slide())
		if err != nil {
			return err
		}
		programs[i], err = ebpf.NewProgram(&ebpf.ProgramSpec{
			Name: p.InstanceName("trace", i), Type: ebpf.Kprobe, AttachType: in.Multi.AttachType(), License: "GPL", Instructions: insns,
		})
		if err != nil {
			return fmt.Errorf("instance %d: %w%s", i, err, instances.Hint(err))
		}
		s.programs = append(s.programs, programs[i])
	}
	a, err := p.Attach(ctx, programs, r, instances.AttachOptions{
		PID: o.PID, Progress: o.Progress,
		Cookie: func(site int) uint64 { return uint64(number)<<32 | uint64(site) },
	})
	if err != nil {
		return err
	}
	s.Attachments = append(s.Attachments, a)
	return nil
}

// recordSize is the bytes of a record, or of the arguments in registers.
func recordSize(p *instances.Plan, in *instances.Instance) int {
	if p.Convention == prologue.Record || len(in.Sites) == 0 {
		return in.Prologue.Layout.Size
	}
	return 8 * len(p.Sites[in.Sites[0]].Args)
}

// Run calls f for each hit, until the context ends or f returns an error. The end of
// the context is no error. What is in the buffer then is still reported.
func (s *Session) Run(ctx context.Context, f func(*Hit) error) error {
	stop := context.AfterFunc(ctx, func() { _ = s.reader.Flush() })
	defer stop()
	var record ringbuf.Record
	for {
		switch err := s.reader.ReadInto(&record); {
		case errors.Is(err, ringbuf.ErrFlushed), errors.Is(err, os.ErrClosed):
			return nil
		case err != nil:
			return err
		}
		h, err := s.hit(record.RawSample)
		if err != nil {
			return err
		}
		if err := f(h); err != nil {
			return err
		}
	}
}

// hit reads one event.
func (s *Session) hit(d []byte) (*Hit, error) {
	if len(d) < atRecord {
		return nil, fmt.Errorf("an event of %d bytes: its head has %d", len(d), atRecord)
	}
	ne := binary.NativeEndian
	cookie, task := ne.Uint64(d[atCookie:]), ne.Uint64(d[atTask:])
	plan, site := int(cookie>>32), int(uint32(cookie))
	if plan >= len(s.plans) || site >= len(s.plans[plan].Sites) {
		return nil, fmt.Errorf("an event with the unknown cookie %#x", cookie)
	}
	comm, _, _ := strings.Cut(string(d[atComm:atComm+commSize]), "\x00")
	h := &Hit{
		Time: time.Duration(ne.Uint64(d[atTime:])), PID: int(task >> 32), TID: int(uint32(task)),
		Comm: comm, Plan: s.plans[plan], Site: site, Err: ne.Uint64(d[atErr:]),
	}
	h.Values = h.Plan.Values(site, h.Err, d[atRecord:])
	return h, nil
}

// Lost is how many hits were not reported because the buffer was full.
func (s *Session) Lost() (uint64, error) {
	var n uint64
	err := s.lost.Lookup(uint32(0), &n)
	return n, err
}

// Close ends all probes.
func (s *Session) Close() error {
	var errs []error
	for _, a := range s.Attachments {
		errs = append(errs, a.Close())
	}
	if s.reader != nil {
		errs = append(errs, s.reader.Close())
	}
	for _, p := range s.programs {
		errs = append(errs, p.Close())
	}
	for _, m := range []*ebpf.Map{s.events, s.lost} {
		if m != nil {
			errs = append(errs, m.Close())
		}
	}
	return errors.Join(errs...)
}
