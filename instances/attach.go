package instances

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/kernelerr"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// AttachOptions are options of Attach. The zero AttachOptions are the usual ones.
type AttachOptions struct {
	// PID, if not 0, is the one process to probe, by its number in this process' PID
	// namespace. It is for programs and libraries. A kprobe fires in all processes, so for
	// a kernel it is ErrNotSupported: the user's program must compare
	// (bpf_get_ns_current_pid_tgid).
	PID int
	// Cookie returns what bpf_get_attach_cookie returns to the program at a site, by its
	// index in Plan.Sites. If nil it is that index. Kernels before 5.15 have no cookies.
	Cookie func(site int) uint64
	// All makes a refused site an error; then nothing stays attached. By default what can
	// be attached is.
	All bool
	// Progress, if not nil, is called as sites are attached or refused.
	Progress func(done, total int)
}

// Attachment is the probes of a plan. They end when it is closed, or when the process
// ends, however it ends.
type Attachment struct {
	Attached []int     // indices in Plan.Sites, sorted
	Refused  []Refusal // the other sites that have an instance, sorted
	links    []io.Closer
}

// Refusal is a site at which the kernel takes no probe.
type Refusal struct {
	Site int   // index in Plan.Sites
	Err  error // the kernel's answer, for errors.Is with an Errno
}

// ErrRefused is wrapped by Attach's error if the kernel refused all sites, or some and
// AttachOptions.All is set.
var ErrRefused = errors.New("the kernel refused the probe")

// ErrTargetMismatch is wrapped by errors about a plan that was made for another place than
// where it is to be attached: another image, another slide, or another kind of memory
// reads. Running.Target is what a plan must be made with.
var ErrTargetMismatch = errors.New("the plan was not made for where its image runs")

// Attach attaches a plan's programs, one for each instance, at all its sites. It is no
// error if the kernel refuses some of them, unless AttachOptions.All is set.
//
// The error wraps ErrTargetMismatch, ErrRefused, ErrNotSupported, plan.ErrMissingArgument
// if all sites were excluded for it, or the kernel's Errno.
func Attach(ctx context.Context, p *plan.Plan, programs []*ebpf.Program, r *Running, o AttachOptions) (*Attachment, error) {
	if len(programs) != len(p.Instances) {
		return nil, fmt.Errorf("the plan has %d instances, and there are %d programs", len(p.Instances), len(programs))
	}
	if err := r.check(p); err != nil {
		return nil, err
	}
	if o.PID > 0 {
		if r.pmu == "kprobe" {
			return nil, fmt.Errorf("%w: kprobes of one process: they fire in all", ErrNotSupported)
		}
		if errors.Is(unix.Kill(o.PID, 0), unix.ESRCH) {
			return nil, fmt.Errorf("there is no process %d", o.PID)
		}
	}
	total := p.NumProbes()
	if total == 0 {
		return nil, fmt.Errorf("nothing to attach: %w, and such sites are skipped", plan.ErrMissingArgument)
	}
	w := &attacher{ctx: ctx, plan: p, r: r, o: &o, total: total, out: &Attachment{}}
	for i := range p.Instances {
		if err := w.instance(&p.Instances[i], programs[i]); err != nil {
			return nil, errors.Join(err, w.out.Close())
		}
	}
	a := w.out
	slices.Sort(a.Attached)
	slices.SortFunc(a.Refused, func(x, y Refusal) int { return cmp.Compare(x.Site, y.Site) })
	if len(a.Refused) > 0 && (o.All || len(a.Attached) == 0) {
		first := &a.Refused[0]
		err := fmt.Errorf("%w: %d of %d sites, the first is %v: %w", ErrRefused, len(a.Refused), w.total, &p.Sites[first.Site], first.Err)
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// check compares where a plan is to run with what it was made for. Its programs may read
// memory as older kernels do anywhere, and have a link for each site on any kernel.
func (r *Running) check(p *plan.Plan) error {
	if r == nil {
		return fmt.Errorf("%w: it is not known where that is", ErrTargetMismatch)
	}
	switch has, t := p.Target, r.target; {
	case p.Image != r.img:
		return fmt.Errorf("%w: it is of %s, which is not what runs", ErrTargetMismatch, p.Image.Path())
	case has.Slide != t.Slide:
		return fmt.Errorf("%w: it is for an image %#x bytes from its link-time addresses, and they are %#x", ErrTargetMismatch, has.Slide, t.Slide)
	case has.Reads != t.Reads && has.Reads != prologue.ReadLegacy:
		return fmt.Errorf("%w: its programs read %v memory, and it runs where they must read %v memory", ErrTargetMismatch, has.Reads, t.Reads)
	case has.KprobeMulti && r.pmu != "kprobe":
		return fmt.Errorf("%w: its programs are for kprobe.multi, which is not for %ss", ErrTargetMismatch, r.pmu)
	case has.UprobeMulti && r.pmu != "uprobe":
		return fmt.Errorf("%w: its programs are for uprobe.multi, which is not for %ss", ErrTargetMismatch, r.pmu)
	}
	return nil
}

// attacher attaches the programs of one plan.
type attacher struct {
	ctx         context.Context
	plan        *plan.Plan
	r           *Running
	o           *AttachOptions
	done, total int
	pmu         *pmu // of single probes, once it was found
	out         *Attachment
}

// instance attaches one program at all its sites.
func (w *attacher) instance(in *plan.Instance, prog *ebpf.Program) error {
	if !in.Multi {
		for _, site := range in.Sites {
			if err := w.together([]int{site}, w.single, prog); err != nil {
				return err
			}
		}
		return nil
	}
	// The kernel finds the cookie by the address: sites that share one have links of their
	// own.
	for left := in.Sites; len(left) > 0; {
		taken := make(map[uint64]bool)
		var now, later []int
		for _, site := range left {
			if addr := w.plan.Sites[site].Addr; taken[addr] {
				later = append(later, site)
			} else {
				taken[addr] = true
				now = append(now, site)
			}
		}
		if err := w.together(now, w.many, prog); err != nil {
			return err
		}
		left = later
	}
	return nil
}

// point is where to make a probe.
type point struct {
	addr   uint64 // as Running.address has it
	cookie uint64
}

// together attaches a program at some sites by one link. If the kernel refuses, each half
// is tried separately, until those that it refuses are alone.
func (w *attacher) together(sites []int, open func([]point, *ebpf.Program) (io.Closer, error), prog *ebpf.Program) error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	points := make([]point, len(sites))
	var err error
	for i, site := range sites {
		points[i].cookie = uint64(site)
		if w.o.Cookie != nil {
			points[i].cookie = w.o.Cookie(site)
		}
		if points[i].addr, err = w.r.address(w.plan.Sites[site].Addr); err != nil {
			break
		}
	}
	var link io.Closer
	if err == nil {
		link, err = open(points, prog)
	}
	switch {
	case err == nil:
		w.out.Attached = append(w.out.Attached, sites...)
		w.out.links = append(w.out.links, link)
	case errors.Is(err, ErrNotSupported), errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES), errors.Is(err, unix.EMFILE):
		// It is the same at all sites.
		return fmt.Errorf("%v: %w", &w.plan.Sites[sites[0]], kernelerr.Explain(err))
	case len(sites) > 1:
		half := len(sites) / 2
		if err := w.together(sites[:half], open, prog); err != nil {
			return err
		}
		return w.together(sites[half:], open, prog)
	default:
		w.out.Refused = append(w.out.Refused, Refusal{sites[0], explain(err)})
	}
	if w.done += len(sites); w.o.Progress != nil {
		w.o.Progress(w.done, w.total)
	}
	return nil
}

// enotsupp is ENOTSUPP of the kernel's include/linux/errno.h, which is not meant for user
// space: uprobes return it for an instruction that they cannot execute elsewhere.
const enotsupp = unix.Errno(524)

// explain adds to the kernel's answer for one site what it means there.
func explain(err error) error {
	for _, no := range []unix.Errno{unix.EILSEQ, unix.EINVAL, unix.EOPNOTSUPP, enotsupp} {
		if errors.Is(err, no) {
			return fmt.Errorf("%w: no probe can be at this instruction", err)
		}
	}
	return kernelerr.Explain(err)
}

// Close ends all probes. It may be called again.
func (a *Attachment) Close() error {
	var errs []error
	for _, l := range a.links {
		errs = append(errs, l.Close())
	}
	a.links = nil
	return errors.Join(errs...)
}
