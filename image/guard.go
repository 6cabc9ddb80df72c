package image

import (
	"errors"

	"github.com/bpfprologue/bpfprologue/internal/mapping"
)

// Guard calls g, which reads bytes that DebugSections returned, and turns a fault on a
// page that the file no longer has into an error that wraps ErrChanged. Each goroutine
// that reads such bytes needs its own call. An error of g is ErrChanged too when the file
// was written to: what looks like damage is half of one file and half of another.
//
// Guards may be nested: the outer one costs a system call in case of an error, the inner
// ones nothing but the call.
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
// was cut short or written to since it was opened. It asks the system, which takes a
// microsecond: ask once at the end of a long piece of work.
func (f *File) Changed() error {
	if err := f.faulted(); err != nil {
		return err
	}
	if err := f.mapped.Changed(); err != nil {
		return err
	}
	return f.separate.Changed()
}
