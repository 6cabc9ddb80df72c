package prologue_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// TestLoads pins the instructions of loads of kernel memory.
func TestLoads(t *testing.T) {
	const cast = `r2 = 0
call bpf_rdonly_cast
`
	const ask = `r1 = r10
r1 += -8
r2 = 8
call bpf_probe_read_kernel
`
	const last = `r0 >>= 63
r2 = r0
r3 = *(u64 *)(r10 -8)
`
	stays := func(addr, size uint64) bool { return addr+size <= 0x2000 }
	tests := []struct {
		name    string
		args    []prologue.Arg
		frame   []uint16
		helpers int
		rare    int
		want    string
	}{
		{"a stack slot", []prologue.Arg{arg(inMem(plus(reg(7), 8)), 8)}, nil, 0, 0, `r6 = r1
r1 = *(u64 *)(r6 +152)
` + cast + `r3 = *(u64 *)(r0 +8)
r2 = 0
r1 = r6`},
		{"stack slots with a register between", []prologue.Arg{signed(inMem(plus(reg(7), 12)), 4), arg(inReg(5), 8), arg(inMem(plus(reg(7), 200)), 1)}, nil, 0, 0, `r6 = r1
r1 = *(u64 *)(r6 +152)
` + cast + `r3 = *(s32 *)(r0 +12)
r4 = *(u64 *)(r6 +112)
r5 = *(u8 *)(r0 +200)
r2 = 0
r1 = r6`},
		{"a frame pointer", []prologue.Arg{arg(inMem(plus(reg(6), -16)), 8)}, []uint16{6}, 0, 0, `r6 = r1
r1 = *(u64 *)(r6 +32)
` + cast + `r3 = *(u64 *)(r0 -16)
r2 = 0
r1 = r6`},
		{"memory of the image", []prologue.Arg{arg(inMem(image(0x1010)), 8), arg(inMem(image(0x1014)), 2)}, nil, 0, 0, `r6 = r1
r1 = 0x1010 ll
` + cast + `r3 = *(u64 *)(r0 +0)
r4 = *(u16 *)(r0 +4)
r2 = 0
r1 = r6`},
		{"memory of the image that may be freed", []prologue.Arg{arg(inMem(image(0x1ffc)), 8)}, nil, 1, 8, `r6 = r1
r1 = 0x1ffc ll
` + cast + `r3 = *(u64 *)(r0 +0)
r2 = 0
if r3 != 0 goto pc+9
r3 = 0x1ffc ll
` + ask + last + `r1 = r6`},
		{"through a pointer on the stack", []prologue.Arg{arg(inMem(plus(mem(plus(reg(7), 8), 8), 16)), 8)}, nil, 1, 9, `r6 = r1
r1 = *(u64 *)(r6 +152)
` + cast + `r1 = *(u64 *)(r0 +8)
*(u64 *)(r10 -16) = r1
` + cast + `r3 = *(u64 *)(r0 +16)
r2 = 0
if r3 != 0 goto pc+9
r3 = *(u64 *)(r10 -16)
r3 += 16
` + ask + last + `r1 = r6`},
		{"a chain, and a register", []prologue.Arg{arg(inMem(plus(mem(plus(reg(5), 8), 8), 16)), 8), arg(inReg(0), 4)}, nil, 2, 17, `r6 = r1
r1 = *(u64 *)(r6 +112)
` + cast + `r1 = *(u64 *)(r0 +8)
if r1 != 0 goto pc+8
r3 = *(u64 *)(r6 +112)
r3 += 8
` + ask + `if r0 != 0 goto pc+13
r1 = *(u64 *)(r10 -8)
*(u64 *)(r10 -16) = r1
` + cast + `r3 = *(u64 *)(r0 +16)
r2 = 0
if r3 != 0 goto pc+9
r3 = *(u64 *)(r10 -16)
r3 += 16
` + ask + last + `r4 = *(u32 *)(r6 +80)
r1 = r6`},
		{"neighbours at a register", []prologue.Arg{arg(inMem(plus(reg(5), 16)), 8), arg(inMem(plus(reg(5), 8)), 4)}, nil, 1, 24, `r6 = r1
r9 = 0
r7 = *(u64 *)(r6 +112)
r1 = r7
` + cast + `r1 = *(u64 *)(r0 +16)
*(u64 *)(r10 -8) = r1
if r1 == 0 goto pc+3
r1 = *(u32 *)(r0 +8)
*(u32 *)(r10 -16) = r1
if r1 != 0 goto pc+24
r3 = r7
r3 += 8
r1 = r10
r1 += -16
r2 = 16
call bpf_probe_read_kernel
if r0 == 0 goto pc+17
r3 = r7
r3 += 16
` + ask + `r0 >>= 63
r9 |= r0
r3 = r7
r3 += 8
r1 = r10
r1 += -16
r2 = 4
call bpf_probe_read_kernel
r0 >>= 63
r0 <<= 1
r9 |= r0
r3 = *(u64 *)(r10 -8)
r4 = *(u32 *)(r10 -16)
r2 = r9
r1 = r6`},
		{"signs", []prologue.Arg{signed(inReg(0), 1), signed(isValue(plus(reg(0), 1)), 2), signed(inReg(0), 3)}, nil, 0, 0, `r3 = *(s8 *)(r1 +80)
r4 = *(u64 *)(r1 +80)
r4 += 1
r4 = (s16)r4
r5 = *(u64 *)(r1 +80)
r5 <<= 40
r5 s>>= 40
r2 = 0`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := prologue.Options{Arch: amd64, Reads: prologue.ReadCast, SignExtends: true, Stays: stays, Frame: tt.frame}
			p, err := prologue.Emit(tt.args, o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, instructions(p)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			var e prologue.Emitter
			if err := e.Emit(tt.args, &o); err != nil {
				t.Fatal(err)
			}
			if p.Helpers != tt.helpers || e.Rare != tt.rare {
				t.Errorf("%d helper calls and %d rare instructions, want %d and %d", p.Helpers, e.Rare, tt.helpers, tt.rare)
			}
		})
	}
}

// TestZeros: what is loaded as 0 is 0, or a fault. All bytes of what is read count, also if the
// argument is some of them.
func TestZeros(t *testing.T) {
	null := plus(reg(5), ptrOff+56)
	execute(t, func(w *world) []execCase {
		r := prologue.Arg{Name: "r", Loc: inReg(1), Size: 8}
		v := w.regs[1]
		return []execCase{
			{"a number", []prologue.Arg{arg(inMem(null), 8), r}, result(0, 0, v)},
			{"in the stack", []prologue.Arg{arg(inMem(plus(reg(7), -64)), 4), r}, result(0, 0, v)},
			{"neighbours", []prologue.Arg{arg(inMem(null), 4), arg(inMem(plus(null, 4)), 4), r}, result(0, 0, 0, v)},
			{"after null", []prologue.Arg{arg(inMem(plus(mem(null, 8), 16)), 8), r}, result(1, 0, v)},
			{"after null, not fetched", []prologue.Arg{arg(inMem(plus(mem(mem(plus(mem(null, 8), 16), 8), 8), 8)), 8), r}, result(1, 0, v)},
			{"null as an index", []prologue.Arg{arg(inMem(bin(ops.Add, reg(5), mem(null, 8))), 1), r}, result(0, uint64(w.mem[0]), v)},
			{"a part, at the end of a page", []prologue.Arg{arg(isValue(mem(plus(reg(5), 4092), 8)), 1), r}, result(1, 0, v)},
		}
	})
}
