package main

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// libbpf fetches the arguments of a USDT probe like this (tools/lib/bpf/usdt.bpf.h): user
// space describes them in an array, and one program for all probes looks up the description
// by the probe's cookie and interprets it, separately for each argument. This program does
// the same work.

// A description: for each argument 16 bytes, then their number. A real one has
// room for twelve, and a cookie.
const (
	offValue  = 0 // s64: the constant, or the offset from the register
	offKind   = 8 // u32
	offReg    = 12
	offSigned = 14
	offShift  = 15 // bits above the value
	argSize   = 16
	maxArgs   = 12
	offCount  = maxArgs * argSize
	specSize  = offCount + 8
	maxSpecs  = 256 // BPF_USDT_MAX_SPEC_CNT's default
)

const (
	kindConst = iota
	kindReg
	kindDeref
)

// newSpecs makes the map of descriptions with one that describes args.
func newSpecs(a *arch.Arch, args []prologue.Arg) (*ebpf.Map, error) {
	spec := make([]byte, specSize)
	ne := binary.NativeEndian
	for i, arg := range args {
		b := spec[i*argSize:]
		e := arg.Loc.Expr
		kind, off := uint32(kindReg), uint64(0)
		if arg.Loc.Kind == loc.KindMemory {
			kind, off, e = kindDeref, e.B.K, e.A
		}
		ne.PutUint64(b[offValue:], off)
		ne.PutUint32(b[offKind:], kind)
		ne.PutUint16(b[offReg:], uint16(a.Register(e.K).Offset))
		b[offShift] = byte(64 - 8*arg.Size)
	}
	ne.PutUint16(spec[offCount:], uint16(len(args)))
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: "specs", Type: ebpf.Array, KeySize: 4, ValueSize: specSize, MaxEntries: maxSpecs})
	if err != nil {
		return nil, err
	}
	if err := m.Put(uint32(0), spec); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// interpreter returns instructions that fetch arguments as a description says, and set R2 to
// R5 as a prologue does.
func interpreter(specs *ebpf.Map, args int) asm.Instructions {
	const key, value, out = -8, -16, -24 // on the stack; out goes down from there
	insns := asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1), asm.Mov.Imm(asm.R9, 0)}
	for i := range args {
		label := func(name string) string { return fmt.Sprintf("%s%d", name, i) }
		at := func(off int) int16 { return int16(i*argSize + off) }
		// readRegister reads a register of ctx whose offset is known only now.
		readRegister := asm.Instructions{
			asm.LoadMem(asm.R3, asm.R7, at(offReg), asm.Half),
			asm.Add.Reg(asm.R3, asm.R6),
			asm.Mov.Reg(asm.R1, asm.R10),
			asm.Add.Imm(asm.R1, value),
			asm.Mov.Imm(asm.R2, 8),
			asm.FnProbeReadKernel.Call(),
			asm.JNE.Imm(asm.R0, 0, label("missing")),
		}
		slot := int16(out - 8*i)
		insns = append(insns,
			asm.Mov.Imm(asm.R0, 0),
			asm.StoreMem(asm.R10, slot, asm.R0, asm.DWord),
			asm.Mov.Reg(asm.R1, asm.R6),
			asm.FnGetAttachCookie.Call(),
			asm.StoreMem(asm.R10, key, asm.R0, asm.Word),
			asm.LoadMapPtr(asm.R1, specs.FD()),
			asm.Mov.Reg(asm.R2, asm.R10),
			asm.Add.Imm(asm.R2, key),
			asm.FnMapLookupElem.Call(),
			asm.JEq.Imm(asm.R0, 0, label("missing")),
			asm.Mov.Reg(asm.R7, asm.R0),
			asm.LoadMem(asm.R1, asm.R7, offCount, asm.Half),
			asm.JLE.Imm(asm.R1, int32(i), label("missing")),
			asm.LoadMem(asm.R8, asm.R7, at(offKind), asm.Word),
			asm.JEq.Imm(asm.R8, kindConst, label("const")),
			asm.JEq.Imm(asm.R8, kindReg, label("reg")),
			asm.JEq.Imm(asm.R8, kindDeref, label("deref")),
			asm.Ja.Label(label("missing")),

			asm.LoadMem(asm.R1, asm.R7, at(offValue), asm.DWord).WithSymbol(label("const")),
			asm.StoreMem(asm.R10, value, asm.R1, asm.DWord),
			asm.Ja.Label(label("extend")),
		)
		insns = append(insns, named(readRegister, label("reg"))...)
		insns = append(insns, asm.Ja.Label(label("extend")))
		insns = append(insns, named(readRegister, label("deref"))...)
		insns = append(insns,
			asm.LoadMem(asm.R3, asm.R10, value, asm.DWord),
			asm.LoadMem(asm.R1, asm.R7, at(offValue), asm.DWord),
			asm.Add.Reg(asm.R3, asm.R1),
			asm.Mov.Reg(asm.R1, asm.R10),
			asm.Add.Imm(asm.R1, value),
			asm.Mov.Imm(asm.R2, 8),
			asm.FnProbeReadUser.Call(),
			asm.JNE.Imm(asm.R0, 0, label("missing")),

			// The value's bits go up to the top and come down with its sign, or without.
			asm.LoadMem(asm.R1, asm.R7, at(offShift), asm.Byte).WithSymbol(label("extend")),
			asm.LoadMem(asm.R0, asm.R10, value, asm.DWord),
			asm.LSh.Reg(asm.R0, asm.R1),
			asm.LoadMem(asm.R2, asm.R7, at(offSigned), asm.Byte),
			asm.JNE.Imm(asm.R2, 0, label("signed")),
			asm.RSh.Reg(asm.R0, asm.R1),
			asm.Ja.Label(label("store")),
			asm.ArSh.Reg(asm.R0, asm.R1).WithSymbol(label("signed")),
			asm.StoreMem(asm.R10, slot, asm.R0, asm.DWord).WithSymbol(label("store")),
			asm.Ja.Label(label("next")),
			asm.Or.Imm(asm.R9, 1<<i).WithSymbol(label("missing")),
			asm.Mov.Imm(asm.R0, 0).WithSymbol(label("next")),
		)
	}
	insns = append(insns, asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Reg(asm.R2, asm.R9))
	for i := range args {
		insns = append(insns, asm.LoadMem(asm.R3+asm.Register(i), asm.R10, int16(out-8*i), asm.DWord))
	}
	return insns
}

// named returns a copy of instructions with a label for jumps.
func named(insns asm.Instructions, label string) asm.Instructions {
	out := append(asm.Instructions(nil), insns...)
	out[0] = out[0].WithSymbol(label)
	return out
}
