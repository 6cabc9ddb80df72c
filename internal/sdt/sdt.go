// Package sdt reads notes of statically defined probes, which <sys/sdt.h> writes into programs and libraries: places to which their authors
// gave names, and what can be fetched there.
//
//	notes, err := sdt.Read(section, sdt.File{Order: binary.LittleEndian, WordSize: 8, Base: base})
//	for _, n := range notes {
//		args := n.Arguments(arch, symbols)
//	}
//
// The format is described in systemtap's wiki (UserSpaceProbeImplementation) and in the macros of sys/sdt.h.
package sdt

import (
	"encoding/binary"
	"fmt"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/elfnote"
)

// Section is where the notes are, and BaseSection one whose address tells how far a file was moved (prelink) since they were written.
const (
	Section     = ".note.stapsdt"
	BaseSection = ".stapsdt.base"
)

// kind is the type of these notes, of the owner "stapsdt" (_SDT_NOTE_TYPE).
const (
	kind  = 3
	owner = "stapsdt\x00"
)

// Note is a place with a name.
type Note struct {
	Provider, Name string
	Addr           uint64 // link-time address
	// Semaphore is the link-time address of a counter of two bytes, or 0: the program skips the probe, and what computes its arguments,
	// while that is 0.
	Semaphore uint64
	Args      string // as the assembler wrote them
}

// File is what Read needs to know of a file.
type File struct {
	Order    binary.ByteOrder
	WordSize int
	Base     uint64 // link-time address of BaseSection, or 0 if there is none
}

// Error says what is wrong with a note, and where that begins in the section.
type Error struct {
	Offset uint64
	Msg    string
}

func (e *Error) Error() string { return fmt.Sprintf("%s+%#x: %s", Section, e.Offset, e.Msg) }

// Read returns the notes in a section. The error is an *Error.
func Read(section []byte, f File) (out []Note, err error) {
	end, err := elfnote.Each(section, f.Order, func(off int, from string, is uint32, desc []byte) error {
		if from != owner || is != kind {
			return nil
		}
		n, why := f.note(desc)
		if why != "" {
			return &Error{uint64(off), why}
		}
		out = append(out, n)
		return nil
	})
	if err == nil && end < len(section) {
		err = &Error{uint64(end), "the note is cut short"}
	}
	return out, err
}

// note reads what a note has: three addresses and three texts.
func (f *File) note(d []byte) (n Note, why string) {
	word := f.WordSize
	if len(d) < 3*word {
		return n, "the note is too short for its addresses"
	}
	at := func(i int) uint64 {
		if word == 4 {
			return uint64(f.Order.Uint32(d[4*i:]))
		}
		return f.Order.Uint64(d[8*i:])
	}
	base := at(1)
	n.Addr, n.Semaphore = at(0), at(2)
	if f.Base != 0 && base != 0 {
		n.Addr += f.Base - base
		if n.Semaphore != 0 {
			n.Semaphore += f.Base - base
		}
	}
	if word == 4 {
		n.Addr, n.Semaphore = uint64(uint32(n.Addr)), uint64(uint32(n.Semaphore))
	}
	off := uint64(3 * word)
	for _, to := range []*string{&n.Provider, &n.Name, &n.Args} {
		text, ok := bin.CStringAt(d, off)
		if !ok {
			return n, "a text in the note does not end"
		}
		*to = string(text)
		off += uint64(len(text)) + 1
	}
	if n.Provider == "" || n.Name == "" {
		return n, "the note has no name"
	}
	return n, ""
}
