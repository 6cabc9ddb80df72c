package image

import (
	"errors"

	"github.com/bpfprologue/bpfprologue/internal/mapping"
)

// Guard calls g, which reads bytes from DebugSections, and turns a fault on a page that
// the file no longer has into an error that wraps ErrChanged. Each goroutine that reads
// such bytes must call Guard itself. If g fails and the file was written to, the error
// wraps ErrChanged too: what looks like damage is a mix of old and new contents.
//
// Calls may be nested. After an error the outer one makes a system call; otherwise a
// Guard costs no more than a function call.
func (f *File) Guard(g func() error) error {
	err := mapping.Guard(g)
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

func (f *File) faulted() error {
	if err := f.mapped.Faulted(); err != nil {
		return err
	}
	return f.separate.Faulted()
}

// Changed returns an error that wraps ErrChanged if the file, or its separate debug file,
// was truncated or written to since it was opened. The system call takes a microsecond,
// so call Changed once, at the end of a longer operation.
func (f *File) Changed() error {
	if err := f.faulted(); err != nil {
		return err
	}
	if err := f.mapped.Changed(); err != nil {
		return err
	}
	return f.separate.Changed()
}
