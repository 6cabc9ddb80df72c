// Package prologue writes the BPF instructions that fetch a site's arguments.
// Give [Emit] where the arguments are, as package dwarfloc found them, and put
// the instructions it returns before a program: when the program begins,
// its arguments are in its registers.
//
//	p, err := prologue.Emit([]prologue.Arg{{Name: "page", Loc: loc, Size: 8}}, prologue.Options{Arch: a})
//	program = append(p.Insns, program...)
//
// # The conventions
//
// A prologue starts as every probe's program does, with R1 = ctx, the struct
// pt_regs of the interrupted code. It ends by falling through to what stands
// after it. In the [ConventionRegisters] convention that is with
//
//	R1            ctx, as before
//	R2            err: 0, or bit i set when argument i was not fetched
//	R3, R4, R5    up to three arguments; one that was not fetched is 0
//
// and nothing to be expected of the other registers and of the stack. It shares
// the stack frame of the program after it, which has not begun to use it.
//
// In the [ConventionRecord] convention it ends with R1 and R2 as above, and
//
//	R3            the address of a record on the stack
//
// The record holds any number of arguments, up to 63, of all kinds: see [ArgKind] and
// [Layout]. What was not fetched is 0 there. The program after it must have a stack
// frame of its own, so it is to be called, not fallen into; [Prologue.CheckStack] says
// whether the kernel gives both frames enough.
//
// # How it is made
//
// A location is lowered to one expression, which says how the argument's value
// comes from registers, constants and memory (lower.go, pieces.go). An
// expression that reads no memory and cannot fault is computed last, straight
// into the argument's register: a parameter in a register costs one load. What
// calls a helper or may fault is computed before, into the stack, since a helper
// call destroys R1 to R5 (fetch.go, join.go). Values that must outlive a call stay in
// R7 and R8, then on the stack (compute.go).
//
// Arguments in neighbouring memory are read with one helper call, without one's
// bad page taking another with it (join.go).
//
// Into a record each argument is brought at once, in the order of the arguments: read
// into its place, or computed and stored there (record.go, place.go). Strings and objects
// in memory take one helper call. Objects in pieces are computed 8 bytes at a time.
//
// Instructions are made as the kernel's words (assembler.go), whose bytes are a
// prologue's key. An [Emitter] stops there: it is for whole images, where nearly
// every prologue has been written before and is only compared. Emit goes on to
// comments and to what package asm loads.
//
// All instructions are ones that Linux 4.19 takes: no 32-bit jumps, no signed
// division and no sign-extending moves. Jumps go forward, as a distance: no
// symbol and no label enters the program. Each fetch begins with an instruction
// that carries a comment, and so does the prologue as a whole, since a program
// with line information must have some at its first instruction (check_btf_line
// in kernel/bpf/verifier.c, Linux 5.0).
//
// Nothing here reads an image or talks to a kernel. Architectures differ by the
// table in package arch and by byte order, not by code.
package prologue
