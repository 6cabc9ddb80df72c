package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/kernelfiles"
	"github.com/bpfprologue/bpfprologue/internal/suggest"
	"github.com/bpfprologue/bpfprologue/internal/usage"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
	"github.com/bpfprologue/bpfprologue/sites"
)

// withVerb adds advice to the error for a definition that may be a mistyped verb: it is none, or its function
// was not found, or not even an image.
func withVerb(root *cobra.Command, args []string, err error) error {
	var noFunction *sites.NotFoundError
	var noImage *kernelfiles.NotFoundError
	_, malformed := probe.Parse(args[0])
	words := strings.Fields(args[0])
	if err == nil || len(words) == 0 || malformed == nil && !errors.As(err, &noFunction) && !errors.As(err, &noImage) {
		return err
	}
	verbs := func(yield func(string) bool) {
		for _, c := range root.Commands() {
			if !c.Hidden && !yield(c.Name()) {
				return
			}
		}
	}
	nearest := suggest.Nearest(words[0], verbs, 1)
	if len(nearest) == 0 {
		if len(args) > 1 && len(words) == 1 {
			return usage.Advise(err, fmt.Sprintf("each definition is one argument: quote it, as in '%s'", strings.Join(args, " ")))
		}
		return err
	}
	if len(args) > 1 && len(words) == 1 {
		return usage.Errorf("unknown command %q: did you mean %s?", words[0], nearest[0])
	}
	hint := fmt.Sprintf("if %q should be a verb, did you mean %s?", words[0], nearest[0])
	if other := advice(err); other != "" {
		hint = other + "\n" + hint
	}
	return usage.Advise(err, hint)
}

// advice returns what a user of the tool can do about an error of the library, or "". The
// library does not know the tool's flags.
func advice(err error) string {
	var advised *usage.Advised
	var source *sites.NoSourceError
	var stack *prologue.StackError
	switch {
	case errors.As(err, &advised):
		return advised.Advice
	case errors.Is(err, plan.ErrNeedsRecord):
		return "to get a record: --convention record"
	case errors.As(err, &stack):
		return "to shorten strings: --string-bytes N"
	case errors.Is(err, instances.ErrProgramMismatch):
		return "to see the prototype of the program: prolog-dump header"
	case errors.Is(err, dwarfloc.ErrNotDescribed):
		return "name the image with its debug information: -k FILE, or -x FILE for a program"
	case errors.As(err, &source):
		return "name the directory with the sources: --source DIR"
	}
	return ""
}
