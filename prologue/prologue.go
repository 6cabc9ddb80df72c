package prologue

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/loc"
)

// MaxArgs is how many arguments the registers convention carries.
const MaxArgs = 3

// MaxRecordArgs is how many arguments a record has: each has a bit of err, and an
// err of 64 bits is never negative.
const MaxRecordArgs = 63

// Errors of misuse, for errors.Is.
var (
	ErrTooManyArgs = errors.New("more arguments than the convention carries")
	ErrNoArch      = errors.New("no architecture")
	ErrBadReads    = errors.New("unknown kind of memory reads")
	ErrBadKind     = errors.New("unknown kind of argument")
)

// Arg is one argument to fetch.
type Arg struct {
	Name   string
	Kind   ArgKind
	User   bool         // the memory that it is read from is user memory
	Signed bool         // its C type is signed
	Loc    loc.Location // of KindNone when it is not located; of strings and objects, where their bytes are
	Reason loc.Reason   // why it is not located
	// Size is the bytes of its C type; 0 when unknown. For a string it is the size of the
	// array that holds it, 0 when it is found by a pointer.
	Size int
	// MaxBytes is the room of a string in the record, its NUL included.
	MaxBytes int
}

// ArgKind is how an argument is delivered. All but Scalar need a record.
type ArgKind uint8

const (
	Scalar     ArgKind = iota // a number of at most 8 bytes, extended to 8
	String                    // bytes up to a NUL, then zeros
	UserString                // a String in user memory, whatever its address was read from
	Object                    // bytes as they are in memory: of a structure, of an array
	Comm                      // the name of the current task; it has no location
	kindCount
)

// CommSize is the bytes of a task's name, TASK_COMM_LEN in linux/sched.h.
const CommSize = 16

// Convention is how a program gets its arguments. In all of them R1 is the context and
// R2 err.
type Convention uint8

const (
	// ConventionAuto is ConventionRegisters for at most MaxArgs arguments of ArgKind
	// Scalar, else ConventionRecord.
	ConventionAuto Convention = iota
	// ConventionRegisters passes up to MaxArgs scalars in R3 to R5.
	ConventionRegisters
	// ConventionRecord passes up to MaxRecordArgs arguments of any kind in memory at R3.
	ConventionRecord
)

// String returns the convention's short, stable name.
func (c Convention) String() string {
	switch c {
	case ConventionAuto:
		return "auto"
	case ConventionRegisters:
		return "registers"
	case ConventionRecord:
		return "record"
	}
	return fmt.Sprintf("Convention(%d)", uint8(c))
}

// of resolves ConventionAuto.
func (c Convention) of(args []Arg) Convention {
	if c != ConventionAuto {
		return c
	}
	if len(args) > MaxArgs {
		return ConventionRecord
	}
	for i := range args {
		if args[i].Kind != Scalar {
			return ConventionRecord
		}
	}
	return ConventionRegisters
}

// Reads is the helper that reads memory.
type Reads uint8

const (
	// ReadAuto is ReadKernel in this package, which knows no image. Package plan chooses
	// by the image.
	ReadAuto   Reads = iota
	ReadKernel       // bpf_probe_read_kernel, since Linux 5.5
	ReadUser         // bpf_probe_read_user, since Linux 5.5
	ReadLegacy       // bpf_probe_read, for older kernels
)

// String returns the short, stable name of the kind of reads.
func (r Reads) String() string {
	if names := [...]string{"auto", "kernel", "user", "legacy"}; int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprintf("Reads(%d)", uint8(r))
}

var (
	helpers       = [...]asm.BuiltinFunc{asm.FnProbeReadKernel, asm.FnProbeReadKernel, asm.FnProbeReadUser, asm.FnProbeRead}
	stringHelpers = [...]asm.BuiltinFunc{asm.FnProbeReadKernelStr, asm.FnProbeReadKernelStr, asm.FnProbeReadUserStr, asm.FnProbeReadStr}
)

// user is the kind of reads of user memory: older kernels have one for all memory.
func (r Reads) user() Reads {
	if r == ReadLegacy {
		return r
	}
	return ReadUser
}

// Options say what the prologue is for.
type Options struct {
	Arch       *arch.Arch
	BigEndian  bool // byte order of the image, and so of the machine
	Reads      Reads
	Convention Convention
	Site       string // where it will run, for comments: "get_page inlined in vdso_fault+93"

	// Frame lists the DWARF numbers of registers, besides the stack pointer, that
	// are known to point into the stack frame at the site: the frame pointer, in
	// code that keeps one. Arguments in memory at such a register fault together or
	// not at all.
	Frame []uint16
}

// Unfetched is an argument that its prologue does not fetch.
type Unfetched struct {
	Arg    int // index in Emit's args
	Reason loc.Reason
}

// Prologue is the instructions that fetch one site's arguments.
type Prologue struct {
	Insns asm.Instructions
	// Addrs are the indices in Insns of the 64-bit immediate loads that hold a
	// link-time address of the image. Slid moves them.
	Addrs     []int
	Stack     int // bytes of BPF stack used, a record included
	Helpers   int // helper calls on the longest path on which no read faults
	Unfetched []Unfetched

	Convention Convention
	Layout     Layout // of a record

	key string
}

// Emit writes the prologue that fetches args. An argument that cannot be fetched
// has its err bit set and is listed in Unfetched; errors are for misuse only, and match
// ErrTooManyArgs, ErrNoArch, ErrBadReads, ErrBadKind or a *StackError.
func Emit(args []Arg, o Options) (*Prologue, error) {
	var e Emitter
	if _, err := e.Emit(args, &o); err != nil {
		return nil, err
	}
	return e.Prologue(o.Site), nil
}

// Key is equal for prologues that have equal instructions, equal addresses to
// move, and the same convention with the same layout. It leaves comments out: sites with equal keys can share a program. It is
// no text, and the same on all machines.
func (p *Prologue) Key() string { return p.key }

// Emitter writes prologues one after the other into memory that it uses again. Most
// prologues are only compared and counted: comments, and instructions as package asm has
// them, are made for those that Prologue is called for. An Emitter is for one goroutine.
type Emitter struct{ f fetcher }

// Code is what an Emitter has written. Key and Unfetched are valid until it writes again.
type Code struct {
	Key       []byte // as Prologue.Key
	Insns     int    // instructions, as many as Prologue.Insns has
	Helpers   int
	Unfetched []Unfetched
}

// Emit writes the prologue that the function Emit writes. The Emitter keeps args until it
// writes again.
func (e *Emitter) Emit(args []Arg, o *Options) (Code, error) {
	f := &e.f
	if err := f.write(args, o); err != nil {
		return Code{}, err
	}
	return Code{Key: f.key(), Insns: f.count, Helpers: f.helpers, Unfetched: f.unfetched}, nil
}

// Prologue returns the prologue that Emit has just written. The site is named in its
// comments. It must not be called before Emit has succeeded.
func (e *Emitter) Prologue(site string) *Prologue {
	f := &e.f
	p := &Prologue{
		Stack: f.maxStack, Helpers: f.helpers, Unfetched: slices.Clone(f.unfetched),
		Convention: f.o.Convention, Layout: f.layout, key: string(f.key()),
	}
	p.Insns, p.Addrs = f.instructions(func(n note) string { return f.comment(n, site) })
	return p
}

// Slid returns a copy of the instructions with the image's addresses moved by
// delta: the kernel's KASLR slide, or the load bias of a library.
func (p *Prologue) Slid(delta uint64) asm.Instructions {
	out := slices.Clone(p.Insns)
	for _, i := range p.Addrs {
		out[i].Constant += int64(delta)
	}
	return out
}
