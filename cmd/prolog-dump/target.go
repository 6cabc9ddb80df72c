package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/complete"
	"github.com/bpfprologue/bpfprologue/internal/containers"
	"github.com/bpfprologue/bpfprologue/internal/launch"
	"github.com/bpfprologue/bpfprologue/internal/procfile"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// target selects the processes to trace, and when to stop.
type target struct {
	command        string
	all            bool
	pids           []int
	pid            int // the first one, whose files are meant; or 0
	comm           string
	user           string
	groups         []string // directories of control groups
	container, pod texts
	duration       time.Duration
	maxHits        int
	maxSites       int // 0: any number
}

func (h *target) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntSliceVarP(&h.pids, "pid", "p", nil, "trace a process, until it ends; may be repeated; a path that -x names is as the process sees it")
	f.StringVar(&h.comm, "comm", "", "trace tasks whose names match a pattern")
	f.StringVar(&h.user, "uid", "", "trace tasks of a user, by number or name")
	f.Var((*texts)(&h.groups), "cgroup", "trace what is in a control group (version 2) or below, by its directory, also what begins later; may be repeated")
	f.Var(&h.container, "container", "trace a container, by its ID or name, as --cgroup; a name or path that -x names is the container's; may be repeated")
	f.Var(&h.pod, "pod", "trace a pod, as NAMESPACE/NAME; as --container")
	f.StringVarP(&h.command, "command", "c", "", "the command line to run and trace, split into words as a shell does, with nothing expanded; or after --, word by word")
	f.BoolVar(&h.all, "all", false, "trace all processes, not only COMMAND and what it starts")
	f.IntVar(&h.maxSites, "max-sites", usualMaxSites, "trace no definitions with more sites than this; 0: any number")
	f.DurationVar(&h.duration, "duration", 0, "end after this time, such as 10s; COMMAND goes on")
}

// words returns the command to run, of -c or after "--", and the other arguments.
func (h *target) words(cmd *cobra.Command, args []string) (rest, command []string, err error) {
	rest = args
	if n := cmd.ArgsLenAtDash(); n >= 0 {
		rest, command = args[:n], args[n:]
	}
	for _, pid := range h.pids {
		if pid <= 0 {
			return nil, nil, usagef("--pid %d: no process has that number; --all traces all", pid)
		}
	}
	if len(h.pids) > 0 {
		h.pid = h.pids[0]
	}
	if h.maxSites < 0 {
		return nil, nil, usagef("--max-sites %d: it is not negative", h.maxSites)
	}
	if h.command == "" {
		return rest, command, nil
	}
	if command != nil {
		return nil, nil, usagef("-c and -- name two commands")
	}
	switch l := complete.ParseLine(h.command + " "); {
	case l.Quote != 0:
		return nil, nil, usagef("-c %q: the quotation mark %c is open", h.command, l.Quote)
	case l.Acts != 0:
		return nil, nil, usagef("-c %q: it is split into words, and %q is for a shell: -c \"sh -c '...'\"", h.command, l.Acts)
	case len(l.Words) == 1:
		return nil, nil, usagef("-c %q: it has no words", h.command)
	default:
		return rest, l.Words[:len(l.Words)-1], nil
	}
}

// simple reports whether one process at most is chosen, and nothing else.
func (h *target) simple() bool {
	return len(h.pids) < 2 && h.comm == "" && h.user == "" && len(h.groups)+len(h.container)+len(h.pod) == 0
}

// options sets whose hits a session reports: those of a process, those of the command and of all that it
// starts, or all.
func (h *target) options(o *tracer.Options, command []string) error {
	switch {
	case h.all && h.pid != 0:
		return errors.New("--all and --pid exclude each other")
	case h.all && len(h.groups) > 0:
		return errors.New("--all excludes --cgroup, --container and --pod")
	case h.duration < 0 || h.maxHits < 0:
		return errors.New("--duration and --max-hits are not negative")
	case h.pid != 0:
		o.PID, o.PIDs, o.Groups = h.pid, h.pids[1:], h.groups
	case len(h.groups) > 0:
		o.Groups = h.groups
	case len(command) > 0 && !h.all:
		if err := launch.Adopt(); err != nil {
			return err
		}
		o.PID, o.Descendants = os.Getpid(), true
	}
	return nil
}

// fallBack reports whether the error of a session is that the kernel does not know which processes descend
// from another; then it says so, and the options are those of all processes.
func (h *target) fallBack(o *tracer.Options, command []string, err error) bool {
	if !errors.Is(err, tracer.ErrNoTree) || len(command) == 0 {
		return false
	}
	terminal.Fprintf(screen.Stderr, "all processes are traced, not only %s: %v\n", command[0], err)
	o.PID, o.Descendants = 0, false
	return true
}

// bounded returns a context that ends when the tracing does, for other reasons than the command's end.
func (h *target) bounded(ctx context.Context) (context.Context, context.CancelFunc, error) {
	ctx, stop := context.WithCancel(ctx)
	if h.duration > 0 {
		time.AfterFunc(h.duration, stop)
	}
	var processes []*os.File
	for _, pid := range h.pids {
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
	case len(h.pids) == 0:
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

// findGroups finds the control groups of containers and pods.
func (h *target) findGroups() error {
	if len(h.container)+len(h.pod) == 0 {
		return nil
	}
	host, err := containers.This()
	if err != nil {
		return err
	}
	for _, name := range h.container {
		group, err := host.Container(name)
		if err != nil {
			return err
		}
		h.groups = append(h.groups, group)
	}
	for _, name := range h.pod {
		groups, err := host.Pod(name)
		if err != nil {
			return err
		}
		h.groups = append(h.groups, groups...)
	}
	h.container, h.pod = nil, nil
	return nil
}

// processes returns the processes whose files are meant: those that are named, or those in control groups.
func (h *target) processes() (pids []int, err error) {
	if len(h.pids) > 0 {
		return h.pids, nil
	}
	for _, g := range h.groups {
		more, err := containers.Processes(g)
		if err != nil {
			return nil, fmt.Errorf("control group %s: %w", g, err)
		}
		pids = append(pids, more...)
	}
	return pids, nil
}

// restrict adds to a definition's condition whose hits are meant.
func (h *target) restrict(def *probe.Definition) error {
	add := func(op string, kind syntax.ExprKind, name string, b syntax.Expr) {
		e := &syntax.Expr{Kind: syntax.KindBinary, Name: op, A: &syntax.Expr{Kind: kind, Name: name}, B: &b}
		if def.Options.If != nil {
			e = &syntax.Expr{Kind: syntax.KindBinary, Name: "&&", A: e, B: def.Options.If}
		}
		def.Options.If = e
	}
	if h.comm != "" {
		add("~", syntax.KindComm, "", syntax.Expr{Kind: syntax.KindString, Name: h.comm})
	}
	if h.user != "" {
		number := h.user
		if _, err := strconv.ParseUint(number, 10, 32); err != nil {
			u, err := user.Lookup(h.user)
			if err != nil {
				return usagef("--uid %s: %w", h.user, err)
			}
			number = u.Uid
		}
		n, err := strconv.ParseUint(number, 10, 32)
		if err != nil {
			return usagef("--uid %s: %w", h.user, err)
		}
		add("==", syntax.KindTask, "uid", syntax.Expr{Kind: syntax.KindNumber, Name: number, Number: n})
	}
	return nil
}

// checkMapped says it of processes that do not map a file, unless another one of them does. If one maps a file that was there before, that is
// an error unless force is set: it goes on running that one.
func (s *settings) checkMapped(pids []int, path string, force bool) error {
	olds := make(map[int]string)
	for _, pid := range pids {
		old, is, err := procfile.Mapped(pid, path)
		if is {
			return nil
		}
		if err == nil { // else it cannot be known
			olds[pid] = old
		}
	}
	for _, pid := range pids {
		old, known := olds[pid]
		switch {
		case !known:
		case old == "":
			s.warnOnce(fmt.Sprintf("%s: process %d does not map this file: there are no hits before it does", path, pid))
		case force:
			s.warnOnce(replaced(path, pid, old))
		default:
			return errors.New(replaced(path, pid, old))
		}
	}
	return nil
}

func replaced(path string, pid int, old string) string {
	return fmt.Sprintf("%s: process %d runs another file, which was there before: restart it, or name that file: -x %s", path, pid, old)
}
