// Command prolog-dump shows what a probe definition becomes: every place where a
// matching function runs, where its arguments are there, and the BPF instructions
// that fetch them. It is a thin layer over the packages of this module: whatever it does
// takes a few lines of Go.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/bpfprologue/bpfprologue/internal/caret"
	"github.com/bpfprologue/bpfprologue/internal/heap"
	"github.com/bpfprologue/bpfprologue/internal/launch"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/internal/usage"
	"github.com/bpfprologue/bpfprologue/probe"
)

// Exit statuses. The help of the tool lists them, and package launch has more.
const (
	exitError = 1
	exitUsage = 2
)

// worked reports whether the error of a verb is none, or only the exit status of a command that has run.
func worked(err error) bool {
	var status launch.Status
	return err == nil || errors.As(err, &status) && err.Error() == status.Error() && status != launch.Cannot && status != launch.None
}

// signalled is the cause of the end of the tool's context.
type signalled struct{ syscall.Signal }

func (s signalled) Error() string { return "ended by a signal: " + s.String() }

// untilSignal returns a context that ends with the first signal. The second one ends the program at
// once; the kernel ends its probes then.
func untilSignal() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2) // the second may come before the first was looked at
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		n, ok := (<-signals).(syscall.Signal)
		if !ok {
			return // it was closed
		}
		cancel(signalled{n})
		if n, ok = (<-signals).(syscall.Signal); ok {
			signal.Reset(n)
			_ = syscall.Kill(syscall.Getpid(), n) // so that who started it sees what ended it
		}
	}()
	return ctx, func() { signal.Stop(signals); close(signals); cancel(nil) }
}

func main() {
	heap.Late()
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	ctx, stop := untilSignal()
	defer stop()
	s := new(settings)
	cmd := rootCommand(s)
	cmd.SetArgs(args)
	cmd.SetOut(screen.Stdout)
	cmd.SetErr(screen.Stderr)
	err := cmd.ExecuteContext(ctx)
	err = errors.Join(err, s.end(worked(err)))
	if p, ok := screen.Stdout.(*screen.Printed); ok && err == nil {
		err = p.Failed() // of what was printed without a look at the error, such as help
	}
	var status launch.Status
	var sig signalled
	switch {
	case err == nil:
		return 0
	case errors.As(context.Cause(ctx), &sig):
		terminal.Fprintf(screen.Stderr, "prolog-dump: interrupted\n")
		return launch.Signal + int(sig.Signal)
	case errors.As(err, &status) && err.Error() == status.Error():
		return int(status)
	case errors.Is(err, syscall.EPIPE):
		return exitError // the reader, a pager or head, has seen enough
	}
	terminal.Fprintf(screen.Stderr, "prolog-dump: %v\n", err)
	var pe *probe.Error
	if errors.As(err, &pe) {
		marked := caret.Mark(pe.Text, pe.Column)
		if strings.Contains(pe.Text, "\n") {
			// Indented: a line of a definition must not look like one of the tool's.
			marked = "    " + strings.ReplaceAll(marked, "\n", "\n    ")
		}
		_, _ = io.WriteString(screen.Stderr, marked+"\n")
	}
	if a := advice(err); a != "" {
		terminal.Fprintf(screen.Stderr, "%s\n", a)
	}
	var wrong *usage.Error
	if errors.As(err, &wrong) || strings.HasPrefix(err.Error(), "required flag") {
		return exitUsage
	}
	return exitError
}
