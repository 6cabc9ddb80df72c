// Package mapping provides a file's contents as a byte slice without reading it all:
// the kernel loads pages when they are accessed. If a file shrinks while it is mapped,
// an access can fault; Guard turns the fault into an error.
package mapping

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrFault is wrapped by the error of Guard and Faulted if a mapped file no longer has the
// bytes that were read, and by that of Changed.
var ErrFault = errors.New("the file was changed while it was being read: open it again when it is complete")

// Mapping is a file mapped read-only.
type Mapping struct {
	Data []byte

	path  string
	file  *os.File
	size  int64
	stat  unix.Stat_t // when it was opened
	fault atomic.Bool // part of Data is gone
}

// open holds the mappings that a fault can be in.
var open struct {
	mu   sync.Mutex
	list []*Mapping
}

// Open maps a regular file. For an empty file, Data is empty.
func Open(path string) (*Mapping, error) {
	// Without O_NONBLOCK it would wait for a writer if the file is a pipe.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return Of(f, path)
}

// Of maps a regular file that is open, and closes it in the end. Errors name path.
func Of(f *os.File, path string) (*Mapping, error) {
	m := &Mapping{path: path, file: f}
	if err := m.mmap(); err != nil {
		_ = f.Close()
		return nil, err
	}
	open.mu.Lock()
	defer open.mu.Unlock()
	open.list = append(open.list, m)
	return m, nil
}

func (m *Mapping) mmap() error {
	st, err := m.file.Stat()
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("%s: not a regular file", m.path)
	}
	m.size = st.Size()
	if err := unix.Fstat(int(m.file.Fd()), &m.stat); err != nil {
		return err
	}
	if m.size == 0 {
		return nil
	}
	if m.size > math.MaxInt {
		return fmt.Errorf("%s: %d bytes do not fit into this machine's address space", m.path, m.size)
	}
	// Shared, or uprobes would put their breakpoints into it, as into every private mapping of the
	// file that could be executed (valid_vma in kernel/events/uprobes.c): code would not be read
	// as it is in the file.
	m.Data, err = unix.Mmap(int(m.file.Fd()), 0, int(m.size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("%s: map: %w", m.path, err)
	}
	return nil
}

// Close unmaps the file. Slices of Data must not be used afterwards.
func (m *Mapping) Close() error {
	if m == nil || m.file == nil {
		return nil
	}
	open.mu.Lock()
	open.list = slices.DeleteFunc(open.list, func(o *Mapping) bool { return o == m })
	open.mu.Unlock()
	err := m.file.Close()
	m.file = nil
	if m.Data != nil {
		err = errors.Join(err, unix.Munmap(m.Data))
		m.Data = nil
	}
	return err
}

// Release gives back the memory in which the pages of all mapped files are that have been read: the
// kernel has the pages still, and gives them again when they are accessed. Whoever walks through
// a large file would hold all of it in the end.
func Release() {
	open.mu.Lock()
	defer open.mu.Unlock()
	for _, m := range open.list {
		if len(m.Data) > 0 {
			_ = unix.Madvise(m.Data, unix.MADV_DONTNEED) // it is only advice
		}
	}
}

// Faulted returns an error that wraps ErrFault if any Guard has found that part of the
// mapping is gone: what was read at that time must not be used.
func (m *Mapping) Faulted() error {
	if m == nil || !m.fault.Load() {
		return nil
	}
	return fmt.Errorf("%s: %w", m.path, ErrFault)
}

// Changed returns an error that wraps ErrFault if the file was written to since it was
// opened.
func (m *Mapping) Changed() error {
	if m == nil || m.file == nil {
		return nil
	}
	// That a file was removed, as when a package is upgraded, changes its status too.
	var st unix.Stat_t
	if err := unix.Fstat(int(m.file.Fd()), &st); err == nil && st.Size == m.stat.Size && st.Mtim == m.stat.Mtim && (st.Ctim == m.stat.Ctim || st.Nlink == 0) {
		return m.Faulted()
	}
	m.fault.Store(true)
	return m.Faulted()
}

// ErrPanic is wrapped by the error of Work if its function panics.
var ErrPanic = errors.New("internal error")

// Work is Guard for what a goroutine of its own does: a panic there would end the process, and
// nobody could recover it. It becomes an error that wraps ErrPanic and has the stack. What the
// function was about to remember may be half done: it must not be used any more.
func Work(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			lines := []error{fmt.Errorf("%w: %v", ErrPanic, r)}
			for line := range strings.Lines(string(debug.Stack())) {
				lines = append(lines, errors.New("  "+strings.TrimSpace(line)))
			}
			err = errors.Join(lines...)
		}
	}()
	return Guard(f)
}

// Guard runs f. If f accesses a page that a mapped file no longer has, the error wraps
// ErrFault and names the file. Each goroutine that reads a mapping must call Guard itself.
// Other panics pass through.
func Guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		// A fault is a runtime.Error that also knows the address (documented at
		// debug.SetPanicOnFault); an ordinary bug, such as an index out of range, is not.
		fault, ok := r.(interface{ Addr() uintptr })
		if !ok {
			panic(r)
		}
		if m := holder(fault.Addr()); m != nil {
			m.fault.Store(true)
			err = m.Faulted()
			return
		}
		err = fmt.Errorf("a file was closed while it was being read (at address %#x): %w", fault.Addr(), ErrFault)
	}()
	return f()
}

// holder returns the mapping that contains a run-time address, or nil.
func holder(addr uintptr) *Mapping {
	open.mu.Lock()
	defer open.mu.Unlock()
	for _, m := range open.list {
		if start := uintptr(unsafe.Pointer(unsafe.SliceData(m.Data))); addr >= start && addr-start < uintptr(len(m.Data)) {
			return m
		}
	}
	return nil
}
