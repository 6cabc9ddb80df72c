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

// AttachOptions are options of Attach. The zero AttachOptions attach all sites that the kernel
// does not refuse, in all processes.
type AttachOptions struct {
	// PID, if not 0, is the only process to probe, by its ID in the PID namespace of this
	// process. It is for programs and libraries. A kprobe fires in all processes, so for a
	// kernel Attach returns ErrNotSupported: the user's program must compare process IDs
	// (bpf_get_ns_current_pid_tgid).
	PID int
	// Cookie returns the attach cookie of a site, an index in Plan.Sites:
	// bpf_get_attach_cookie returns it to the program. If nil, cookies are these indices, with
	// CookieAgain where that applies.
	// Kernels before 5.15 have no cookies.
	Cookie func(site int) uint64
	// All makes a refused site an error; then nothing stays attached.
	All bool
	// None makes it no error if no site has a probe: all were refused, or excluded because
	// an argument is missing. It is for callers that attach several plans.
	None bool
	// Progress, if not nil, is called as sites are attached or refused.
	Progress func(done, total int)
}

// CookieAgain is set in the attach cookie of a site with dwarfloc.Site.Again, unless
// AttachOptions.Cookie makes the cookies: the hit may be another turn of a run's loop.
const CookieAgain = 1 << 63

// Attachment is the attached probes of a plan. They end when it is closed, or when the
// process ends, however it ends.
type Attachment struct {
	Attached []int     // indices in Plan.Sites, sorted
	Refused  []Refusal // for the other sites that have an instance or are refused in the plan, sorted by site
	links    []io.Closer
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
// The error wraps ErrTargetMismatch, ErrRefused, ErrNotSupported, plan.ErrMissingArgument if
// all sites were excluded because an argument is missing, or the kernel's syscall.Errno:
// EPERM, EACCES and EMFILE end attaching. If ctx ends, the error is its cause. After an error
// nothing stays attached.
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
	out := &Attachment{}
	for i := range p.Sites {
		if err := p.Sites[i].Refused; err != nil {
			out.Refused = append(out.Refused, Refusal{i, err})
		}
	}
	if total == 0 && len(out.Refused) == 0 && !o.None {
		return nil, fmt.Errorf("nothing to attach: %w, and such sites are skipped", plan.ErrMissingArgument)
	}
	w := &attacher{ctx: ctx, plan: p, r: r, o: &o, total: total, out: out}
	for i := range p.Instances {
		if err := w.instance(&p.Instances[i], programs[i]); err != nil {
			return nil, errors.Join(err, w.out.Close())
		}
	}
	a := w.out
	slices.Sort(a.Attached)
	slices.SortFunc(a.Refused, func(x, y Refusal) int { return cmp.Compare(x.Site, y.Site) })
	if len(a.Refused) > 0 && (o.All || len(a.Attached) == 0 && !o.None) {
		first := &a.Refused[0]
		err := fmt.Errorf("%w: %d of %d sites, the first is %v: %w", ErrRefused, len(a.Refused), len(a.Refused)+len(a.Attached), &p.Sites[first.Site], first.Err)
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// check compares a plan's target with where its image runs. prologue.ReadLegacy and links for
// single sites work everywhere.
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
	pmu         *pmu // of single probes; nil before the first one
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
	// The kernel finds the cookie by the address, so sites with the same address need
	// different links.
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

// point is the place of one probe.
type point struct {
	addr     uint64 // from Running.address
	cookie   uint64
	isReturn bool
}

// together attaches a program at some sites by one link. If the kernel refuses, it tries each
// half separately, down to single sites.
func (w *attacher) together(sites []int, open func([]point, *ebpf.Program) (io.Closer, error), prog *ebpf.Program) error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	points := make([]point, len(sites))
	var err error
	for i, site := range sites {
		s := &w.plan.Sites[site]
		points[i].cookie, points[i].isReturn = uint64(site), s.Return
		if s.Again {
			points[i].cookie |= CookieAgain
		}
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
		// The same would happen at all sites.
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

// Close ends all probes. It may be called again.
func (a *Attachment) Close() error {
	var errs []error
	for _, l := range a.links {
		errs = append(errs, l.Close())
	}
	a.links = nil
	return errors.Join(errs...)
}
