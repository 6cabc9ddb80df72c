package prologue

import (
	"encoding/binary"
	"fmt"
)

// A record is in the frame of the function that fetches, and the user's program
// runs in a frame below it. The kernel gives both together 512 bytes, and counts
// each frame as a multiple of 32 that is not 0 (check_max_stack_depth in
// kernel/bpf/verifier.c; later kernels count finer).
const (
	StackLimit = 512
	frameUnit  = 32

	// MaxObject is the size of the largest object that a record can hold: then there
	// is room for nothing but a program that needs no stack.
	MaxObject = StackLimit - frameUnit
)

// Frame returns what the verifier charges for a function that uses stack bytes: a
// multiple of 32 that is not 0.
func Frame(stack int) int { return (max(stack, 1) + frameUnit - 1) / frameUnit * frameUnit }

// Layout says where a record's arguments are.
type Layout struct {
	Fields []Field // one for each argument
	Size   int     // bytes of the record
}

// Field is the place of one argument in a record. It begins at a multiple of 8
// bytes and takes whole ones. It is empty for an object that no record can hold, or
// whose size is unknown.
type Field struct {
	Offset int
	Size   int // with what fills it up to a multiple of 8
}

// NewLayout places arguments in a record, one after the other. It depends on their
// kinds, sizes and bounds alone, not on where they come from.
func NewLayout(args []Arg) Layout {
	l := Layout{Fields: make([]Field, len(args))}
	l.place(args)
	return l
}

// place is NewLayout into memory that is there.
func (l *Layout) place(args []Arg) {
	l.Size = 0
	for i := range args {
		n := args[i].room()
		l.Fields[i] = Field{l.Size, n}
		l.Size += n
	}
}

// room is how many bytes an argument takes in a record.
func (a *Arg) room() int {
	n := 8
	switch a.Kind {
	case String, UserString:
		n = a.MaxBytes
	case Object:
		n = a.Size
	case Comm:
		n = CommSize
	}
	if n < 0 || n > MaxObject {
		return 0
	}
	return (n + 7) &^ 7
}

// StackError is the error for a record that does not fit on the stack.
type StackError struct {
	Record   int // bytes of the record
	Prologue int // bytes that its prologue needs besides
	Program  int // bytes that the program needs after it
}

// Together is what both frames take, as the kernel counts them.
func (e *StackError) Together() int { return Frame(e.Record+e.Prologue) + Frame(e.Program) }

func (e *StackError) Error() string {
	return fmt.Sprintf("the record needs %d bytes of stack, the prologue %d, the program %d: together, in frames of whole %d bytes, %d, %d more than %d; "+
		"shorten strings or fetch fewer arguments", e.Record, e.Prologue, e.Program, frameUnit, e.Together(), e.Together()-StackLimit, StackLimit)
}

// CheckStack returns a *StackError when a prologue's stack and that of the program
// after it are more than a kernel gives. A prologue of the registers convention
// has the program's own frame.
func (p *Prologue) CheckStack(program int) error {
	if p.Convention != ConventionRecord {
		return nil
	}
	e := &StackError{Record: p.Layout.Size, Prologue: p.Stack - p.Layout.Size, Program: program}
	if e.Together() > StackLimit {
		return e
	}
	return nil
}

// key is what distinguishes the prologue from others: the code, and a record's layout.
func (f *fetcher) key() []byte {
	if f.o.Convention != ConventionRecord {
		return f.code
	}
	// Code is a whole number of words; what is after it is not, so no prologue of
	// the other convention has the same key.
	f.keyMem = append(f.keyMem[:0], f.code...)
	for _, x := range f.layout.Fields {
		f.keyMem = binary.LittleEndian.AppendUint16(f.keyMem, uint16(x.Size))
	}
	for ok := true; ok; ok = len(f.keyMem)%wordSize == 0 {
		f.keyMem = append(f.keyMem, 0xff)
	}
	return f.keyMem
}
