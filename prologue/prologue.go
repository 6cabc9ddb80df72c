package prologue

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/loc"
)

// MaxArgs is how many arguments ConventionRegisters carries: R1 is ctx, R2 is err, and a BPF
// function has five arguments.
const MaxArgs = 3

// MaxRecordArgs is how many arguments ConventionRecord carries: each has a bit of err, and
// with 63 of them an err of 64 bits is never negative.
const MaxRecordArgs = 63

// Errors of misuse. No caller matches them.
var (
	errTooManyArgs = errors.New("more arguments than the convention carries")
	errNoArch      = errors.New("no architecture")
	errBadReads    = errors.New("unknown kind of memory reads")
	errBadKind     = errors.New("unknown kind of argument")
)

// Arg is one argument to fetch.
type Arg struct {
	Name   string // for comments
	Kind   ArgKind
	User   bool // the memory that it is read from is user memory
	Signed bool // its C type is signed
	LowBit bool // only bit 0 of the number counts
	// Loc is where the argument is, or, for strings, objects and slices, where their bytes
	// are. It is of loc.KindNone if there is no location.
	Loc    loc.Location
	Reason loc.Reason // why there is no location
	// Doubtful says that what is there may not be what was passed. With Options.Doubts the program learns it.
	Doubtful bool
	// Size is the size of the C type in bytes; 0 if unknown. For a string it is the size of
	// the array that holds it, and 0 if the string is found by a pointer; for a slice it is
	// the size of an element.
	Size int
	// Length is where the length of a string in bytes is, a number of 8 bytes, if the string
	// does not end with a NUL: in Go, Rust and C++. Such a string is cut off at MaxBytes-1.
	// For a slice it is the number of elements.
	Length loc.Location
	// MaxBytes is the room for a string in the record in bytes, its NUL included, or for the
	// elements of a slice.
	MaxBytes int
}

// ArgKind is how an argument is delivered. All kinds but KindScalar need ConventionRecord.
//
//   - KindScalar: a number of at most 8 bytes, extended to 8
//   - KindString: bytes up to a NUL, then zeros
//   - KindUserString: KindString in user memory, wherever its address was read from
//   - KindObject: bytes as they are in memory: a structure or an array
//   - KindSlice: the number of elements, 8 bytes, then as many elements as there is room for
//   - KindComm: the name of the current task, 16 bytes. It has no location
type ArgKind uint8

const (
	// KindScalar is a number of at most 8 bytes, extended to 8.
	KindScalar ArgKind = iota
	// KindString is bytes up to a NUL, then zeros.
	KindString
	// KindUserString is KindString in user memory, wherever its address was read from.
	KindUserString
	// KindObject is bytes as they are in memory: a structure or an array.
	KindObject
	// KindSlice is the number of elements, 8 bytes, then as many elements as there is room for.
	KindSlice
	// KindComm is the name of the current task, 16 bytes. It has no location.
	KindComm
	kindCount
)

// Convention is how a program gets its arguments. In every convention R1 is ctx and R2 is
// err.
//
//   - ConventionAuto: ConventionRegisters for at most MaxArgs arguments of KindScalar,
//     else ConventionRecord
//   - ConventionRegisters passes up to MaxArgs scalars in R3 to R5
//   - ConventionRecord passes up to MaxRecordArgs arguments of any kind in a record on
//     the stack. R3 is its address
type Convention uint8

const (
	// ConventionAuto is ConventionRegisters for at most MaxArgs arguments of KindScalar,
	// else ConventionRecord.
	ConventionAuto Convention = iota
	// ConventionRegisters passes up to MaxArgs scalars in R3 to R5.
	ConventionRegisters
	// ConventionRecord passes up to MaxRecordArgs arguments of any kind in a record on the
	// stack. R3 is its address.
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
		if args[i].Kind != KindScalar {
			return ConventionRecord
		}
	}
	return ConventionRegisters
}

// Reads is how prologues read memory.
//
//   - ReadAuto: ReadKernel in this package, which knows no image. Package plan chooses
//     by the image
//   - ReadKernel: the helper bpf_probe_read_kernel (Linux 5.5)
//   - ReadUser: the helper bpf_probe_read_user (Linux 5.5)
//   - ReadLegacy: the helper bpf_probe_read, for kernels before 5.5
//   - ReadCast: loads from kernel memory (Linux 6.17), and bpf_probe_read_kernel where a load
//     gives 0 or cannot be used
//   - ReadSleep: the helper bpf_copy_from_user, which reads pages of user memory that are not
//     resident too, in programs of uprobes that may sleep (Linux 6.0)
type Reads uint8

const (
	// ReadAuto is ReadKernel in this package, which knows no image. Package plan chooses
	// by the image.
	ReadAuto Reads = iota
	// ReadKernel is bpf_probe_read_kernel (Linux 5.5).
	ReadKernel
	// ReadUser is bpf_probe_read_user (Linux 5.5).
	ReadUser
	// ReadLegacy is bpf_probe_read, for kernels before 5.5.
	ReadLegacy
	// ReadCast is loads from kernel memory (Linux 6.17), and bpf_probe_read_kernel where a load
	// gives 0 or cannot be used. The prologue calls references.CastFunction, whose number in the running
	// kernel's BTF the loader has to fill in; package instances does.
	ReadCast
	// ReadSleep is the helper bpf_copy_from_user, which reads pages of user memory that are not
	// resident too. It is for programs of uprobes that may sleep (Linux 6.0): BPF_F_SLEEPABLE.
	ReadSleep
)

// String returns the short, stable name of the kind of reads.
func (r Reads) String() string {
	if names := [...]string{"auto", "kernel", "user", "legacy", "cast", "sleep"}; int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprintf("Reads(%d)", uint8(r))
}

var (
	helpers       = [...]asm.BuiltinFunc{asm.FnProbeReadKernel, asm.FnProbeReadKernel, asm.FnProbeReadUser, asm.FnProbeRead, asm.FnProbeReadKernel, asm.FnCopyFromUser}
	stringHelpers = [...]asm.BuiltinFunc{asm.FnProbeReadKernelStr, asm.FnProbeReadKernelStr, asm.FnProbeReadUserStr, asm.FnProbeReadStr, asm.FnProbeReadKernelStr, asm.FnProbeReadUserStr}
)

// user returns the helper for user memory: older kernels have one for all memory.
func (r Reads) user() Reads {
	if r == ReadLegacy || r == ReadSleep {
		return r
	}
	return ReadUser
}

// Options say what a prologue is written for. Arch is required.
type Options struct {
	Arch       *arch.Arch // of the image, with the registers of the kernel that runs it: see arch.Arch.On
	BigEndian  bool       // byte order of the image, and so of the machine
	Reads      Reads
	Convention Convention
	Site       string // where it will run, for comments: "get_page inlined in vdso_fault+93"

	// If are conditions. Unless all of them are other than 0 the program ends with the result 0
	// before anything is fetched. One that cannot be computed, since memory cannot be read or a
	// divisor is 0, is 0, or with IfMissing does not count.
	If        []*loc.Expr
	IfMissing bool
	// CountMissing counts conditions that could not be computed in the map references.MissingCounter.
	CountMissing bool

	// Doubts tells the program which arguments are Doubtful: the bit of err is set, so that whoever looks only at err takes them for
	// missing, and a second bit says that the value is there all the same. With ConventionRegisters that is bit 16+i of err,
	// with ConventionRecord bit i of a word at the record's end, which exists only then.
	Doubts bool

	// RecordBytes, if not 0, is the room for a record in the map references.RecordMap, a multiple of 8: records are
	// there, and not on the stack.
	RecordBytes int

	// SignExtends is set if the kernel has instructions that extend signs: moves and loads
	// (Linux 6.6). Without it that takes two shifts, on all kernels.
	SignExtends bool

	// Moves is set for a position-independent program or library: each process loads it
	// somewhere else. The prologue then computes addresses of the image from the context's
	// instruction pointer, which stands for the link-time address At.
	Moves bool
	At    uint64

	// Frame lists the DWARF numbers of registers, besides the stack pointer, that
	// are known to point into the stack frame at the site: the frame pointer, in
	// code that keeps one. Arguments in memory at such a register fault together or
	// not at all.
	Frame []uint16

	// Stays reports whether memory of the image, at a link-time address and of a size in
	// bytes, can be read as long as the image runs. Nil: it is not known of any. ReadCast
	// asks no helper about a 0 that was loaded there.
	Stays func(addr, size uint64) bool
}

// Prologue is the instructions that fetch one site's arguments.
type Prologue struct {
	Insns asm.Instructions
	// Addrs are the indices in Insns of the 64-bit immediate loads that hold a
	// link-time address of the image: none if Options.Moves was set. Slid moves them.
	Addrs   []int
	Stack   int // bytes of BPF stack used, including the record
	Helpers int // helper calls on the longest path on which no read faults: with ReadCast, if all is 0
	// Reasons has an element for each argument: why it is not fetched, or the zero Reason
	// if it is.
	Reasons []loc.Reason

	Convention Convention // decided
	Layout     Layout     // of the record, for ConventionRecord
	// Outside is set if the record is in references.RecordMap, and references.ReleaseRecord must follow the user's program.
	Outside bool

	key string
}

// Emit writes the prologue that fetches args. An argument that cannot be fetched is no
// error: its err bit is set, and Prologue.Reasons says why.
//
// The error is a *StackError if the record is too large. Other errors are for misuse: more
// arguments than the convention carries, no architecture, or a kind that does not exist.
func Emit(args []Arg, o Options) (*Prologue, error) {
	var e Emitter
	if err := e.Emit(args, &o); err != nil {
		return nil, err
	}
	return e.Prologue(o.Site), nil
}

// Key returns a string that is equal for prologues with equal instructions, the same
// addresses to move, the same convention and the same layout: sites with equal keys can
// share a program. Comments do not count. The string is not text, and is the same on all
// machines.
func (p *Prologue) Key() string { return p.key }

// Emitter writes prologues one after the other, and reuses its memory: whole images have
// hundreds of thousands of prologues, most of which are only compared and counted. Comments
// and asm.Instructions are made only for those that Prologue is called for.
//
// The fields describe the prologue that the method Emit has written. Key and Reasons are
// valid until it is called again. An Emitter is for one goroutine.
type Emitter struct {
	Key     []byte       // as Prologue.Key
	Insns   int          // number of instructions, as in Prologue.Insns
	Rare    int          // of these, that run only if a read faults or, with ReadCast, gives 0
	Helpers int          // as Prologue.Helpers
	Reasons []loc.Reason // as Prologue.Reasons
	Layout  Layout       // as Prologue.Layout

	f fetcher
}

// Emit writes the prologue that the function Emit writes, and returns its errors. The
// Emitter refers to args until it writes again.
func (e *Emitter) Emit(args []Arg, o *Options) error {
	f := &e.f
	if err := f.write(args, o); err != nil {
		e.Key, e.Insns, e.Rare, e.Helpers, e.Reasons, e.Layout = nil, 0, 0, 0, nil, Layout{}
		return err
	}
	e.Key, e.Insns, e.Rare, e.Helpers, e.Reasons, e.Layout = f.key(), f.count, f.rare, f.helpers, f.reasons, f.layout
	return nil
}

// Prologue returns the prologue that Emit has just written. The site is named in its
// comments. It must not be called before Emit has succeeded.
func (e *Emitter) Prologue(site string) *Prologue {
	f := &e.f
	p := &Prologue{
		Stack: f.maxStack, Helpers: f.helpers, Reasons: slices.Clone(f.reasons),
		Convention: f.o.Convention, Layout: f.layout, Outside: f.outside(), key: string(e.Key),
	}
	p.Insns, p.Addrs = f.instructions(func(n note) string { return f.comment(n, site) })
	return p
}

// Slid returns a copy of the instructions in which delta is added to the image's addresses:
// a kernel's KASLR slide in bytes.
func (p *Prologue) Slid(delta uint64) asm.Instructions {
	out := slices.Clone(p.Insns)
	for _, i := range p.Addrs {
		out[i].Constant += int64(delta)
	}
	return out
}
