// Package mapping gives a file's contents as a byte slice without reading them:
// the kernel brings in the pages that are touched. A file that shrinks while it
// is mapped makes such a touch fault; Guard turns that fault into an error.
package mapping

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// ErrFault is wrapped by the error of a function under Guard when the file
// behind a mapping no longer holds the bytes that were read.
var ErrFault = errors.New("the file was cut short or its device failed while it was being read")

// Mapping is a file mapped read-only.
type Mapping struct {
	Data []byte
}

// Open maps a regular file. An empty file maps to no bytes.
func Open(path string) (*Mapping, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	size := st.Size()
	if size == 0 {
		return &Mapping{}, nil
	}
	if size > math.MaxInt {
		return nil, fmt.Errorf("%s: %d bytes do not fit into this machine's address space", path, size)
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("%s: map: %w", path, err)
	}
	return &Mapping{Data: data}, nil
}

// Close unmaps the file. Slices of Data must not be used afterwards.
func (m *Mapping) Close() error {
	if m == nil || m.Data == nil {
		return nil
	}
	data := m.Data
	m.Data = nil
	return unix.Munmap(data)
}

// Guard runs f, and returns an error that wraps ErrFault if f touches a page of
// a mapping that is no longer there. Every goroutine that reads a mapping needs
// its own Guard. Other panics pass through.
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
		err = fmt.Errorf("%w (at address %#x)", ErrFault, fault.Addr())
	}()
	return f()
}
