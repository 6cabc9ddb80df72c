// Command prolog-dump shows what a probe definition becomes: every place where a
// matching function runs, where its arguments are there, and the BPF instructions
// that fetch them. It is a thin layer over the packages of this module: whatever it does
// takes a few lines of Go.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/bpfprologue/bpfprologue/internal/caret"
	"github.com/bpfprologue/bpfprologue/probe"
)

// Exit statuses.
const (
	exitError       = 1
	exitInterrupted = 130 // as shells report Ctrl-C
)

// gcPercent lets the heap grow to one and a half times what is in use before it is collected:
// little is in use, and most of what is read is soon done with. With Go's 100, a run over a whole
// kernel takes some percent less time and 60 MB more.
const gcPercent = 50

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The second signal ends the program at once. The kernel ends its probes then.
	context.AfterFunc(ctx, stop)
	cmd := rootCommand()
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "prolog-dump: interrupted")
		return exitInterrupted
	case errors.Is(err, syscall.EPIPE):
		return exitError // the reader, a pager or head, has seen enough
	}
	fmt.Fprintf(os.Stderr, "prolog-dump: %v\n", err)
	var pe *probe.Error
	if errors.As(err, &pe) {
		fmt.Fprintln(os.Stderr, caret.Mark(pe.Text, pe.Column))
	}
	if a := advice(err); a != "" {
		fmt.Fprintln(os.Stderr, a)
	}
	return exitError
}
