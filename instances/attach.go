package instances

import (
	"context"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// AttachOptions say what to attach to.
type AttachOptions struct {
	// Exec is the path of the executable or library to probe, for user-space plans; ""
	// is the definition's exec=, or else the path of the plan's image.
	Exec string
	// Kernel tells that the image is the running kernel's. Its build ID must be the
	// image's.
	Kernel bool
	PID    int  // probe one process, 0 for all; of user-space plans
	Force  bool // attach even if the build IDs differ
	// Cookie is what bpf_get_attach_cookie gives to the program at a site. nil gives the
	// site's index in Plan.Sites. Kernels before 5.15 know no cookies.
	Cookie func(site int) uint64
	// All makes a site that is refused an error, and then nothing stays attached. The
	// default keeps what could be attached.
	All bool
}

// Attachment is the probes of a plan. Closing it ends them; so does the end of the
// process, however it ends.
type Attachment struct {
	Attached []int     // indices of Plan.Sites
	Refused  []Refusal // the others that have an instance
	links    []*probeLink
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
func (p *Plan) Attach(ctx context.Context, programs []*ebpf.Program, o AttachOptions) (*Attachment, error) {
	if len(programs) != len(p.Instances) {
		return nil, fmt.Errorf("the plan has %d instances, and there are %d programs", len(p.Instances), len(programs))
	}
	place, err := p.placer(&o)
	if err != nil {
		return nil, err
	}
	a := &Attachment{}
	for i := range p.Sites {
		s := &p.Sites[i]
		if s.Instance < 0 {
			continue
		}
		if ctx.Err() != nil {
			return nil, errors.Join(context.Cause(ctx), a.Close())
		}
		var link *probeLink
		event, err := place(s.Addr)
		if err == nil {
			event.ret = p.Definition.Point.Return
			event.cookie = uint64(i)
			if o.Cookie != nil {
				event.cookie = o.Cookie(i)
			}
			link, err = event.open(programs[s.Instance])
		}
		switch {
		case err == nil:
			a.Attached = append(a.Attached, i)
			a.links = append(a.links, link)
		case errors.Is(err, ErrNotSupported), errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES), errors.Is(err, unix.EMFILE):
			// No site fares better.
			return nil, errors.Join(fmt.Errorf("%v: %w%s", s, err, way(err)), a.Close())
		default:
			a.Refused = append(a.Refused, Refusal{i, err})
		}
	}
	if len(a.Refused) > 0 && (o.All || len(a.Attached) == 0) {
		first := &a.Refused[0]
		err := fmt.Errorf("%w: %d of %d sites, the first is %v: %w%s", ErrRefused, len(a.Refused), len(a.Refused)+len(a.Attached), &p.Sites[first.Site], first.Err, way(first.Err))
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// way is a hint at the way out of an error.
func way(err error) string {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return ": probes need root, or CAP_PERFMON and CAP_BPF"
	case errors.Is(err, unix.EMFILE):
		return ": each probe needs a file descriptor: raise the limit (ulimit -n)"
	case errors.Is(err, unix.EILSEQ), errors.Is(err, unix.EINVAL):
		return ": no probe can be at this instruction"
	}
	return ""
}

// placer checks that what runs is the image, and returns what makes events of
// link-time addresses.
func (p *Plan) placer(o *AttachOptions) (func(addr uint64) (*probeEvent, error), error) {
	if o.Kernel {
		if !o.Force {
			if err := CheckKernel(p.Image); err != nil {
				return nil, err
			}
		}
		slide, err := KernelSlide(p.Image)
		if err != nil {
			return nil, err
		}
		return func(addr uint64) (*probeEvent, error) {
			return &probeEvent{pmu: "kprobe", addr: addr + slide}, nil
		}, nil
	}
	path := o.Exec
	if path == "" {
		path = p.Definition.Options.Exec
	}
	if path == "" {
		path = p.Image.Path()
	}
	if !o.Force {
		if err := checkFile(p.Image, path); err != nil {
			return nil, err
		}
	}
	return func(addr uint64) (*probeEvent, error) {
		off, err := FileOffset(p.Image, addr)
		return &probeEvent{pmu: "uprobe", path: path, addr: off, pid: o.PID}, err
	}, nil
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
