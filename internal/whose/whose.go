// Package whose says whose hits are meant: those of a command and of what it starts, of processes, control groups, containers, users; and until
// when, and of how many sites.
package whose

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/complete"
	"github.com/bpfprologue/bpfprologue/internal/containers"
	"github.com/bpfprologue/bpfprologue/internal/launch"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/internal/usage"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// Target is whose hits are meant.
type Target struct {
	Command          string // a command line
	All              bool
	PIDs             []int
	Comm             string
	User             string
	Groups           []string // directories of control groups
	Containers, Pods []string
	Duration         time.Duration
	MaxHits          int
	MaxSites         int // 0: any number
}

// PID returns the first process, whose files are meant, or 0.
func (h *Target) PID() int {
	if len(h.PIDs) == 0 {
		return 0
	}
	return h.PIDs[0]
}

// Words returns the command to run, of -c or after "--", before which there are some of the arguments, and the other ones. Without "--" dash
// is negative.
func (h *Target) Words(args []string, dash int) (rest, command []string, err error) {
	rest = args
	if dash >= 0 {
		rest, command = args[:dash], args[dash:]
	}
	for _, pid := range h.PIDs {
		if pid <= 0 {
			return nil, nil, usage.Errorf("--pid %d: no process has that number; --all traces all", pid)
		}
	}
	if h.MaxSites < 0 {
		return nil, nil, usage.Errorf("--max-sites %d: it is not negative", h.MaxSites)
	}
	if h.Command == "" {
		return rest, command, nil
	}
	if command != nil {
		return nil, nil, usage.Errorf("-c and -- name two commands")
	}
	switch l := complete.ParseLine(h.Command + " "); {
	case l.Quote != 0:
		return nil, nil, usage.Errorf("-c %q: the quotation mark %c is open", h.Command, l.Quote)
	case l.Acts != 0:
		return nil, nil, usage.Errorf("-c %q: it is split into words, and %q is for a shell: -c \"sh -c '...'\"", h.Command, l.Acts)
	case len(l.Words) == 1:
		return nil, nil, usage.Errorf("-c %q: it has no words", h.Command)
	default:
		return rest, l.Words[:len(l.Words)-1], nil
	}
}

// Simple reports whether one process at most is chosen, and nothing else.
func (h *Target) Simple() bool {
	return len(h.PIDs) < 2 && h.Comm == "" && h.User == "" && len(h.Groups)+len(h.Containers)+len(h.Pods) == 0
}

// Options sets whose hits a session reports: those of a process, those of the command and of all that it
// starts, or all.
func (h *Target) Options(o *tracer.Options, command []string) error {
	switch {
	case h.All && h.PID() != 0:
		return errors.New("--all and --pid exclude each other")
	case h.All && len(h.Groups) > 0:
		return errors.New("--all excludes --cgroup, --container and --pod")
	case h.Duration < 0 || h.MaxHits < 0:
		return errors.New("--duration and --max-hits are not negative")
	case h.PID() != 0:
		o.PID, o.PIDs, o.Groups = h.PID(), h.PIDs[1:], h.Groups
	case len(h.Groups) > 0:
		o.Groups = h.Groups
	case len(command) > 0 && !h.All:
		if err := launch.Adopt(); err != nil {
			return err
		}
		o.PID, o.Descendants = os.Getpid(), true
	}
	return nil
}

// FallBack reports whether the error of a session is that the kernel does not know which processes descend
// from another; then it says so, and the options are those of all processes.
func (h *Target) FallBack(o *tracer.Options, command []string, err error) bool {
	if !errors.Is(err, tracer.ErrNoTree) || len(command) == 0 {
		return false
	}
	terminal.Fprintf(screen.Stderr, "all processes are traced, not only %s: %v\n", command[0], err)
	o.PID, o.Descendants = 0, false
	return true
}

// Bounded returns a context that ends when the tracing does, for other reasons than the command's end.
func (h *Target) Bounded(ctx context.Context) (context.Context, context.CancelFunc, error) {
	ctx, stop := context.WithCancel(ctx)
	if h.Duration > 0 {
		time.AfterFunc(h.Duration, stop)
	}
	var processes []*os.File
	for _, pid := range h.PIDs {
		fd, err := unix.PidfdOpen(pid, 0)
		if errors.Is(err, unix.ESRCH) {
			continue // it was there when the session began, and has ended since
		}
		if err != nil {
			stop()
			return nil, nil, errors.Join(fmt.Errorf("process %d: %w", pid, err), closeAll(processes))
		}
		processes = append(processes, os.NewFile(uintptr(fd), "pidfd"))
	}
	switch {
	case len(h.PIDs) == 0:
	case len(processes) == 0:
		stop()
	default:
		go func() {
			for _, p := range processes { // until the last one has ended
				waitFor(ctx, p)
				_ = p.Close()
			}
			stop()
		}()
	}
	return ctx, stop, nil
}

// waitFor waits until a process, or the context, has ended.
func waitFor(ctx context.Context, pidfd *os.File) {
	for ctx.Err() == nil {
		// Readable when the process has ended. It is asked again now and then, so that this does not outlive the context by much.
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd.Fd()), Events: unix.POLLIN}}, 200)
		if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// FindGroups finds the control groups of containers and pods.
func (h *Target) FindGroups() error {
	if len(h.Containers)+len(h.Pods) == 0 {
		return nil
	}
	host, err := containers.This()
	if err != nil {
		return err
	}
	for _, name := range h.Containers {
		group, err := host.Container(name)
		if err != nil {
			return err
		}
		h.Groups = append(h.Groups, group)
	}
	for _, name := range h.Pods {
		groups, err := host.Pod(name)
		if err != nil {
			return err
		}
		h.Groups = append(h.Groups, groups...)
	}
	h.Containers, h.Pods = nil, nil
	return nil
}

// Processes returns the processes whose files are meant: those that are named, or those in control groups.
func (h *Target) Processes() (pids []int, err error) {
	if len(h.PIDs) > 0 {
		return h.PIDs, nil
	}
	for _, g := range h.Groups {
		more, err := containers.Processes(g)
		if err != nil {
			return nil, fmt.Errorf("control group %s: %w", g, err)
		}
		pids = append(pids, more...)
	}
	return pids, nil
}

// Restrict adds to a definition's condition whose hits are meant.
func (h *Target) Restrict(def *probe.Definition) error {
	add := func(op string, kind syntax.ExprKind, name string, b syntax.Expr) {
		e := &syntax.Expr{Kind: syntax.KindBinary, Name: op, A: &syntax.Expr{Kind: kind, Name: name}, B: &b}
		if def.Options.If != nil {
			e = &syntax.Expr{Kind: syntax.KindBinary, Name: "&&", A: e, B: def.Options.If}
		}
		def.Options.If = e
	}
	if h.Comm != "" {
		add("~", syntax.KindComm, "", syntax.Expr{Kind: syntax.KindString, Name: h.Comm})
	}
	if h.User != "" {
		number := h.User
		if _, err := strconv.ParseUint(number, 10, 32); err != nil {
			u, err := user.Lookup(h.User)
			if err != nil {
				return usage.Errorf("--uid %s: %w", h.User, err)
			}
			number = u.Uid
		}
		n, err := strconv.ParseUint(number, 10, 32)
		if err != nil {
			return usage.Errorf("--uid %s: %w", h.User, err)
		}
		add("==", syntax.KindTask, "uid", syntax.Expr{Kind: syntax.KindNumber, Name: number, Number: n})
	}
	return nil
}

func closeAll(files []*os.File) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
