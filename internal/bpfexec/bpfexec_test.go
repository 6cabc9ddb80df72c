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

// TestOtherOrder: the code of a machine of the other byte order finds numbers as that has them, whole ones and the
// parts at their other end, and leaves them so. Jumps lead where they led.
func TestOtherOrder(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	other := binary.ByteOrder(binary.BigEndian)
	big := binary.NativeEndian.Uint16([]byte{1, 0}) == 1
	if !big {
		other = binary.LittleEndian
	}
	arena, err := bpfexec.NewLowArena(1)
	if err != nil {
		t.Fatal(err)
	}
	defer arena.Close()
	if arena.Unmapped() >= 1<<31 {
		t.Errorf("the arena ends at %#x", arena.Unmapped())
	}
	other.PutUint64(arena.Bytes[16:], 0x1122334455667788)
	jump := asm.JEq.Imm(asm.R0, 0, "")
	jump.Offset = 2 // over the load, of two instructions, and the next
	code := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R3, asm.R6, 8, asm.Word), // an address of 32 bits
		asm.Mov.Reg(asm.R1, asm.R10),
		asm.Add.Imm(asm.R1, -16),
		asm.Mov.Imm(asm.R2, 8),
		asm.FnProbeReadUser.Call(),
		jump,
		asm.LoadMem(asm.R0, asm.R6, 16, asm.DWord),
		asm.Mov.Imm(asm.R0, 9),
		asm.Add.Imm(asm.R0, 7),
		asm.LoadMem(asm.R3, asm.R10, -16, asm.DWord),
		asm.StoreMem(asm.R10, -8, asm.R3, asm.DWord),
		{OpCode: asm.StoreImmOp(asm.DWord), Dst: asm.R10, Offset: -16, Constant: -0x1234},
		asm.LoadMem(asm.R4, asm.R10, -8, asm.Half),
		asm.LoadMem(asm.R5, asm.R10, -16, asm.DWord),
		asm.Mov.Reg(asm.R2, asm.R0),
		asm.Mov.Reg(asm.R1, asm.R6),
	}
	record := append(code[:len(code)-2:len(code)-2], asm.Mov.Imm(asm.R2, 0), asm.Mov.Reg(asm.R3, asm.R10), asm.Add.Imm(asm.R3, -8), asm.Mov.Reg(asm.R1, asm.R6))
	p, err := bpfexec.Load(bpfexec.Code{Insns: code, Args: 3, BigEndian: big}, bpfexec.Code{Insns: record, Record: 8, IsRecord: true, BigEndian: big})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	regs := make([]byte, 168)
	other.PutUint32(regs[8:], uint32(arena.Addr(16)))
	res, err := p.Run(bpfexec.State{Regs: regs})
	if err != nil {
		t.Fatal(err)
	}
	half := uint64(0x1122)
	if !big {
		half = 0x7788
	}
	if want := (bpfexec.Result{Err: 7, Values: [3]uint64{0x1122334455667788, half, 1<<64 - 0x1234}}); res[0] != want {
		t.Errorf("%#x, want %#x", res[0], want)
	}
	if got := other.Uint64([]byte(res[1].Record)); got != 0x1122334455667788 {
		t.Errorf("in a record: %#x", got)
	}
	if _, err := bpfexec.Load(bpfexec.Code{Insns: asm.Instructions{asm.StoreMem(asm.R10, -8, asm.R1, asm.Word)}, BigEndian: big}); err == nil {
		t.Error("a store of half a register was turned")
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
