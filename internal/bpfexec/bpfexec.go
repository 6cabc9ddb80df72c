// Package bpfexec runs fetch prologues in the running kernel, for tests: give it
// prologues and the registers of an imaginary site, and it returns what the
// user's program would have found in R2 to R5, or in the record at R3.
//
//	bpfexec.RequireOrSkip(t)
//	prog, err := bpfexec.Load(bpfexec.Code{Insns: p.Insns, Args: 2})
//	results, err := prog.Run(bpfexec.State{Regs: regs})
//
// Nothing is probed. The prologues run in a BPF_PROG_TYPE_SYSCALL program, which runs on
// request, in the calling process, with a context that the caller provides: here a struct
// pt_regs. So prologues that read memory with bpf_probe_read_user read the memory of the
// test; an [Arena] provides such memory, and also memory of the kernel that the test can write.
// These programs need Linux 5.14.
//
// Verify loads a prologue before a kprobe program, where it belongs, and returns the
// verifier's verdict.
//
// Closing many programs quickly can hang a kernel: [Close] limits the rate, and
// [Available] reports a kernel that hangs.
package bpfexec

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/kernelerr"
	"github.com/bpfprologue/bpfprologue/internal/kernelhas"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// Errors of Load, Run and Verify, for errors.Is.
var (
	// ErrPrivilege is returned if the kernel does not let this process load programs.
	ErrPrivilege = errors.New("loading BPF programs needs root, or CAP_BPF and CAP_PERFMON, and a kernel that is not locked down")
	// ErrKernel is returned if the kernel is too old.
	ErrKernel = errors.New("running prologues needs Linux 5.14 or later (BPF_PROG_TYPE_SYSCALL)")
)

// The context of the program: the registers, then some words for each prologue.
const (
	regsSize   = 512 // bytes; struct pt_regs has 168 on amd64, 336 on arm64
	resultSize = 4 * 8

	// resultsSize is the largest size of all results together, in bytes: a store's offset
	// has 16 bits.
	resultsSize = math.MaxInt16 - regsSize

	// MaxBatch is the largest number of prologues with arguments in registers that one program
	// can hold.
	MaxBatch = resultsSize / resultSize
)

// Code is one prologue: its instructions, with addresses as on this machine, and what it
// delivers: arguments in registers, or a record.
type Code struct {
	Insns  asm.Instructions
	Args   int // in registers
	Record int // bytes of the record, a multiple of 8
	// IsRecord is set for a record, which may be empty. Otherwise arguments are in registers.
	IsRecord bool
	// BigEndian is the byte order of the machine that they are for. If it is not this one's, they do the same on
	// numbers whose bytes are in reverse: see Load.
	BigEndian bool
}

// CodeOf returns the Code of a prologue for this machine, for a number of arguments, with link-time addresses.
func CodeOf(p *prologue.Prologue, args int) Code {
	if p.Convention == prologue.ConventionRecord {
		return Code{Insns: p.Insns, Record: p.Layout.Size, IsRecord: true, BigEndian: !littleEndian}
	}
	return Code{Insns: p.Insns, Args: args, BigEndian: !littleEndian}
}

// result returns the size of the code's result in the context, in bytes.
func (c *Code) result() int {
	if c.IsRecord {
		return 8 + c.Record
	}
	return resultSize
}

// Fits returns how many codes, counted from the first, one program can hold.
func Fits(codes []Code) int {
	at := 0
	for i := range codes {
		if at += codes[i].result(); at > resultsSize {
			return i
		}
	}
	return len(codes)
}

// State is the machine state that prologues run in.
type State struct {
	Regs []byte // struct pt_regs of this machine, or its beginning
}

// Result is what a prologue delivers: R2, and R3 to R5 as far as it has
// arguments, or the bytes of the record at R3.
type Result struct {
	Err    uint64
	Values [3]uint64
	Record string
}

// Program is prologues in the kernel, ready to run.
type Program struct {
	prog  *ebpf.Program
	codes []Code // without their instructions
	ctx   []byte
}

// Load loads one program that contains prologues, at most as many as Fits returns. They run
// one after the other, each with the R1 that the one before left, as the convention
// requires. Batches of 10 to 200 are fastest: on Linux 6.18 they took 3 us for each prologue
// that fetches a register and 10 us for each that reads memory; a program for each took 30
// and 50 us. In larger batches the verifier needs longer for prologues with branches.
//
// The numbers in memory, those in the context and in a record included, have the byte order of Code.BigEndian: each
// load and store of another order than this machine's is followed, or enclosed, by an instruction that reverses the
// bytes. That shows which bytes a prologue reads, not what a kernel of the other machine thinks of it.
//
// Prologues of one program share its stack, so the verifier does not notice one that reads
// what another has left there. Verify does.
func Load(codes ...Code) (*Program, error) {
	if n := Fits(codes); len(codes) == 0 || n < len(codes) {
		return nil, fmt.Errorf("%d prologues, from 1 to %d fit into a program", len(codes), n)
	}
	var insns asm.Instructions
	kept := make([]Code, len(codes))
	end := regsSize
	for i, c := range codes {
		at := int16(end)
		end += c.result()
		kept[i] = c
		kept[i].Insns = nil
		own := slices.Clone(c.Insns)
		if err := kernelhas.Resolve(own); err != nil {
			return nil, err
		}
		if c.BigEndian == littleEndian {
			var err error
			if own, err = turned(own); err != nil {
				return nil, err
			}
		}
		for _, ins := range own {
			// Comments would become line information, which takes longer to load
			// than the program.
			ins.Metadata = asm.Metadata{}
			insns = append(insns, ins)
		}
		for r := range 1 + c.Args {
			insns = append(insns, asm.StoreMem(asm.R1, at+int16(8*r), asm.R2+asm.Register(r), asm.DWord))
		}
		for off := int16(0); int(off) < c.Record; off += 8 {
			insns = append(insns,
				asm.LoadMem(asm.R0, asm.R3, off, asm.DWord),
				asm.StoreMem(asm.R1, at+8+off, asm.R0, asm.DWord))
		}
	}
	insns = append(insns, asm.Mov.Imm(asm.R0, 0), asm.Return())
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name:         "bpfexec",
		Type:         ebpf.Syscall,
		Flags:        unix.BPF_F_SLEEPABLE, // the kernel wants it of this type
		License:      "GPL",                // the helpers that read memory do
		Instructions: insns,
	})
	if err != nil {
		return nil, explain(err)
	}
	return &Program{prog: prog, codes: kept, ctx: make([]byte, end)}, nil
}

// Run runs the program's prologues with the same registers. It is not safe for
// concurrent use.
func (p *Program) Run(s State) ([]Result, error) {
	if len(s.Regs) > regsSize {
		return nil, fmt.Errorf("%d bytes of registers, at most %d", len(s.Regs), regsSize)
	}
	clear(p.ctx)
	copy(p.ctx, s.Regs)
	if _, err := p.prog.Run(&ebpf.RunOptions{Context: p.ctx, ContextOut: p.ctx}); err != nil {
		return nil, explain(err)
	}
	out := make([]Result, len(p.codes))
	at := regsSize
	for i, c := range p.codes {
		b := p.ctx[at : at+c.result()]
		at += len(b)
		out[i].Err = native.Uint64(b)
		if c.IsRecord {
			out[i].Record = string(b[8:])
			continue
		}
		for r := range out[i].Values {
			out[i].Values[r] = native.Uint64(b[8+8*r:])
		}
	}
	return out, nil
}

// Close removes the program from the kernel.
func (p *Program) Close() error { return Close(p.prog) }

// Rejected is the error for a prologue that the verifier rejects.
type Rejected struct {
	Line string // what it says about the reason
	Log  string // all of its log
}

func (r *Rejected) Error() string { return "rejected by the verifier: " + r.Line }

// Verify loads a prologue before a kprobe program that uses ctx, err and all arguments. For
// a record, the program is a function of its own, which the prologue calls. If the verifier
// rejects it, the error is a *Rejected.
func Verify(c Code) error {
	insns := slices.Clone(c.Insns)
	if err := kernelhas.Resolve(insns); err != nil {
		return err
	}
	if c.IsRecord {
		for i := range insns {
			// Comments would become line information, which the other function has not.
			insns[i].Metadata = asm.Metadata{}
		}
		call := asm.Instruction{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Call), Src: asm.PseudoCall, Constant: 1}
		insns = append(insns, call, asm.Return())
	}
	insns = append(insns, asm.LoadMem(asm.R0, asm.R1, 0, asm.DWord))
	for r := range 1 + c.Args {
		insns = append(insns, asm.Or.Reg(asm.R0, asm.R2+asm.Register(r)))
	}
	for off := int16(0); int(off) < c.Record; off += 8 {
		insns = append(insns, asm.LoadMem(asm.R4, asm.R3, off, asm.DWord), asm.Xor.Reg(asm.R0, asm.R4))
	}
	insns = append(insns, asm.Mov.Imm(asm.R0, 0), asm.Return())
	flags := uint32(0)
	for i := range c.Insns {
		if c.Insns[i].IsBuiltinCall() && c.Insns[i].Constant == int64(asm.FnCopyFromUser) {
			flags = unix.BPF_F_SLEEPABLE // as instances loads it
		}
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name:         "bpfexec_verify",
		Type:         ebpf.Kprobe,
		Flags:        flags,
		License:      "GPL",
		Instructions: insns,
	})
	if err != nil {
		return explain(err)
	}
	return Close(prog)
}

// explain adds the cause to an error of the kernel.
func explain(err error) error {
	var ve *ebpf.VerifierError
	switch {
	case errors.As(err, &ve) && len(ve.Log) > 0:
		return &Rejected{Line: tellingLine(ve.Log), Log: strings.Join(ve.Log, "\n")}
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w: %w: %s", ErrPrivilege, kernelerr.WithoutHint(err), kernelerr.Missing())
	}
	return err
}

// tellingLine is the last line of a log that is not statistics.
func tellingLine(log []string) string {
	for i := len(log) - 1; i >= 0; i-- {
		line := strings.TrimSpace(log[i])
		statistics := false
		for _, prefix := range []string{"processed ", "verification time ", "stack depth ", "mark_precise"} {
			statistics = statistics || strings.HasPrefix(line, prefix)
		}
		if line != "" && !statistics {
			return line
		}
	}
	return "no reason given"
}
