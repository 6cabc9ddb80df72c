package main

import (
	"errors"

	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/prologue"
	"github.com/bpfprologue/bpfprologue/sites"
)

// advisedError is an error with what a user can do about it.
type advisedError struct {
	error
	advice string
}

func (e *advisedError) Unwrap() error { return e.error }

// advice returns what a user of the tool can do about an error of the library, or "". The
// library does not know the tool's flags.
func advice(err error) string {
	var advised *advisedError
	var source *sites.NoSourceError
	var stack *prologue.StackError
	switch {
	case errors.As(err, &advised):
		return advised.advice
	case errors.Is(err, plan.ErrNeedsRecord):
		return "to get a record: --convention record"
	case errors.As(err, &stack):
		return "to shorten strings: --string-bytes N"
	case errors.Is(err, instances.ErrProgramMismatch):
		return "to see the prototype of the program: prolog-dump header"
	case errors.As(err, &source):
		return "name the directory with the sources: --source DIR"
	}
	return ""
}
