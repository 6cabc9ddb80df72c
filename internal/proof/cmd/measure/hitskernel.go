package main

import (
	"encoding/binary"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/kernelhas"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// Reads of kernel memory, by helpers and by loads. The memory is an arena: structures of 64 bytes,
// with a pointer to the next one at nextOff, a number that is not 0 at numberOff and one that is
// at zeroOff. The first parameter of probed is the address of the first one.
const (
	structures = 8
	nextOff    = 16
	numberOff  = 24
	zeroOff    = 32
)

// newKernelMemory returns the arena, or nil if the kernel cannot load from it.
func newKernelMemory() (*bpfexec.Arena, error) {
	if !kernelhas.Casts() {
		return nil, nil
	}
	m, err := bpfexec.NewKernelArena(64 * structures)
	if err != nil {
		return nil, err
	}
	for i := range structures {
		s := m.Bytes[64*i:]
		binary.NativeEndian.PutUint64(s[nextOff:], m.Addr(64*(i+1)))
		binary.NativeEndian.PutUint64(s[numberOff:], uint64(i)+1)
	}
	return m, nil
}

// chain returns a member of the structure after so many pointers from the first parameter.
func chain(register uint16, pointers int, off uint64) prologue.Arg {
	plus := func(a *loc.Expr, off uint64) *loc.Expr {
		return &loc.Expr{Op: ops.Add, A: a, B: &loc.Expr{Op: ops.Const, K: off}}
	}
	at := reg(register)
	for range pointers {
		at = &loc.Expr{Op: ops.Deref, Size: 8, A: plus(at, nextOff)}
	}
	return prologue.Arg{Loc: loc.Location{Kind: loc.KindMemory, Expr: plus(at, off)}, Size: 8}
}

// kernelKinds are programs that read memory of the kernel, each with helpers and with loads.
func kernelKinds(a *arch.Arch) []kind {
	first := hitsFirst[a.Name]
	out := []kind{{name: "an empty program"}}
	for _, k := range []struct {
		name  string
		args  []prologue.Arg
		frame []uint16
	}{
		{"`p->n` in the stack frame", []prologue.Arg{chain(first, 0, numberOff)}, []uint16{first}},
		{"`p->n`", []prologue.Arg{chain(first, 0, numberOff)}, nil},
		{"`p->n`, which is 0", []prologue.Arg{chain(first, 0, zeroOff)}, nil},
		{"`p->next->n`", []prologue.Arg{chain(first, 1, numberOff)}, nil},
		{"`p->next->next->next->n`", []prologue.Arg{chain(first, 3, numberOff)}, nil},
		{"`p->next->next->next->n`, which is 0", []prologue.Arg{chain(first, 3, zeroOff)}, nil},
		{"`p->n` and `p->next`", []prologue.Arg{chain(first, 0, numberOff), chain(first, 0, nextOff)}, nil},
		{"three of `p->next->next->n`", []prologue.Arg{chain(first, 2, numberOff), chain(first, 3, numberOff), chain(first, 4, numberOff)}, nil},
	} {
		for i, by := range []kind{{name: "helpers", reads: prologue.ReadKernel}, {name: "loads", reads: prologue.ReadCast}} {
			out = append(out, kind{name: k.name + ": by " + by.name, args: k.args, frame: k.frame, reads: by.reads, same: len(out) - i})
		}
	}
	return out
}
