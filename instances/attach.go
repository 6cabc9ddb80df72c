package instances

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/choice"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/kernelerr"
	"github.com/bpfprologue/bpfprologue/internal/mapping"
	"github.com/bpfprologue/bpfprologue/internal/probed"
	"github.com/bpfprologue/bpfprologue/internal/settings"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// AttachOptions are options of Attach. The zero AttachOptions attach all sites that the kernel
// does not refuse, in all processes.
type AttachOptions struct {
	// PID, if not 0, is the only process to probe, by its ID in the PID namespace of this
	// process. It is for programs and libraries. A kprobe fires in all processes, so for a
	// kernel Attach returns ErrNotSupported: the user's program must compare process IDs
	// (bpf_get_ns_current_pid_tgid).
	PID int
	// Cookie returns the attach cookie of a site, an index in Plan.Sites:
	// bpf_get_attach_cookie returns it to the program. If nil, cookies are these indices, and
	// bit 63 is set where a hit may be another turn of a run's loop.
	// Kernels before 5.15 have no cookies.
	Cookie func(site int) uint64
	// All makes a refused site an error; then nothing stays attached.
	All bool
	// None makes it no error if no site has a probe: all were refused, or excluded because
	// an argument is missing. It is for callers that attach several plans.
	None bool
	// KeepSettings leaves the kernel's settings alone. Otherwise many kprobes that are made or
	// ended one by one have expedited grace periods of RCU and no optimization meanwhile
	// (rcu_expedited, kprobes-optimization), which takes a fifth of the time. Both are put back
	// then, or, after SIGKILL, when kprobes are attached again.
	KeepSettings bool
	// End, if not nil, is called with the files of probes that are to end and for which that takes
	// long: probes in kernel functions that have a link each, of which the kernel ends one after
	// the other, with some milliseconds for each. A probe ends when its file is closed in all
	// processes that have it. Who does not want to wait gives the files to another process
	// (exec.Cmd.ExtraFiles), which calls EndProbes. If the plan is dispatched, Close makes its
	// probes silent before that.
	End func(files []*os.File) error
	// Silent makes the probes of a plan that is dispatched do nothing until Attachment.Silence. So
	// one attachment can take the place of another, for example with other arguments: attach it
	// silently, silence the old one, let the new one speak, and close the old one. (The kernel can
	// give links of kprobes and uprobes no other program.) Attach without dispatch ignores it.
	Silent bool
	// Progress, if not nil, is called as sites are attached or refused.
	Progress func(done, total int)
}

// Attachment is the attached probes of a plan. They end when it is closed, or when the
// process ends, however it ends. It is not for concurrent use.
type Attachment struct {
	Attached []int     // indices in Plan.Sites, sorted
	Refused  []Refusal // for the other sites that have an instance or are refused in the plan, sorted by site

	w     *attacher
	links []*bound
	power *power // of a Dispatched; nil for others
}

// Refusal is a site at which no probe can be.
type Refusal struct {
	Site int   // index in Plan.Sites
	Err  error // the kernel's answer, for errors.Is with an Errno, or plan.Site.Refused
}

// ErrRefused is wrapped by Attach's error if all sites were refused, or some and
// AttachOptions.All is set.
var ErrRefused = errors.New("the probe was refused")

// ErrTargetMismatch is wrapped by errors about a plan that was made for another target than
// where its image runs: another image, slide, kind of memory reads or kind of links. Make
// plans with Running.Target.
var ErrTargetMismatch = errors.New("the plan was not made for where its image runs")

// Attach attaches a plan's programs, one for each instance, at all its sites. If the kernel
// refuses some of them, or the plan does, that is not an error, unless AttachOptions.All is set.
//
// The error wraps ErrTargetMismatch, ErrRefused, ErrNotSupported, plan.ErrMissingArgument or
// plan.ErrNever if all sites were excluded because an argument is missing or a condition cannot hold,
// or the kernel's syscall.Errno: EPERM, EACCES and EMFILE end attaching. If ctx ends, the error is its
// cause. After an error nothing stays attached.
func Attach(ctx context.Context, p *plan.Plan, programs []*ebpf.Program, r *Running, o AttachOptions) (*Attachment, error) {
	if len(programs) != len(p.Instances) {
		return nil, fmt.Errorf("the plan has %d instances, and there are %d programs", len(p.Instances), len(programs))
	}
	var batches []*batch
	for i := range p.Instances {
		in := &p.Instances[i]
		batches = append(batches, &batch{prog: programs[i], sites: in.Sites, multi: in.Multi})
	}
	return attach(ctx, p, batches, r, o)
}

// attach attaches the sites of batches, which are all of a plan.
func attach(ctx context.Context, p *plan.Plan, batches []*batch, r *Running, o AttachOptions) (*Attachment, error) {
	if err := r.check(p); err != nil {
		return nil, err
	}
	if o.PID < 0 {
		return nil, fmt.Errorf("%d: no process has that number", o.PID) // the kernel would take it for all
	}
	if o.PID > 0 {
		if r.pmu == "kprobe" {
			return nil, fmt.Errorf("%w: kprobes of one process: they fire in all", ErrNotSupported)
		}
		if errors.Is(unix.Kill(o.PID, 0), unix.ESRCH) {
			return nil, fmt.Errorf("there is no process %d", o.PID)
		}
	}
	if r.pmu == "kprobe" {
		if err := settings.Recover(); err != nil {
			return nil, err
		}
	}
	a := &Attachment{}
	for i := range p.Sites {
		if err := p.Sites[i].Refused; err != nil {
			a.Refused = append(a.Refused, Refusal{i, err})
		}
	}
	total := p.NumProbes()
	if total == 0 && len(a.Refused) == 0 && !o.None {
		return nil, p.Nothing()
	}
	a.w = &attacher{ctx: ctx, plan: p, r: r, o: &o, all: batches, total: total, out: a}
	forget, err := a.w.witness()
	if err != nil {
		return nil, err
	}
	defer forget()
	for _, x := range rounds(p, batches) {
		if err := a.w.batch(x.batch, x.sites); err != nil {
			return nil, errors.Join(err, a.Close())
		}
	}
	a.sort()
	if len(a.Refused) > 0 && (o.All || len(a.Attached) == 0 && !o.None) {
		first := &a.Refused[0]
		err := fmt.Errorf("%w: %d of %d sites, the first is %v: %w", ErrRefused, len(a.Refused), len(a.Refused)+len(a.Attached), &p.Sites[first.Site], first.Err)
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

func (a *Attachment) sort() {
	slices.Sort(a.Attached)
	sort.Slice(a.Refused, func(i, j int) bool { return a.Refused[i].Site < a.Refused[j].Site })
}

// readsIn reports whether programs that read memory in one way run where another one is best.
// prologue.ReadLegacy works everywhere, and a kernel's helper where loads do.
func readsIn(has, best prologue.Reads) bool {
	return has == best || has == prologue.ReadLegacy || has == prologue.ReadKernel && best == prologue.ReadCast ||
		best == prologue.ReadSleep && has == prologue.ReadUser || best == prologue.ReadUser && has == prologue.ReadSleep
}

// check compares a plan's target with where its image runs. Links for single sites work
// everywhere.
func (r *Running) check(p *plan.Plan) error {
	if r == nil {
		return fmt.Errorf("%w: it is not known where that is", ErrTargetMismatch)
	}
	switch has, t := p.Target, r.target; {
	case p.Image != r.img:
		return fmt.Errorf("%w: it is of %s, which is not what runs", ErrTargetMismatch, p.Image.Path())
	case has.Slide != t.Slide:
		return fmt.Errorf("%w: it is for an image %#x bytes from its link-time addresses, and they are %#x", ErrTargetMismatch, has.Slide, t.Slide)
	case !readsIn(has.Reads, t.Reads):
		return fmt.Errorf("%w: its programs read memory by %v reads, and it runs where they must by %v reads", ErrTargetMismatch, has.Reads, t.Reads)
	case r.kernel(has) != r.kernel(t):
		return fmt.Errorf("%w: its programs are for a kernel for %s, and this one is for %s", ErrTargetMismatch, r.kernel(has).Name, r.kernel(t).Name)
	case has.KprobeMulti && r.pmu != "kprobe":
		return fmt.Errorf("%w: its programs are for kprobe.multi, which is not for %ss", ErrTargetMismatch, r.pmu)
	case has.UprobeMulti && r.pmu != "uprobe":
		return fmt.Errorf("%w: its programs are for uprobe.multi, which is not for %ss", ErrTargetMismatch, r.pmu)
	}
	return nil
}

// kernel returns the architecture of a target's kernel.
func (r *Running) kernel(t plan.Target) *arch.Arch {
	if t.Kernel != nil {
		return t.Kernel
	}
	return r.img.Arch()
}

// batch is a program and its sites.
type batch struct {
	prog    *ebpf.Program
	sites   []int
	multi   bool           // one link attaches the program to many sites
	numbers map[int]uint64 // of the prologues in the program, by site; nil for an instance
}

// bound is a link, and what it attaches.
type bound struct {
	io.Closer
	batch *batch
	sites []int
}

// attacher attaches the programs of one plan.
type attacher struct {
	ctx   context.Context
	plan  *plan.Plan
	r     *Running
	path  string // of the file that processes run, while it is open: see witness
	o     *AttachOptions
	all   []*batch
	total int
	pmu   *pmu // of single probes; nil before the first one

	mu   sync.Mutex // for what follows, while probes are made side by side
	done int
	out  *Attachment
}

// turn is what is attached at once, of a batch.
type turn struct {
	batch *batch
	sites []int
}

// first orders what is at one place: runs end there before others begin, and a function before what is inlined into it.
func first(s *plan.Site) int {
	if s.Kind == dwarfloc.SiteExit {
		return -1
	}
	return int(s.Kind)
}

// rounds returns in which order sites are attached. The kernel runs the programs at one address in the reverse order of their attaching (add_new_kprobe in
// kernel/kprobes.c, consumer_add in kernel/events/uprobes.c, Linux 5.15 to 6.18), and what is at a later view comes later. So the last one of each address is in
// the first round, with all that are alone, and the one before it in the next.
func rounds(p *plan.Plan, batches []*batch) (out []turn) {
	at := make(map[uint64][]int) // sites
	for _, b := range batches {
		for _, site := range b.sites {
			addr := p.Sites[site].Addr
			at[addr] = append(at[addr], site)
		}
	}
	behind := make(map[int]int) // how many sites at its address come behind one
	most := 0
	for _, sites := range at {
		if len(sites) == 1 {
			continue
		}
		slices.SortFunc(sites, func(i, j int) int {
			x, y := &p.Sites[i], &p.Sites[j]
			return cmp.Or(cmp.Compare(x.View, y.View), cmp.Compare(first(x), first(y)), cmp.Compare(i, j))
		})
		for i, site := range sites {
			behind[site] = len(sites) - 1 - i
		}
		most = max(most, len(sites)-1)
	}
	for n := range most + 1 {
		for _, b := range batches {
			now := b.sites
			if most > 0 {
				now = slices.DeleteFunc(slices.Clone(now), func(site int) bool { return behind[site] != n })
			}
			if len(now) > 0 {
				out = append(out, turn{b, now})
			}
		}
	}
	return out
}

// batch attaches a program at some of its sites.
func (w *attacher) batch(b *batch, sites []int) error {
	if !b.multi {
		return w.singles(b, sites)
	}
	// The kernel finds the cookie of a kprobe by the address, so sites with the same address need
	// different links. (Each uprobe has its own.) A link's probes all fire at returns, or none.
	for left := sites; len(left) > 0; {
		taken := make(map[uint64]bool)
		isReturn := w.plan.Sites[left[0]].Return
		var now, later, alone []int
		for _, site := range left {
			switch s := &w.plan.Sites[site]; {
			case taken[s.Addr] && w.r.pmu == "kprobe", s.Return != isReturn:
				later = append(later, site)
			case w.doubtful(s):
				alone = append(alone, site)
			default:
				taken[s.Addr] = true
				now = append(now, site)
			}
		}
		if len(now) > 0 {
			if err := w.together(b, now, w.many); err != nil {
				return err
			}
		}
		if err := manyTimes(len(alone), func(i int) error { return w.together(b, alone[i:i+1], w.many) }); err != nil {
			return err
		}
		left = later
	}
	return nil
}

// witness maps the file as a process that runs it does, until forget is called: the kernel looks at
// the instruction of a uprobe only when it puts the breakpoint into such a mapping. Without one it
// takes every probe, and says nothing when it cannot make it later.
//
// The probes are made in the file that was read, and compared: meanwhile another one can have been put
// at its path, in which every place would be wrong.
func (w *attacher) witness() (forget func(), err error) {
	r := w.r
	if r.pmu != "uprobe" {
		return func() {}, nil
	}
	f, err := os.OpenFile(r.path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, fmt.Errorf("%s: %w", r.path, err)
	}
	if r.identity != "" && mapping.IdentityOf(&st) != r.identity {
		return nil, fmt.Errorf("%s: %w", r.path, dwarfloc.ErrChanged)
	}
	var d []byte
	if st.Size > 0 {
		if d, err = unix.Mmap(int(f.Fd()), 0, int(st.Size), unix.PROT_READ, unix.MAP_PRIVATE); err != nil {
			return nil, fmt.Errorf("%s: map: %w", r.path, err)
		}
	}
	w.path = fmt.Sprintf("/proc/self/fd/%d", f.Fd()) // leads to the file, not by a name
	return func() {
		_ = unix.Munmap(d)
		_ = f.Close()
	}, nil
}

// doubtful reports whether the kernel probably refuses a site: with others in one link, it would
// refuse them all.
func (w *attacher) doubtful(s *plan.Site) bool {
	rules := probed.For(inside.File(w.plan.Image).Instructions())
	if w.r.pmu != "uprobe" || rules == nil {
		return false
	}
	const longest = 16
	sec := inside.File(w.plan.Image).SectionAt(s.Addr)
	if sec == nil {
		return true
	}
	code, err := inside.File(w.plan.Image).Bytes(s.Addr, min(longest, sec.Addr+sec.Size-s.Addr))
	if err != nil {
		return true
	}
	does, _ := rules.Uprobe(code)
	return does == probed.UprobeRefuses
}

// sideBySide is how many probes are made or ended at a time: most of that is waiting for the
// kernel.
const sideBySide = 32

// singles attaches a program at sites by one link each.
func (w *attacher) singles(b *batch, sites []int) (err error) {
	if len(sites) == 0 {
		return nil
	}
	restore := w.hasten(len(sites))
	defer func() { err = errors.Join(err, restore()) }()
	if w.pmu == nil {
		if w.pmu, err = findPMU(w.r.pmu); err != nil {
			return fmt.Errorf("%v: %w", &w.plan.Sites[sites[0]], err)
		}
	}
	return manyTimes(len(sites), func(i int) error { return w.together(b, sites[i:i+1], w.single) })
}

// hasten changes the kernel's settings for so many kprobes, until restore is called.
func (w *attacher) hasten(probes int) (restore func() error) {
	if w.r.pmu != "kprobe" || w.o.KeepSettings {
		return func() error { return nil }
	}
	return hasten(probes)
}

func hasten(probes int) (restore func() error) {
	const many = 4
	if probes < many {
		return func() error { return nil }
	}
	restore, err := settings.Hasten()
	if err != nil {
		return func() error { return nil } // it takes longer
	}
	return restore
}

// manyTimes calls f for 0 up to n, some of them side by side, until one returns an error.
func manyTimes(n int, f func(i int) error) error {
	var wg sync.WaitGroup
	var next atomic.Int64
	errs := make([]error, min(n, sideBySide))
	var failed atomic.Bool
	for k := range errs {
		wg.Go(func() {
			for !failed.Load() {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if errs[k] = mapping.Work(func() error { return f(i) }); errs[k] != nil {
					failed.Store(true)
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// point is the place of one probe.
type point struct {
	addr     uint64 // from Running.address
	counter  uint64 // offset in the file of the counter that the kernel increments, or 0: see dwarfloc.Site.Semaphore
	cookie   uint64
	isReturn bool
}

// point returns the point of a site.
func (w *attacher) point(b *batch, site int) (p point, err error) {
	s := &w.plan.Sites[site]
	p.isReturn, p.cookie = s.Return, uint64(site)
	if s.Way.Again && (w.o.Cookie == nil || b.numbers != nil) {
		p.cookie |= choice.Again
	}
	if w.o.Cookie != nil {
		w.mu.Lock() // the caller's function may not be for concurrent use
		own := w.o.Cookie(site)
		w.mu.Unlock()
		p.cookie = p.cookie&choice.Again | own
	}
	if b.numbers != nil {
		if p.cookie&^choice.Again>>choice.CookieBits != 0 {
			return p, fmt.Errorf("the cookie %#x of a program that is dispatched has more than %d bits", p.cookie&^choice.Again, choice.CookieBits)
		}
		p.cookie |= b.numbers[site] << choice.CookieBits
	}
	if p.addr, err = w.r.address(s.Addr); err == nil && s.Semaphore != 0 {
		p.counter, err = w.r.address(s.Semaphore)
	}
	return p, err
}

// together attaches a program at some sites by one link. If the kernel refuses, it tries each
// half separately, down to single sites.
func (w *attacher) together(b *batch, sites []int, open func([]point, *ebpf.Program) (io.Closer, error)) error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	points := make([]point, len(sites))
	var err error
	for i, site := range sites {
		if points[i], err = w.point(b, site); err != nil {
			break
		}
	}
	var link io.Closer
	if err == nil {
		link, err = open(points, b.prog)
	}
	switch {
	case err == nil:
	case errors.Is(err, ErrNotSupported), errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES), errors.Is(err, unix.EMFILE):
		// The same would happen at all sites.
		return fmt.Errorf("%v: %w", &w.plan.Sites[sites[0]], kernelerr.Explain(err))
	case len(sites) > 1:
		half := len(sites) / 2
		if err := w.together(b, sites[:half], open); err != nil {
			return err
		}
		return w.together(b, sites[half:], open)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.out.Attached = append(w.out.Attached, sites...)
		w.out.links = append(w.out.links, &bound{link, b, sites})
	} else {
		w.out.Refused = append(w.out.Refused, Refusal{sites[0], explain(err)})
	}
	if w.done += len(sites); w.o.Progress != nil {
		w.o.Progress(w.done, w.total)
	}
	return nil
}

// enotsupp is ENOTSUPP of the kernel's include/linux/errno.h, which is not meant for user
// space. Uprobes return it for an instruction that they cannot execute in another place.
const enotsupp = unix.Errno(524)

// explain adds to the kernel's error for one site what it means.
func explain(err error) error {
	for _, no := range []unix.Errno{unix.EILSEQ, unix.EINVAL, unix.EOPNOTSUPP, enotsupp} {
		if errors.Is(err, no) {
			return fmt.Errorf("%w: no probe can be at this instruction", err)
		}
	}
	return kernelerr.Explain(err)
}
