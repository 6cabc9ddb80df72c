// Package prologue writes the BPF instructions that fetch a site's arguments. [Emit] takes
// the arguments' locations, as package dwarfloc finds them, and returns instructions to put
// before a program: when the program begins, its arguments are in its registers.
//
//	p, err := prologue.Emit([]prologue.Arg{{Name: "page", Loc: loc, Size: 8}}, prologue.Options{Arch: a})
//	program = append(p.Insns, program...)
//
// # The conventions
//
// A prologue starts as every probe's program does, with R1 = ctx, the struct pt_regs of the
// interrupted code. It ends by falling through to the instruction after it. With
// [ConventionRegisters] the registers are then
//
//	R1            ctx, as before
//	R2            err: 0, or bit i set when argument i was not fetched
//	R3, R4, R5    up to three arguments; one that was not fetched is 0
//
// and the other registers and the stack hold nothing of use. The prologue uses the stack
// frame of the program after it, which has not begun to use it.
//
// With [ConventionRecord] R1 and R2 are as above, and
//
//	R3            the address of a record on the stack
//
// The record holds up to 63 arguments of all kinds: see [ArgKind] and [Layout]. An argument
// that was not fetched is 0 there. With [Options.Doubts] bit 16+i of err (registers), or bit i of a word at the record's end, says that
// an argument has its bit of err because it is doubtful: its value is there. The program after it must have a stack frame of its own,
// so the prologue is followed by a call of it; [Prologue.CheckStack] reports whether both
// frames fit into the kernel's limit.
//
// # How it is made
//
// A location is lowered to one expression over registers, constants and memory (lower.go).
// An expression that reads no memory and cannot fault is computed last, directly into the
// argument's register: a parameter in a register costs one load. Other expressions are
// computed earlier, into the stack, since a helper call destroys R1 to R5 (fetch.go,
// join.go). Values that must outlive a call stay in R7 and R8, then on the stack
// (compute.go).
//
// Arguments in neighbouring memory are read with one helper call. A fault in one of them
// does not make the others fail (join.go).
//
// With [ReadCast] kernel memory is loaded, and a helper is called only if a load gives 0 where
// memory may not be there (cast.go).
//
// A record is filled in the order of the arguments: each is read into its place, or computed
// and stored there (record.go, place.go). Strings and objects in memory take one helper
// call. Objects in pieces are computed 8 bytes at a time.
//
// Instructions are assembled in the kernel's format (assembler.go), and these bytes are a
// prologue's key. An [Emitter] stops there: it is for whole images, where nearly every
// prologue has been written before and is only compared. Emit also makes comments and the
// asm.Instructions to load.
//
// Linux 4.19 accepts all instructions, unless ReadCast or Options.SignExtends ask for those of
// later kernels: there are no 32-bit jumps, no signed divisions and no sign-extending moves. Jumps go forward and hold
// distances, so no symbol or label enters
// the program. The first instruction of each fetch, and of the prologue, has a comment: a
// program with line information must have some at its first instruction (check_btf_line in
// kernel/bpf/verifier.c, Linux 5.0).
//
// The package neither reads images nor talks to a kernel. Architectures differ only in their
// tables in package arch and in byte order, not in code.
package prologue
