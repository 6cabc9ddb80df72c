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
)

// AttachOptions say how to attach.
type AttachOptions struct {
	PID int // probe one process, 0 for all; of user space
	// Cookie is what bpf_get_attach_cookie gives to the program at a site. nil gives the
	// site's index in Plan.Sites. Kernels before 5.15 know no cookies.
	Cookie func(site int) uint64
	// All makes a site that is refused an error, and then nothing stays attached. The
	// default keeps what could be attached.
	All bool
	// Progress is called as sites are done, if it is not nil.
	Progress func(done, total int)
}

// Attachment is the probes of a plan. Closing it ends them; so does the end of the
// process, however it ends.
type Attachment struct {
	Attached []int     // indices of Plan.Sites
	Refused  []Refusal // the others that have an instance
	links    []io.Closer
}

// Refusal is a site that the kernel takes no probe at.
type Refusal struct {
	Site int // index of Plan.Sites
	Err  error
}

// ErrRefused is wrapped by Attach's error when no site could be attached, or not all
// that had to be.
var ErrRefused = errors.New("the kernel refused the probe")

// Attach attaches a plan's programs, one for each instance, at all its sites. Partial
// success is no error, unless all was asked for.
func (p *Plan) Attach(ctx context.Context, programs []*ebpf.Program, r *Running, o AttachOptions) (*Attachment, error) {
	if len(programs) != len(p.Instances) {
		return nil, fmt.Errorf("the plan has %d instances, and there are %d programs", len(p.Instances), len(programs))
	}
	if r == nil || r.img != p.Image {
		return nil, ErrNowhere
	}
	if o.PID > 0 && r.pmu == "uprobe" && errors.Is(unix.Kill(o.PID, 0), unix.ESRCH) {
		return nil, fmt.Errorf("there is no process %d", o.PID)
	}
	if p.Served() == 0 {
		return nil, fmt.Errorf("nothing to attach: %w, and such sites are skipped", ErrMissingArgument)
	}
	w := &attacher{ctx: ctx, plan: p, r: r, o: &o, total: p.Served(), out: &Attachment{}}
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
		err := fmt.Errorf("%w: %d of %d sites, the first is %v: %w%s", ErrRefused, len(a.Refused), w.total, &p.Sites[first.Site], first.Err, Hint(first.Err))
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// attacher attaches the programs of one plan.
type attacher struct {
	ctx         context.Context
	plan        *Plan
	r           *Running
	o           *AttachOptions
	done, total int
	pmu         *pmu // of single probes, once it was found
	out         *Attachment
}

// instance attaches one program at all its sites.
func (w *attacher) instance(in *Instance, prog *ebpf.Program) error {
	if in.Multi == Single {
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

// place is where to make a probe.
type place struct {
	addr   uint64 // as Running.address has it
	cookie uint64
}

// together attaches a program at some sites by one link. When the kernel refuses, each
// half is tried for itself, until those that it refuses are alone.
func (w *attacher) together(sites []int, open func([]place, *ebpf.Program) (io.Closer, error), prog *ebpf.Program) error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	places := make([]place, len(sites))
	var err error
	for i, site := range sites {
		places[i].cookie = uint64(site)
		if w.o.Cookie != nil {
			places[i].cookie = w.o.Cookie(site)
		}
		if places[i].addr, err = w.r.address(w.plan.Sites[site].Addr); err != nil {
			break
		}
	}
	var link io.Closer
	if err == nil {
		link, err = open(places, prog)
	}
	switch {
	case err == nil:
		w.out.Attached = append(w.out.Attached, sites...)
		w.out.links = append(w.out.links, link)
	case errors.Is(err, ErrNotSupported), errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES), errors.Is(err, unix.EMFILE):
		// No site fares better.
		return fmt.Errorf("%v: %w%s", &w.plan.Sites[sites[0]], err, Hint(err))
	case len(sites) > 1:
		half := len(sites) / 2
		if err := w.together(sites[:half], open, prog); err != nil {
			return err
		}
		return w.together(sites[half:], open, prog)
	default:
		w.out.Refused = append(w.out.Refused, Refusal{sites[0], err})
	}
	if w.done += len(sites); w.o.Progress != nil {
		w.o.Progress(w.done, w.total)
	}
	return nil
}

// enotsupp is ENOTSUPP of the kernel's include/linux/errno.h, which it does not mean to
// show: uprobes know the instruction, and cannot do it.
const enotsupp = unix.Errno(524)

// Hint is the way out of an error of loading or attaching, to be put behind its text, or
// "".
func Hint(err error) string {
	// The verifier's refusal of a program is EACCES too.
	var verifier *ebpf.VerifierError
	switch {
	case errors.As(err, &verifier):
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return ": probes need root, or CAP_PERFMON and CAP_BPF"
	case errors.Is(err, unix.EMFILE):
		return ": each probe needs a file descriptor: raise the limit (ulimit -n)"
	case errors.Is(err, unix.EILSEQ), errors.Is(err, unix.EINVAL), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, enotsupp):
		return ": no probe can be at this instruction"
	}
	return ""
}

// Close ends all probes.
func (a *Attachment) Close() error {
	var errs []error
	for _, l := range a.links {
		errs = append(errs, l.Close())
	}
	a.links = nil
	return errors.Join(errs...)
}
