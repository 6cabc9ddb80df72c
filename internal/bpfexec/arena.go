package bpfexec

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

var native = binary.NativeEndian

// Arena is memory for prologues to read: mapped bytes, followed by unmapped ones.
type Arena struct {
	Bytes []byte // readable, a whole number of pages
	all   []byte
}

// NewArena maps memory of at least size bytes. A helper that reads user memory
// does not wait for a page to be brought in, so all are filled here.
func NewArena(size int) (*Arena, error) {
	page := unix.Getpagesize()
	size = (max(size, 1) + page - 1) / page * page
	all, err := unix.Mmap(-1, 0, size+page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return nil, err
	}
	if err := unix.Mprotect(all[size:], unix.PROT_NONE); err != nil {
		return nil, err
	}
	return &Arena{Bytes: all[:size:size], all: all}, nil
}

// Addr returns the address of a byte of the arena.
func (a *Arena) Addr(off int) uint64 { return uint64(uintptr(unsafe.Pointer(&a.Bytes[off]))) }

// Unmapped returns the first address after the arena. Reads of the page that begins there
// fault.
func (a *Arena) Unmapped() uint64 { return a.Addr(0) + uint64(len(a.Bytes)) }

// Close unmaps the arena.
func (a *Arena) Close() error { return unix.Munmap(a.all) }
