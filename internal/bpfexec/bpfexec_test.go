package bpfexec_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
)

// Two hand-written prologues: one that fetches the word at register offset 8, and
// one that reads memory at the address there.
func loadWord() asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R3, asm.R1, 8, asm.DWord),
		asm.Mov.Imm(asm.R2, 0),
	}
}

func readMemory() asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R3, asm.R6, 8, asm.DWord),
		asm.Mov.Reg(asm.R1, asm.R10),
		asm.Add.Imm(asm.R1, -8),
		asm.Mov.Imm(asm.R2, 8),
		asm.FnProbeReadUser.Call(),
		asm.Mov.Reg(asm.R2, asm.R0),
		asm.LoadMem(asm.R3, asm.R10, -8, asm.DWord),
		asm.Mov.Imm(asm.R4, -7),
		asm.Mov.Reg(asm.R1, asm.R6),
	}
}

func TestRun(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	arena, err := bpfexec.NewArena(1)
	if err != nil {
		t.Fatal(err)
	}
	defer arena.Close()
	binary.NativeEndian.PutUint64(arena.Bytes[16:], 0x1122334455667788)

	p, err := bpfexec.Load(bpfexec.Code{Insns: loadWord(), Args: 1}, bpfexec.Code{Insns: readMemory(), Args: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, tt := range []struct {
		name  string
		addr  uint64
		fails bool
		value uint64
	}{
		{"mapped", arena.Addr(16), false, 0x1122334455667788},
		{"unmapped", arena.Unmapped(), true, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			regs := make([]byte, 168)
			binary.NativeEndian.PutUint64(regs[8:], tt.addr)
			res, err := p.Run(bpfexec.State{Regs: regs})
			if err != nil {
				t.Fatal(err)
			}
			if want := (bpfexec.Result{Values: [3]uint64{tt.addr, 0, 0}}); res[0] != want {
				t.Errorf("first prologue: %+v, want %+v", res[0], want)
			}
			if (res[1].Err != 0) != tt.fails || res[1].Values != [3]uint64{tt.value, 1<<64 - 7, 0} {
				t.Errorf("second prologue: %+v, want value %#x, fault %v", res[1], tt.value, tt.fails)
			}
		})
	}
}

// TestKernelArena: prologues read what the test has written, and fault after it.
func TestKernelArena(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	arena, err := bpfexec.NewKernelArena(5000)
	if err != nil {
		t.Fatal(err)
	}
	defer arena.Close()
	if n := len(arena.Bytes); n < 5000 || n%4096 != 0 {
		t.Errorf("%d bytes", n)
	}
	for _, tt := range []struct {
		addr uint64
		want bool
	}{{arena.Addr(0), true}, {arena.Unmapped() - 1, true}, {arena.Unmapped(), false}, {8, false}, {1 << 63, false}} {
		if got, err := bpfexec.InKernel(tt.addr); err != nil || got != tt.want {
			t.Errorf("%#x: readable %v, %v; want %v", tt.addr, got, err, tt.want)
		}
	}
	binary.NativeEndian.PutUint64(arena.Bytes[len(arena.Bytes)-8:], 0x1122334455667788)
	insns := readMemory()
	insns[5] = asm.FnProbeReadKernel.Call()
	p, err := bpfexec.Load(bpfexec.Code{Insns: insns, Args: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	regs := make([]byte, 168)
	binary.NativeEndian.PutUint64(regs[8:], arena.Unmapped()-8)
	res, err := p.Run(bpfexec.State{Regs: regs})
	if want := (bpfexec.Result{Values: [3]uint64{0x1122334455667788}}); err != nil || res[0] != want {
		t.Errorf("%+v, %v; want %+v", res, err, want)
	}
}

func TestVerify(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	if err := bpfexec.Verify(bpfexec.Code{Insns: readMemory(), Args: 2}); err != nil {
		t.Errorf("a good prologue: %v", err)
	}
	for _, tt := range []struct {
		name string
		code bpfexec.Code
		line string
	}{
		{"an argument that was not set", bpfexec.Code{Insns: loadWord(), Args: 2}, "R4 !read_ok"},
		{"ctx is lost", bpfexec.Code{Insns: readMemory()[:9], Args: 0}, "R1 !read_ok"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := bpfexec.Verify(tt.code)
			var r *bpfexec.Rejected
			if !errors.As(err, &r) {
				t.Fatalf("got %v, want a rejection", err)
			}
			if r.Line != tt.line {
				t.Errorf("telling line is %q, want %q; log:\n%s", r.Line, tt.line, r.Log)
			}
		})
	}
}

func TestLoadLimits(t *testing.T) {
	for _, n := range []int{0, bpfexec.MaxBatch + 1} {
		if _, err := bpfexec.Load(make([]bpfexec.Code, n)...); err == nil {
			t.Errorf("%d prologues: no error", n)
		}
	}
}
