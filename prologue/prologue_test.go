package prologue_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/prologue"
)

func arg(l location, size int) prologue.Arg { return prologue.Arg{Name: "a", Loc: l, Size: size} }

func signed(l location, size int) prologue.Arg {
	return prologue.Arg{Name: "a", Loc: l, Size: size, Signed: true}
}

// instructions is a prologue's text without numbers and comments.
func instructions(p *prologue.Prologue) string {
	var out []string
	for line := range strings.Lines(p.String()) {
		line, _, _ = strings.Cut(line, " ; ")
		_, line, _ = strings.Cut(line, ": ")
		out = append(out, strings.TrimSpace(line))
	}
	return strings.Join(out, "\n")
}

// TestInstructions pins the instructions of the frequent cases. None can do with
// fewer.
func TestInstructions(t *testing.T) {
	const read8 = `r1 = r10
r1 += -8
r2 = 8
call bpf_probe_read_kernel
r0 >>= 63
r2 = r0
r3 = *(u64 *)(r10 -8)
r1 = r6`
	arm64 := arch.ByName("arm64")
	be := prologue.Options{Arch: arm64, BigEndian: true}
	tests := []struct {
		name string
		args []prologue.Arg
		o    prologue.Options
		want string
	}{
		{"register", []prologue.Arg{arg(inReg(0), 8)}, prologue.Options{}, `r3 = *(u64 *)(r1 +80)
r2 = 0`},
		{"u32 register", []prologue.Arg{arg(inReg(0), 4)}, prologue.Options{}, `r3 = *(u32 *)(r1 +80)
r2 = 0`},
		{"u32 register, big-endian", []prologue.Arg{arg(inReg(1), 4)}, be, `r3 = *(u32 *)(r1 +12)
r2 = 0`},
		{"s8 register", []prologue.Arg{signed(inReg(0), 1)}, prologue.Options{}, `r3 = *(u64 *)(r1 +80)
r3 <<= 56
r3 s>>= 56
r2 = 0`},
		{"3 bytes of a register", []prologue.Arg{arg(inReg(0), 3)}, prologue.Options{}, `r3 = *(u64 *)(r1 +80)
r3 &= 16777215
r2 = 0`},
		{"stack pointer of arm64", []prologue.Arg{arg(isValue(plus(reg(31), 16)), 8)}, prologue.Options{Arch: arm64}, `r3 = *(u64 *)(r1 +248)
r3 += 16
r2 = 0`},
		{"constants", []prologue.Arg{arg(isConst(42), 4), signed(isConst(0xffff), 2), arg(isConst(0xffffffff), 4)}, prologue.Options{}, `r3 = 42
r4 = -1
w5 = -1
r2 = 0`},
		{"wide constant", []prologue.Arg{arg(isConst(1<<40), 8)}, prologue.Options{}, `r3 = 0x10000000000 ll
r2 = 0`},
		{"address of a global", []prologue.Arg{arg(isValue(image(0x1000)), 8)}, prologue.Options{}, `r3 = 0x1000 ll
r2 = 0`},
		{"register plus offset", []prologue.Arg{arg(isValue(plus(reg(7), 6)), 8)}, prologue.Options{}, `r3 = *(u64 *)(r1 +152)
r3 += 6
r2 = 0`},
		{"three registers", []prologue.Arg{arg(inReg(5), 8), arg(inReg(4), 4), arg(inReg(1), 1)}, prologue.Options{}, `r3 = *(u64 *)(r1 +112)
r4 = *(u32 *)(r1 +104)
r5 = *(u8 *)(r1 +96)
r2 = 0`},
		{"memory", []prologue.Arg{arg(inMem(plus(reg(7), 8)), 8)}, prologue.Options{}, `r6 = r1
r3 = *(u64 *)(r6 +152)
r3 += 8
` + read8},
		{"global", []prologue.Arg{arg(inMem(image(0xffffffff82a00010)), 8)}, prologue.Options{}, `r6 = r1
r3 = 0xffffffff82a00010 ll
` + read8},
		{"user memory and a register", []prologue.Arg{arg(inReg(5), 8), signed(inMem(reg(4)), 4)}, prologue.Options{Reads: prologue.ReadUser}, `r6 = r1
r3 = *(u64 *)(r6 +104)
r1 = r10
r1 += -8
r2 = 4
call bpf_probe_read_user
r0 >>= 63
r0 <<= 1
r2 = r0
r3 = *(u64 *)(r6 +112)
r4 = *(u32 *)(r10 -8)
r4 <<= 32
r4 s>>= 32
r1 = r6`},
		{"through a pointer on the stack", []prologue.Arg{arg(inMem(plus(mem(plus(reg(7), 8), 8), 16)), 8)}, prologue.Options{Reads: prologue.ReadLegacy}, `r6 = r1
r3 = *(u64 *)(r6 +152)
r3 += 8
r1 = r10
r1 += -8
r2 = 8
call bpf_probe_read
if r0 != 0 goto pc+6
r3 = *(u64 *)(r10 -8)
r3 += 16
` + strings.ReplaceAll(read8, "_kernel", "")},
		{"neighbours at a register", []prologue.Arg{arg(inMem(plus(reg(5), 16)), 8), arg(inMem(plus(reg(5), 8)), 4)}, prologue.Options{}, `r6 = r1
r9 = 0
r7 = *(u64 *)(r6 +112)
r3 = r7
r3 += 8
r1 = r10
r1 += -16
r2 = 16
call bpf_probe_read_kernel
if r0 == 0 goto pc+17
r3 = r7
r3 += 16
r1 = r10
r1 += -8
r2 = 8
call bpf_probe_read_kernel
r0 >>= 63
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
		{"3 bytes of memory, big-endian", []prologue.Arg{arg(inMem(reg(0)), 3)}, be, `r6 = r1
r3 = *(u64 *)(r6 +0)
*(u64 *)(r10 -8) = 0
r1 = r10
r1 += -3
r2 = 3
call bpf_probe_read_kernel
r0 >>= 63
r2 = r0
r3 = *(u64 *)(r10 -8)
r1 = r6`},
		{"two registers make one", []prologue.Arg{arg(pieces(piece(4, inReg(0)), piece(4, inReg(1))), 8)}, prologue.Options{}, `r3 = *(u32 *)(r1 +80)
r0 = *(u32 *)(r1 +96)
r0 <<= 32
r3 |= r0
r2 = 0`},
		{"known bytes, big-endian", []prologue.Arg{arg(known(0, 0, 1, 2), 4)}, be, `r3 = 258
r2 = 0`},
		{"no arguments", nil, prologue.Options{}, `r2 = 0`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.o.Arch == nil {
				tt.o.Arch = amd64
			}
			p, err := prologue.Emit(tt.args, tt.o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, instructions(p)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if p.Insns[0].Source() == nil {
				t.Error("no comment at the first instruction")
			}
		})
	}
}

// TestJoin reads together what hangs at one base and is near, and nothing else.
func TestJoin(t *testing.T) {
	sp := func(off int64) location { return inMem(plus(reg(7), off)) }
	tests := []struct {
		name  string
		args  []prologue.Arg
		frame []uint16
		calls int
		stack int
	}{
		{"neighbours", []prologue.Arg{arg(sp(16), 8), arg(sp(8), 8)}, nil, 1, 16},
		{"three", []prologue.Arg{arg(sp(20), 4), arg(sp(8), 8), arg(sp(24), 2)}, nil, 1, 24},
		{"64 bytes", []prologue.Arg{arg(sp(-8), 8), arg(sp(48), 8)}, nil, 1, 64},
		{"65 bytes", []prologue.Arg{arg(sp(-8), 8), arg(sp(56), 1)}, nil, 2, 16},
		{"from an odd word on", []prologue.Arg{arg(sp(4), 4), arg(sp(60), 8)}, nil, 2, 16},
		{"skewed", []prologue.Arg{arg(sp(4), 4), arg(sp(64), 4)}, nil, 1, 72},
		{"the same twice", []prologue.Arg{arg(sp(8), 8), arg(sp(8), 4)}, nil, 1, 8},
		{"of the ends of the address space", []prologue.Arg{arg(sp(-1<<63), 8), arg(sp(1<<63-8), 8)}, nil, 2, 16},
		{"two of three", []prologue.Arg{arg(sp(8), 8), arg(sp(800), 8), arg(sp(0), 8)}, nil, 2, 24},
		{"not aligned", []prologue.Arg{arg(sp(9), 8), arg(sp(1), 8)}, nil, 2, 16},
		{"not a frame", []prologue.Arg{arg(inMem(plus(reg(6), 8)), 8), arg(inMem(reg(6)), 8)}, nil, 1, 16},
		{"through one pointer", []prologue.Arg{arg(inMem(plus(mem(reg(6), 8), 24)), 4), arg(inMem(plus(mem(reg(6), 8), 16)), 8)}, nil, 2, 24},
		{"through two pointers", []prologue.Arg{arg(inMem(plus(mem(reg(6), 8), 8)), 8), arg(inMem(mem(reg(6), 4)), 8)}, nil, 4, 24},
		{"not a frame, over each other", []prologue.Arg{arg(inMem(plus(reg(6), 8)), 8), arg(inMem(plus(reg(6), 8)), 4)}, nil, 2, 16},
		{"not a frame, over each other in part", []prologue.Arg{arg(inMem(plus(reg(6), 8)), 8), arg(inMem(plus(reg(6), 12)), 4)}, nil, 2, 16},
		{"not a frame, the same", []prologue.Arg{arg(inMem(plus(reg(6), 8)), 8), signed(inMem(plus(reg(6), 8)), 8)}, nil, 1, 8},
		{"of the image", []prologue.Arg{arg(inMem(image(0x1ff8)), 8), arg(inMem(image(0x1ff4)), 4)}, nil, 1, 16},
		{"of two pages of the image", []prologue.Arg{arg(inMem(image(0x1ff8)), 8), arg(inMem(image(0x2000)), 4)}, nil, 2, 16},
		{"a bad divisor in the address", []prologue.Arg{arg(inMem(plus(bin(ops.Div, reg(6), reg(1)), 8)), 8), arg(inMem(bin(ops.Div, reg(6), reg(1))), 8)}, nil, 2, 24},
		{"frame pointer", []prologue.Arg{arg(inMem(plus(reg(6), -20)), 4), arg(inMem(plus(reg(6), -32)), 8)}, []uint16{6}, 1, 16},
		{"two frames", []prologue.Arg{arg(inMem(plus(reg(6), 8)), 8), arg(sp(0), 8)}, []uint16{6}, 2, 16},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := prologue.Emit(tt.args, prologue.Options{Arch: amd64, Frame: tt.frame})
			if err != nil {
				t.Fatal(err)
			}
			if p.Helpers != tt.calls || p.Stack != tt.stack {
				t.Errorf("%d calls and %d bytes of stack, want %d and %d\n%v", p.Helpers, p.Stack, tt.calls, tt.stack, p)
			}
		})
	}
}

func TestUnfetched(t *testing.T) {
	long := num(1)
	for range 11 {
		long = bin(ops.Xor, long, long) // one node for each time it occurs
	}
	tests := []struct {
		name string
		arg  prologue.Arg
		want string
	}{
		{"not located", prologue.Arg{Size: 8}, "optimized-out"},
		{"reason of the caller", prologue.Arg{Size: 8, Reason: loc.Reason{Code: reasons.NotAtSite, Detail: "x"}}, "not-at-site: x"},
		{"implicit pointer", arg(location{Kind: loc.KindImplicitPointer}, 8), "implicit-pointer"},
		{"unknown size", arg(inReg(0), 0), "incomplete-type"},
		{"too large", arg(inReg(0), 16), "too-large: 16 bytes, a register holds 8"},
		{"missing piece", arg(pieces(piece(4, inReg(0)), piece(4, location{})), 8), "missing-piece: bits 32 to 63"},
		{"implicit pointer as a piece", arg(pieces(piece(8, location{Kind: loc.KindImplicitPointer})), 4), "missing-piece: bits 0 to 31"},
		{"too few pieces", arg(pieces(piece(4, inReg(0))), 8), "missing-piece: bits 32 to 63 are not described"},
		{"too few bits", arg(pieces(bitPiece(32, 40, inReg(0))), 4), "missing-piece: 32 bits from bit 40 on of a value of 64"},
		{"huge piece", arg(pieces(bitPiece(1<<63, 1<<63, inReg(0))), 4), "missing-piece: 32 bits from bit 9223372036854775808 on of a value of 64"},
		{"too few bytes", arg(known(1, 2), 4), "missing-piece: only 2 bytes are known"},
		{"pieces inside a piece", arg(pieces(piece(4, pieces(piece(4, inReg(0))))), 4), "unsupported-operation: a piece of kind 6"},
		{"unknown kind", arg(location{Kind: 99}, 4), "unsupported-operation: a location of kind 99"},
		{"vector register", arg(inReg(17), 8), "vector-register: %xmm0"},
		{"register that is not saved", arg(isValue(plus(reg(54), 8)), 8), "no-register: %fs"},
		{"unknown register", arg(inMem(reg(99)), 8), "no-register: DWARF register 99"},
		{"no expression", arg(location{Kind: loc.KindValue}, 8), "unsupported-operation: an operation without its operand"},
		{"no operand", arg(isValue(bin(ops.Add, reg(0), nil)), 8), "unsupported-operation: an operation without its operand"},
		{"wide read", arg(isValue(mem(reg(0), 16)), 8), "unsupported-operation: a value of 16 bytes"},
		{"unknown operation", arg(isValue(&expr{Op: 200, A: reg(0)}), 8), "unsupported-operation: operation 200"},
		{"long", arg(isValue(long), 8), "unsupported-operation: an expression of more than 2048 operations"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.arg.Name = "x"
			args := []prologue.Arg{{Name: "r", Loc: inReg(0), Size: 8}, tt.arg, {Name: "s", Loc: inMem(plus(reg(7), 8)), Size: 8}}
			p, err := prologue.Emit(args, prologue.Options{Arch: amd64, Site: "f+1"})
			if err != nil {
				t.Fatal(err)
			}
			if len(p.Reasons) != 3 || p.Reasons[0] != (loc.Reason{}) || p.Reasons[1].String() != tt.want || p.Reasons[2] != (loc.Reason{}) {
				t.Errorf("reasons %v, want for argument 1: %s", p.Reasons, tt.want)
			}
			if !strings.Contains(p.String(), "; err: x: "+tt.want+" · f+1\n") {
				t.Errorf("no comment says %q:\n%v", tt.want, p)
			}
			w := imaginary(false)
			args[1] = prologue.Arg{}
			if got, err := w.interpret(p, 3); err != nil || got != w.want(args) {
				t.Errorf("got %#x, %v; want %#x", got, err, w.want(args))
			}
		})
	}
}

func TestMisuse(t *testing.T) {
	for _, tt := range []struct {
		args []prologue.Arg
		o    prologue.Options
		want error
	}{
		{make([]prologue.Arg, 4), prologue.Options{Arch: amd64, Convention: prologue.ConventionRegisters}, prologue.ErrTooManyArgs},
		{nil, prologue.Options{}, prologue.ErrNoArch},
		{nil, prologue.Options{Arch: amd64, Reads: 6}, prologue.ErrBadReads},
	} {
		if p, err := prologue.Emit(tt.args, tt.o); !errors.Is(err, tt.want) || p != nil {
			t.Errorf("got %v, %v; want %v", p, err, tt.want)
		}
	}
}

// TestEncoding: a key is the code that the asm package makes of the instructions,
// with the addresses marked.
func TestEncoding(t *testing.T) {
	encode := func(p *prologue.Prologue) []byte {
		var b bytes.Buffer
		if err := p.Insns.Marshal(&b, binary.LittleEndian); err != nil {
			t.Fatal(err)
		}
		code := b.Bytes()
		at, addrs := 0, p.Addrs
		for i := range p.Insns {
			if len(addrs) > 0 && addrs[0] == i {
				code[at+1] |= 0xf0
				addrs = addrs[1:]
			}
			at += int(p.Insns[i].Width().Bytes())
		}
		return code
	}
	rng := rand.New(rand.NewPCG(11, 12))
	var e prologue.Emitter
	for range 20000 {
		s := source{randomBytes(rng, 600)}
		args := s.args()
		if len(args) > 0 && rng.IntN(4) == 0 {
			args[0].Loc = inMem(image(rng.Uint64()))
		}
		o := prologue.Options{Arch: amd64, BigEndian: rng.IntN(2) == 0, Reads: prologue.Reads(rng.IntN(5)), SignExtends: rng.IntN(2) == 0, Frame: []uint16{5}}
		p, err := prologue.Emit(args, o)
		if err != nil {
			t.Fatal(err)
		}
		if want := encode(p); p.Key() != string(want) {
			t.Fatalf("key\n% x, want\n% x\n%v", p.Key(), want, p)
		}
		// An emitter that has written others before writes the same.
		if err := e.Emit(args, &o); err != nil {
			t.Fatal(err)
		}
		if string(e.Key) != p.Key() || e.Insns != len(p.Insns) || e.Helpers != p.Helpers || !slices.Equal(e.Reasons, p.Reasons) {
			t.Fatalf("the emitter wrote another prologue:\n% x, want\n% x\n%v\n%v", e.Key, p.Key(), e.Reasons, p)
		}
	}
}

// TestEmitterAllocates: nothing is left to collect in the frequent cases.
func TestEmitterAllocates(t *testing.T) {
	var e prologue.Emitter
	o := prologue.Options{Arch: amd64}
	args := []prologue.Arg{arg(inReg(0), 4), arg(inMem(plus(reg(7), 8)), 8), {Name: "x"}}
	if n := testing.AllocsPerRun(100, func() {
		if err := e.Emit(args, &o); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestKey(t *testing.T) {
	emit := func(site string, args ...prologue.Arg) *prologue.Prologue {
		p, err := prologue.Emit(args, prologue.Options{Arch: amd64, Site: site})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	same := emit("f+1", arg(inReg(0), 8)).Key()
	if emit("g+2", prologue.Arg{Name: "other", Loc: inReg(0), Size: 8}).Key() != same {
		t.Error("a comment changes the key")
	}
	different := map[string]*prologue.Prologue{
		"register": emit("", arg(inReg(1), 8)),
		"size":     emit("", arg(inReg(0), 4)),
		"constant": emit("", arg(isConst(1<<40), 8)),
		"address":  emit("", arg(isValue(image(1<<40)), 8)),
		"other":    emit("", arg(isValue(image(1<<41)), 8)),
		"err":      emit("", prologue.Arg{Name: "a"}),
	}
	seen := map[string]string{same: "first"}
	for name, p := range different {
		if with, ok := seen[p.Key()]; ok {
			t.Errorf("%s has the key of %s", name, with)
		}
		seen[p.Key()] = name
	}
}

func TestSlid(t *testing.T) {
	args := []prologue.Arg{arg(inMem(image(0x1000)), 8), arg(isConst(1<<40), 8), arg(isValue(plus(image(0x2000), 8)), 8)}
	p, err := prologue.Emit(args, prologue.Options{Arch: amd64})
	if err != nil {
		t.Fatal(err)
	}
	before := p.String()
	moved := p.Slid(1<<64 - 0x800)
	var got []int64
	for _, i := range p.Addrs {
		got = append(got, moved[i].Constant)
	}
	if want := []int64{0x800, 0x1808}; !slices.Equal(got, want) {
		t.Errorf("addresses %#x, want %#x", got, want)
	}
	if p.String() != before {
		t.Error("the prologue itself was changed")
	}
}

// TestVerifier has the kernel verify a prologue with all comments, which become
// line information.
func TestVerifier(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	args := []prologue.Arg{arg(inReg(0), 8), arg(inMem(plus(reg(7), 8)), 3), {Name: "x"}}
	for n := range len(args) + 1 {
		p, err := prologue.Emit(args[len(args)-n:], prologue.Options{Arch: amd64, Site: "get_page inlined in vdso_fault+93"})
		if err != nil {
			t.Fatal(err)
		}
		if err := bpfexec.Verify(bpfexec.Code{Insns: p.Insns, Args: n}); err != nil {
			t.Errorf("%v\n%v", err, p)
		}
	}
}

// BenchmarkEmit measures the frequent cases: to load, and to compare.
func BenchmarkEmit(b *testing.B) {
	r, m := arg(inReg(0), 8), arg(inMem(plus(reg(7), 8)), 4)
	for _, bb := range []struct {
		name string
		args []prologue.Arg
	}{
		{"register", []prologue.Arg{r}},
		{"registers", []prologue.Arg{r, arg(inReg(1), 4), arg(inReg(2), 1)}},
		{"memory", []prologue.Arg{m}},
		{"neighbours", []prologue.Arg{m, r, arg(inMem(plus(reg(7), 16)), 8)}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := prologue.Emit(bb.args, prologue.Options{Arch: amd64, Site: "f+1"}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(bb.name+"/again", func(b *testing.B) {
			b.ReportAllocs()
			var e prologue.Emitter
			o := prologue.Options{Arch: amd64}
			for b.Loop() {
				if err := e.Emit(bb.args, &o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
