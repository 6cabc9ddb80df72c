// Package launch runs a command and what it starts, and ends as it ends, as shells do.
package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
)

// Exit statuses, as in shells.
const (
	Cannot = 126 // a command cannot be run
	None   = 127 // there is no such command
	Signal = 128 // and the number of the signal that ended the tool, or the command
)

// Status is the exit status of a command that the tool has run, and so the tool's.
type Status int

// Error says the number: a Status is the error with which the tool ends.
func (e Status) Error() string { return "exit status " + strconv.Itoa(int(e)) }

// Command is a command that runs.
type Command struct {
	name  string
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // of its end
}

// Adopt makes what a command leaves behind this process's child, which so still descends from it.
func Adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("PR_SET_CHILD_SUBREAPER: %w", err)
	}
	return nil
}

// Find returns an error, which it has said, if there is no such command: Start would, but later.
func Find(words []string) error {
	if len(words) == 0 {
		return nil
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return cannot(err)
	}
	return nil
}

// cannot says why a command cannot be run, and returns the exit status for that.
func cannot(err error) error {
	terminal.Fprintf(screen.Stderr, "prolog-dump: %v\n", err)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return Status(None)
	}
	return Status(Cannot)
}

// Start starts a command, if there is one; nil is none. The context that it returns ends with the command, or with
// ctx.
func Start(ctx context.Context, words []string) (running context.Context, c *Command, err error) {
	if len(words) == 0 {
		return ctx, nil, nil
	}
	c = &Command{name: words[0], cmd: exec.Command(words[0], words[1:]...), ended: make(chan struct{})}
	screen.GiveTerminal(c.cmd)
	if err := c.cmd.Start(); err != nil {
		return nil, nil, cannot(err)
	}
	running, stop := context.WithCancel(ctx)
	reaping, enough := context.WithCancel(context.Background())
	reaped := make(chan struct{})
	go func() {
		c.reap(reaping)
		close(reaped)
	}()
	go func() {
		c.err = c.cmd.Wait()
		enough()
		<-reaped // it would take the next command for one that this one has left behind
		close(c.ended)
		stop()
	}()
	return running, c, nil
}

// reap takes what the command has left behind when it ends, until ctx does: see Adopt.
func (c *Command) reap(ctx context.Context) {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	defer signal.Stop(children)
	for {
		select {
		case <-ctx.Done():
			return
		case <-children:
		}
		lists, err := filepath.Glob("/proc/self/task/*/children")
		if err != nil {
			return
		}
		for _, l := range lists {
			text, _ := os.ReadFile(l) // the thread may have ended
			for _, word := range strings.Fields(string(text)) {
				if pid, err := strconv.Atoi(word); err == nil && pid != c.cmd.Process.Pid {
					_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // or it has not ended
				}
			}
		}
	}
}

// Ended reports whether there is a command, and it has ended.
func (c *Command) Ended() bool {
	if c == nil {
		return false
	}
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// Wait waits for the command's end, and returns its exit status as an error, unless it is 0. When ctx ends the
// command is ended.
func (c *Command) Wait(ctx context.Context) error {
	if c == nil {
		return nil
	}
	select {
	case <-c.ended:
	case <-ctx.Done():
		_ = c.cmd.Process.Kill() // it may have ended
		<-c.ended
		return context.Cause(ctx)
	}
	var exit *exec.ExitError
	if !errors.As(c.err, &exit) {
		return c.err
	}
	if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		terminal.Fprintf(screen.Stderr, "%s: %v\n", c.name, exit)
		return Status(Signal + int(s.Signal()))
	}
	return Status(exit.ExitCode())
}
