// Package kernelhas asks the running kernel for what prologues use if it is there: loads of
// memory at any address, and instructions that extend signs. It loads small programs, each once
// in a process, and runs one.
//
//	if kernelhas.Casts() {
//		options.Reads = prologue.ReadCast
//	}
//	err := kernelhas.Resolve(p.Insns)
package kernelhas

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/references"
)

// ErrNoCast is wrapped by Resolve's error if the running kernel lacks references.CastFunction.
var ErrNoCast = errors.New("the running kernel cannot cast addresses to memory: that needs Linux 6.17")

// number is what the kernel knows references.CastFunction by: its type in the kernel's BTF.
var number = sync.OnceValues(func() (btf.TypeID, error) {
	types, err := btf.LoadKernelSpec()
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNoCast, err)
	}
	var fn *btf.Func
	if err := types.TypeByName(references.CastFunction, &fn); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNoCast, err)
	}
	return types.TypeID(fn)
})

// Resolve fills in what the kernel knows references.CastFunction by in the calls of a prologue.
func Resolve(insns asm.Instructions) error {
	for i := range insns {
		ins := &insns[i]
		if !ins.IsKfuncCall() || ins.Reference() != references.CastFunction {
			continue
		}
		id, err := number()
		if err != nil {
			return err
		}
		ins.Constant = int64(id)
	}
	return nil
}

// Casts reports whether prologues with prologue.ReadCast run in the kernel, and read what they
// should. From Linux 6.2 to 6.16 the function is there, and knows no untyped memory. A load of user
// memory must give 0, which a processor may not see to: arm64's without PAN.
var Casts = sync.OnceValue(func() bool {
	point := asm.Instructions{asm.Mov.Imm(asm.R2, 0), call()}
	if Resolve(point) != nil {
		return false
	}
	load := func(off int16) asm.Instruction { return asm.LoadMem(asm.R0, asm.R0, off, asm.DWord) }
	end := asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}

	probe := asm.Instructions{asm.LoadMem(asm.R1, asm.R1, 0, asm.DWord)}
	probe = append(append(append(probe, point...), load(8)), end...)
	if !loads(probe) {
		return false
	}
	// The first word of ctx is an address, and becomes what is there. The second becomes
	// what the program has put on its stack.
	const kept = 77
	run := asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1), asm.LoadMem(asm.R1, asm.R1, 0, asm.DWord)}
	run = append(append(run, point...), load(0), asm.StoreMem(asm.R6, 0, asm.R0, asm.DWord),
		asm.Mov.Imm(asm.R0, kept), asm.StoreMem(asm.R10, -8, asm.R0, asm.DWord), asm.Mov.Reg(asm.R1, asm.R10))
	run = append(append(append(run, point...), load(-8), asm.StoreMem(asm.R6, 8, asm.R0, asm.DWord)), end...)
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.Syscall, Flags: unix.BPF_F_SLEEPABLE, License: "GPL", Instructions: run})
	if err != nil {
		return false
	}
	defer prog.Close()
	own := new(uint64)
	*own = kept
	ctx := binary.NativeEndian.AppendUint64(nil, uint64(uintptr(unsafe.Pointer(own))))
	ctx = append(ctx, make([]byte, 8)...)
	_, err = prog.Run(&ebpf.RunOptions{Context: ctx, ContextOut: ctx})
	runtime.KeepAlive(own)
	return err == nil && binary.NativeEndian.Uint64(ctx) == 0 && binary.NativeEndian.Uint64(ctx[8:]) == kept
})

// call is an instruction as prologues have it.
func call() asm.Instruction {
	ins := asm.Instruction{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Call), Src: asm.PseudoKfuncCall}
	return ins.WithReference(references.CastFunction)
}

// SignExtends reports whether the kernel has moves that extend signs, and loads that do from what
// prologues load from.
var SignExtends = sync.OnceValue(func() bool {
	return loads(asm.Instructions{
		asm.LoadMemSX(asm.R3, asm.R1, 8, asm.Word),
		asm.MovSX8.Reg(asm.R3, asm.R3),
		asm.StoreMem(asm.R10, -8, asm.R3, asm.DWord),
		asm.LoadMemSX(asm.R3, asm.R10, -8, asm.Half),
		asm.Mov.Imm(asm.R0, 0), asm.Return(),
	})
})

// Sleeps reports whether programs of uprobes can sleep, and so read pages of user memory that are not
// resident.
var Sleeps = sync.OnceValue(func() bool {
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.Kprobe, Flags: unix.BPF_F_SLEEPABLE, License: "GPL", Instructions: asm.Instructions{
		asm.LoadMem(asm.R3, asm.R1, 0, asm.DWord),
		asm.Mov.Reg(asm.R1, asm.R10), asm.Add.Imm(asm.R1, -8), asm.Mov.Imm(asm.R2, 8),
		asm.FnCopyFromUser.Call(),
		asm.Mov.Imm(asm.R0, 0), asm.Return(),
	}})
	if err != nil {
		return false
	}
	return prog.Close() == nil
})

// loads reports whether the kernel takes a program for probes.
func loads(insns asm.Instructions) bool {
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.Kprobe, License: "GPL", Instructions: insns})
	if err != nil {
		return false
	}
	return prog.Close() == nil
}
