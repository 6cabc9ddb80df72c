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
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/bpfprologue/bpfprologue/internal/caret"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/terminal"
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
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	err := cmd.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		terminal.Fprintf(stderr, "prolog-dump: interrupted\n")
		return exitInterrupted
	case errors.Is(err, syscall.EPIPE):
		return exitError // the reader, a pager or head, has seen enough
	}
	terminal.Fprintf(stderr, "prolog-dump: %v\n", err)
	var pe *probe.Error
	if errors.As(err, &pe) {
		marked := caret.Mark(pe.Text, pe.Column)
		if strings.Contains(pe.Text, "\n") {
			// Indented: a line of a definition must not look like one of the tool's.
			marked = "    " + strings.ReplaceAll(marked, "\n", "\n    ")
		}
		_, _ = io.WriteString(stderr, marked+"\n")
	}
	if a := advice(err); a != "" {
		terminal.Fprintf(stderr, "%s\n", a)
	}
	return exitError
}
