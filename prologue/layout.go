package prologue

import (
	"encoding/binary"
	"fmt"

	"github.com/bpfprologue/bpfprologue/internal/bpfstack"
)

// MaxObject is the size of the largest object that a record can hold, in bytes. A record
// is in the frame of the function that fetches, and the user's program runs in a frame
// below it. The kernel gives both together 512 bytes, and counts each frame as a multiple
// of 32 that is not 0, so a record of this size leaves room for nothing but a program that
// needs no stack.
const MaxObject = bpfstack.MaxObject

// Layout says where a record's arguments are.
type Layout struct {
	Fields []Field // one for each argument
	Doubts Field   // with Options.Doubts, 8 bytes at the end: bit i is set if argument i is fetched and Doubtful; else empty
	Size   int     // bytes of the record
}

// Field is the place of one argument in a record. Its offset and its size are multiples of
// 8 bytes. It is empty for an object that no record can hold, or the size of which is
// unknown.
type Field struct {
	Offset int // bytes from the beginning of the record
	Size   int // bytes, padding included
}

// newLayout places arguments in a record, one after the other. It depends on their
// kinds, sizes and bounds alone, not on where they come from.
func newLayout(args []Arg, doubts bool) Layout {
	l := Layout{Fields: make([]Field, len(args))}
	l.place(args, doubts)
	return l
}

// RecordSize returns the size in bytes of a record with some arguments, and with Options.Doubts if doubts is set.
func RecordSize(args []Arg, doubts bool) int {
	l := newLayout(args, doubts)
	return l.Size
}

// place is newLayout with the memory of l.Fields.
func (l *Layout) place(args []Arg, doubts bool) {
	l.Size = 0
	for i := range args {
		n := args[i].room()
		l.Fields[i] = Field{l.Size, n}
		l.Size += n
	}
	l.Doubts = Field{}
	if doubts {
		l.Doubts = Field{l.Size, 8}
		l.Size += 8
	}
}

// room returns how many bytes an argument takes in a record.
func (a *Arg) room() int {
	switch a.Kind {
	case KindString, KindUserString:
		return bpfstack.Room(a.MaxBytes)
	case KindSlice:
		return 8 + bpfstack.Room(a.MaxBytes)
	case KindObject:
		return bpfstack.Room(a.Size)
	case KindComm:
		return bpfstack.CommSize
	}
	return 8
}

// StackError is the error for a record that does not fit on the stack. Sizes are in bytes.
type StackError struct {
	Record   int // the record
	Prologue int // what its prologue needs in addition
	Program  int // what the program after it needs
	// Over is how many bytes both frames, as the kernel counts them, exceed its limit of
	// 512 by.
	Over int
}

func (e *StackError) Error() string {
	return fmt.Sprintf("the record needs %d bytes of stack, the prologue %d, the program %d: together, in frames of whole %d bytes, %d, %d more than %d; "+
		"shorten strings or fetch fewer arguments", e.Record, e.Prologue, e.Program, bpfstack.Unit, e.Over+bpfstack.Limit, e.Over, bpfstack.Limit)
}

// CheckStack returns a *StackError if the prologue and a program after it that uses
// program bytes of stack need more than a kernel gives. It returns nil for a prologue of
// ConventionRegisters, which uses the program's own frame.
func (p *Prologue) CheckStack(program int) error {
	if p.Convention != ConventionRecord {
		return nil
	}
	if p.Outside {
		return checkStack(0, p.Stack, program)
	}
	return checkStack(p.Layout.Size, p.Stack-p.Layout.Size, program)
}

func checkStack(record, prologue, program int) error {
	over := bpfstack.Frame(record+prologue) + bpfstack.Frame(program) - bpfstack.Limit
	if over <= 0 {
		return nil
	}
	return &StackError{Record: record, Prologue: prologue, Program: program, Over: over}
}

// key returns what distinguishes the prologue from others: the code, and a record's layout.
func (f *fetcher) key() []byte {
	if f.o.Convention != ConventionRecord {
		return f.code
	}
	// Code is a whole number of words. With the layout after it the key is not, so it differs
	// from all keys of the other convention.
	f.keyMem = append(f.keyMem[:0], f.code...)
	for _, x := range f.layout.Fields {
		f.keyMem = binary.LittleEndian.AppendUint16(f.keyMem, uint16(x.Size))
	}
	for ok := true; ok; ok = len(f.keyMem)%wordSize == 0 {
		f.keyMem = append(f.keyMem, 0xff)
	}
	return f.keyMem
}
