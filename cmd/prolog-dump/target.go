package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/shell"

	"github.com/bpfprologue/bpfprologue/internal/launch"
	"github.com/bpfprologue/bpfprologue/internal/procfile"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// target selects the processes to trace, and when to stop.
type target struct {
	command  string
	all      bool
	pid      int
	duration time.Duration
	maxHits  int
	maxSites int // 0: any number
}

func (h *target) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVarP(&h.pid, "pid", "p", 0, "trace one process, until it ends; a path that -x names is that process's")
	f.StringVarP(&h.command, "command", "c", "", "the command line to run and trace, split as a shell does; or after --, word by word")
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
	if cmd.Flags().Changed("pid") && h.pid <= 0 {
		return nil, nil, usagef("--pid %d: no process has that number; --all traces all", h.pid)
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
	if command, err = shell.Fields(h.command, nil); err != nil || len(command) == 0 {
		return nil, nil, usagef("-c %q: %w", h.command, cmp.Or(err, errors.New("it has no words")))
	}
	return rest, command, nil
}

// options sets whose hits a session reports: those of a process, those of the command and of all that it
// starts, or all.
func (h *target) options(o *tracer.Options, command []string) error {
	switch {
	case h.all && h.pid != 0:
		return errors.New("--all and --pid exclude each other")
	case h.duration < 0 || h.maxHits < 0:
		return errors.New("--duration and --max-hits are not negative")
	case h.pid != 0:
		o.PID = h.pid
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
	if h.pid != 0 {
		fd, err := unix.PidfdOpen(h.pid, 0)
		if errors.Is(err, unix.ESRCH) {
			stop() // it was there when the session began, and has ended since
			return ctx, stop, nil
		}
		if err != nil {
			stop()
			return nil, nil, fmt.Errorf("process %d: %w", h.pid, err)
		}
		process := os.NewFile(uintptr(fd), "pidfd")
		go func() {
			defer process.Close()
			for {
				// Readable when the process has ended. It is asked again now and then, so that this
				// goroutine does not outlive the context by much.
				n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 200)
				if ctx.Err() != nil {
					return
				}
				if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
					stop()
					return
				}
			}
		}()
	}
	return ctx, stop, nil
}

// checkMapped says it if a process does not map a file. If it maps one that was there before, that is an error unless force is set:
// it goes on running that one.
func (s *settings) checkMapped(pid int, path string, force bool) error {
	old, is, err := procfile.Mapped(pid, path)
	if is || err != nil {
		return nil //nolint:nilerr // it cannot be known
	}
	text := fmt.Sprintf("%s: process %d does not map this file: there are no hits before it does", path, pid)
	if old == "" {
		s.warnOnce(text)
		return nil
	}
	text = fmt.Sprintf("%s: process %d runs another file, which was there before: restart it, or name that file: -x %s", path, pid, old)
	if !force {
		return errors.New(text)
	}
	s.warnOnce(text)
	return nil
}
