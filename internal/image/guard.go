package image

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"github.com/bpfprologue/bpfprologue/internal/mapping"
)

// Guard calls g, which reads bytes from DebugSections, and turns a fault on a page that
// the file no longer has into an error that wraps ErrChanged. Each goroutine that reads
// such bytes must call Guard itself. If g fails and the file was written to, the error
// wraps ErrChanged too: what looks like damage is a mix of old and new contents.
//
// If the file was closed before, g is not called, and the error wraps [os.ErrClosed]. If it is closed
// meanwhile, the file stays mapped until g has returned, but the error is the same: questions that g
// has asked without looking at their errors may have got no answer.
//
// Calls may be nested. After an error the outer one makes a system call; otherwise a
// Guard costs little more than a function call.
func (f *File) Guard(g func() error) error {
	if !f.users.Enter() {
		return f.closed()
	}
	defer f.users.Leave()
	err := mapping.Guard(g)
	if closed := f.closed(); closed != nil {
		return closed
	}
	if err == nil {
		return f.faulted()
	}
	if errors.Is(err, ErrChanged) {
		return err
	}
	if changed := f.Changed(); changed != nil {
		return changed
	}
	return err
}

// closed returns an error if Close was called.
func (f *File) closed() error {
	if !f.users.Closed() {
		return nil
	}
	return fmt.Errorf("%s: %w", f.Path(), os.ErrClosed)
}

func (f *File) faulted() error {
	if f.related == nil { // each Guard asks
		return cmp.Or(f.mapped.Faulted(), f.separate.Faulted())
	}
	for _, m := range f.mappings() {
		if err := m.Faulted(); err != nil {
			return err
		}
	}
	return nil
}

// Changed returns an error that wraps ErrChanged if the file, or another one with its debug information,
// was truncated or written to since it was opened, or [os.ErrClosed] if it was closed. The system call
// takes a microsecond, so call Changed once, at the end of a longer operation.
func (f *File) Changed() error {
	if !f.users.Enter() {
		return f.closed()
	}
	defer f.users.Leave()
	if err := f.faulted(); err != nil {
		return err
	}
	for _, m := range f.mappings() {
		if err := m.Changed(); err != nil {
			return err
		}
	}
	return nil
}
