package prologue_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/prologue"
)

func str(l location, bound int) prologue.Arg {
	return prologue.Arg{Name: "s", Kind: prologue.KindString, Loc: l, MaxBytes: bound}
}

func slice(l, length location, size, room int) prologue.Arg {
	return prologue.Arg{Name: "n", Kind: prologue.KindSlice, Loc: l, Length: length, Size: size, MaxBytes: room}
}

func counted(l, length location, bound int) prologue.Arg {
	a := str(l, bound)
	a.Length = length
	return a
}

func object(l location, size int) prologue.Arg {
	return prologue.Arg{Name: "o", Kind: prologue.KindObject, Loc: l, Size: size}
}

// TestRecordInstructions pins the instructions of the frequent cases.
func TestRecordInstructions(t *testing.T) {
	const end = `r1 = r6
r3 = r10
`
	user := func(a prologue.Arg) prologue.Arg { a.User = true; return a }
	tests := []struct {
		name string
		args []prologue.Arg
		o    prologue.Options
		want string
	}{
		{"none", nil, prologue.Options{}, `r2 = 0
r3 = r10`},
		{"registers", []prologue.Arg{arg(inReg(5), 8), signed(inReg(4), 4), arg(isConst(7), 4)}, prologue.Options{}, `r0 = *(u64 *)(r1 +112)
*(u64 *)(r10 -24) = r0
r0 = *(u64 *)(r1 +104)
r0 <<= 32
r0 s>>= 32
*(u64 *)(r10 -16) = r0
*(u64 *)(r10 -8) = 7
r2 = 0
r3 = r10
r3 += -24`},
		{"memory", []prologue.Arg{arg(inMem(reg(5)), 8), arg(inMem(reg(4)), 4)}, prologue.Options{}, `r6 = r1
r3 = *(u64 *)(r6 +112)
r1 = r10
r1 += -16
r2 = 8
call bpf_probe_read_kernel
r0 >>= 63
r9 = r0
r3 = *(u64 *)(r6 +104)
*(u64 *)(r10 -8) = 0
r1 = r10
r1 += -8
r2 = 4
call bpf_probe_read_kernel
r0 >>= 63
r0 <<= 1
r9 |= r0
r2 = r9
` + end + `r3 += -16`},
		{"a bit-field", []prologue.Arg{arg(isValue(bin(ops.And, bin(ops.Shr, mem(reg(5), 1), num(3)), num(7))), 1)}, prologue.Options{}, `r6 = r1
r3 = *(u64 *)(r6 +112)
r1 = r10
r1 += -8
r2 = 1
call bpf_probe_read_kernel
r0 >>= 63
r9 = r0
r0 = *(u8 *)(r10 -8)
r0 >>= 3
r0 &= 7
*(u64 *)(r10 -8) = r0
r2 = r9
` + end + `r3 += -8`},
		{"an object", []prologue.Arg{object(inMem(plus(reg(7), 8)), 12)}, prologue.Options{}, `r6 = r1
*(u64 *)(r10 -8) = 0
r3 = *(u64 *)(r6 +152)
r3 += 8
r1 = r10
r1 += -16
r2 = 12
call bpf_probe_read_kernel
r0 >>= 63
r9 = r0
r2 = r9
` + end + `r3 += -16`},
		{"a structure in registers", []prologue.Arg{object(pieces(piece(8, inReg(0)), piece(4, inReg(1))), 12)}, prologue.Options{}, `r0 = *(u64 *)(r1 +80)
*(u64 *)(r10 -16) = r0
r0 = *(u32 *)(r1 +96)
*(u64 *)(r10 -8) = r0
r2 = 0
r3 = r10
r3 += -16`},
		{"a string in user memory at a pointer on the stack", []prologue.Arg{{Kind: prologue.KindUserString, Name: "s", Loc: inMem(mem(plus(reg(7), 8), 8)), MaxBytes: 16}}, prologue.Options{}, `r6 = r1
*(u64 *)(r10 -16) = 0
*(u64 *)(r10 -8) = 0
r3 = *(u64 *)(r6 +152)
r3 += 8
r1 = r10
r1 += -24
r2 = 8
call bpf_probe_read_kernel
if r0 != 0 goto pc+5
r3 = *(u64 *)(r10 -24)
r1 = r10
r1 += -16
r2 = 16
call bpf_probe_read_user_str
r0 >>= 63
r9 = r0
r2 = r9
` + end + `r3 += -16`},
		{"all of it in user memory", []prologue.Arg{user(str(inMem(mem(reg(5), 8)), 8))}, prologue.Options{}, `r6 = r1
*(u64 *)(r10 -8) = 0
r3 = *(u64 *)(r6 +112)
r1 = r10
r1 += -16
r2 = 8
call bpf_probe_read_user
if r0 != 0 goto pc+5
r3 = *(u64 *)(r10 -16)
r1 = r10
r1 += -8
r2 = 8
call bpf_probe_read_user_str
r0 >>= 63
r9 = r0
r2 = r9
` + end + `r3 += -8`},
		{"an array of characters, for an old kernel", []prologue.Arg{{Kind: prologue.KindString, Name: "s", Loc: inMem(reg(5)), Size: 4, MaxBytes: 8}}, prologue.Options{Reads: prologue.ReadLegacy}, `r6 = r1
*(u64 *)(r10 -8) = 0
r3 = *(u64 *)(r6 +112)
r1 = r10
r1 += -8
r2 = 5
call bpf_probe_read_str
r0 >>= 63
r9 = r0
r2 = r9
` + end + `r3 += -8`},
		{"a known string", []prologue.Arg{str(known('h', 'i', 0, 'x'), 8)}, prologue.Options{}, `*(u64 *)(r10 -8) = 26984
r2 = 0
r3 = r10
r3 += -8`},
		{"the task's name, and what is missing", []prologue.Arg{{Name: "o", Kind: prologue.KindObject, Size: 10}, {Name: "c", Kind: prologue.KindComm}}, prologue.Options{}, `r6 = r1
*(u64 *)(r10 -32) = 0
*(u64 *)(r10 -24) = 0
r1 = r10
r1 += -16
r2 = 16
call bpf_get_current_comm
r0 >>= 63
r0 <<= 1
r9 = r0
r2 = r9
r2 |= 1
` + end + `r3 += -32`},
		{"neighbours on the stack, in place", []prologue.Arg{arg(inMem(plus(reg(7), 8)), 8), arg(inMem(plus(reg(7), 16)), 8)}, prologue.Options{}, `r6 = r1
r3 = *(u64 *)(r6 +152)
r3 += 8
r1 = r10
r1 += -16
r2 = 16
call bpf_probe_read_kernel
r0 >>= 63
r0 *= 3
r9 = r0
r2 = r9
` + end + `r3 += -16`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.o.Convention = prologue.ConventionRecord
			if tt.o.Arch == nil {
				tt.o.Arch = amd64
			}
			p, err := prologue.Emit(tt.args, tt.o)
			if err != nil {
				t.Fatal(err)
			}
			if got := instructions(p); got != strings.TrimSpace(tt.want) {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			check(t, imaginary(false), tt.args, tt.o)
		})
	}
}

// recordCases are records of strings, objects and scalars, with one or the other
// that cannot be read.
func recordCases(w *world) (cases []execCase) {
	text := inMem(plus(reg(5), 100))
	good := []prologue.Arg{
		arg(inReg(0), 8), signed(inMem(plus(reg(7), 8)), 4), str(text, 16), object(inMem(plus(reg(5), 40)), 21),
		{Name: "c", Kind: prologue.KindComm}, arg(inMem(plus(mem(plus(reg(5), ptrOff), 8), 3)), 2),
		{Name: "u", Kind: prologue.KindUserString, Loc: inMem(mem(plus(reg(5), ptrOff), 8)), MaxBytes: 30},
		object(pieces(piece(8, inReg(3)), piece(3, known(1, 2, 3)), piece(8, inMem(reg(5)))), 17),
		str(known('a', 'b', 'c', 0, 'd', 'e', 'f', 'g', 'h', 'i'), 9),
		{Name: "f", Kind: prologue.KindString, Loc: inMem(plus(reg(5), 4096-7)), Size: 6, MaxBytes: 16},
	}
	good = append(good, slice(text, isConst(2), 3, 16), slice(text, isConst(6), 3, 16), slice(inMem(num(0)), isConst(0), 8, 8),
		counted(text, isConst(5), 16), counted(text, isConst(15), 16), counted(text, isConst(16), 16),
		counted(inMem(num(0)), isConst(0), 16), counted(text, isValue(bin(ops.And, mem(reg(5), 8), num(7))), 24))
	cases = append(cases, execCase{name: "good", args: good})
	bad := inMem(plus(reg(4), 16))
	zero := bin(ops.Sub, reg(0), reg(0))
	failing := []struct {
		name string
		arg  prologue.Arg
	}{
		{"scalar", arg(bad, 4)},
		{"bit-field", arg(isValue(bin(ops.Shr, mem(plus(reg(4), 16), 8), num(5))), 8)},
		{"not a bit-field", arg(isValue(plus(mem(plus(reg(4), 16), 8), 5)), 8)},
		{"chain, first link", arg(inMem(plus(mem(mem(reg(4), 8), 8), 8)), 4)},
		{"chain, second link", arg(inMem(mem(bin(ops.Sub, mem(plus(reg(5), ptrOff), 8), num(1<<30)), 8)), 4)},
		{"chain, last link", arg(inMem(bin(ops.Sub, mem(plus(reg(5), ptrOff), 8), num(1<<30))), 4)},
		{"chain of a string, first link", str(inMem(mem(reg(4), 8)), 24)},
		{"chain of a string, last link", str(inMem(bin(ops.Sub, mem(plus(reg(5), ptrOff), 8), num(1<<30))), 24)},
		{"string", str(bad, 24)},
		{"slice", slice(bad, isConst(5), 4, 24)},
		{"slice, bad length", slice(text, bad, 4, 24)},
		{"slice, bad link", slice(inMem(mem(plus(reg(4), 16), 8)), inMem(reg(5)), 1, 24)},
		{"slice, divided", slice(text, isValue(bin(ops.UDiv, reg(0), zero)), 8, 24)},
		{"counted string", counted(bad, isConst(5), 24)},
		{"counted string, bad length", counted(text, bad, 24)},
		{"counted string, bad link", counted(inMem(mem(plus(reg(4), 16), 8)), inMem(reg(5)), 24)},
		{"counted string, divided", counted(text, isValue(bin(ops.UDiv, reg(0), zero)), 24)},
		{"string across the end", str(inMem(plus(reg(5), 4096-4)), 24)},
		{"string at 0", str(inMem(num(0)), 24)},
		{"string, narrow link", str(inMem(bin(ops.Add, reg(5), mem(plus(reg(4), 8), 2))), 24)},
		{"string, divided", str(inMem(bin(ops.Add, reg(5), bin(ops.UDiv, reg(0), zero))), 24)},
		{"string, divided and read", str(inMem(bin(ops.Add, mem(plus(reg(4), 8), 8), bin(ops.UDiv, reg(0), reg(1)))), 24)},
		{"object", object(bad, 20)},
		{"object across the end", object(inMem(plus(reg(5), 4096-9)), 20)},
		{"chain of an object", object(inMem(plus(mem(plus(reg(4), 8), 8), 4)), 20)},
		{"object, divided", object(inMem(bin(ops.Add, reg(5), bin(ops.UMod, reg(0), zero))), 16)},
		{"pieces", object(pieces(piece(8, inReg(0)), piece(8, inMem(reg(5))), piece(4, bad)), 20)},
		{"pieces, first one", object(pieces(piece(4, bad), piece(8, inReg(0)), piece(8, inMem(reg(5)))), 20)},
		{"missing", object(location{}, 9)},
		{"missing string", str(location{}, 9)},
		{"too large", object(inMem(reg(5)), prologue.MaxObject+1)},
		{"a string that is not in memory", str(inReg(0), 9)},
	}
	for _, f := range failing {
		cases = append(cases, execCase{name: f.name, args: []prologue.Arg{f.arg}})
		for i := range good {
			args := slices.Clone(good)
			args[i] = f.arg
			cases = append(cases, execCase{name: fmt.Sprint(f.name, " as argument ", i), args: args})
		}
		cases = append(cases, execCase{name: f.name + ", twice", args: []prologue.Arg{f.arg, good[1], f.arg, good[2]}})
	}
	// Strings of all lengths, cut and not, up to the end of the page.
	for bound := 1; bound <= 24; bound++ {
		for _, at := range []int64{100, 4096 - 24} {
			cases = append(cases, execCase{fmt.Sprint("a bound of ", bound), []prologue.Arg{str(inMem(plus(reg(5), at)), bound), arg(inReg(0), 8)}, nil})
		}
	}
	for size := 1; size <= 24; size++ {
		cases = append(cases,
			execCase{fmt.Sprintf("%d bytes", size), []prologue.Arg{object(inMem(plus(reg(5), 3)), size), object(known(w.mem[:24]...), size)}, nil},
			execCase{fmt.Sprintf("an array of %d", size), []prologue.Arg{{Kind: prologue.KindString, Name: "s", Loc: inMem(plus(reg(5), 200)), Size: size, MaxBytes: 16}}, nil})
		if size <= 8 {
			cases = append(cases, execCase{fmt.Sprintf("%d bytes of a register", size), []prologue.Arg{object(inReg(0), size), object(isConst(0x8877665544332211), size), object(isValue(plus(reg(1), 1)), size)}, nil})
		}
	}
	return cases
}

// many is as many scalars as a record can have on the stack, so that err has high bits.
func many(l func(i int) location) []prologue.Arg {
	args := make([]prologue.Arg, 50)
	for i := range args {
		args[i] = prologue.Arg{Name: fmt.Sprint("a", i), Loc: l(i), Size: 1 + i%8, Signed: i%2 == 0}
	}
	return args
}

func manyCases(*world) []execCase {
	bad, divided := inMem(plus(reg(4), 16)), isValue(bin(ops.UDiv, reg(0), bin(ops.Sub, reg(1), reg(1))))
	pick := func(every int, yes, no location) func(i int) location {
		return func(i int) location {
			if i%every == 0 {
				return yes
			}
			return no
		}
	}
	return []execCase{
		{"none located", many(func(int) location { return location{} }), nil},
		{"registers", many(func(i int) location { return inReg(general[i%len(general)]) }), nil},
		{"neighbours", many(func(i int) location { return inMem(plus(reg(5), int64(8*i))) }), nil},
		{"neighbours, two kinds", many(func(i int) location { return inMem(plus(reg(uint64(5+i%2*2)), int64(8*i))) }), nil},
		{"neighbours across the end", many(func(i int) location { return inMem(plus(reg(5), 4096-200+int64(8*i))) }), nil},
		{"one between two that another one is read with", []prologue.Arg{
			arg(inMem(plus(reg(7), 8)), 8), arg(inMem(reg(5)), 8), arg(inMem(plus(reg(7), 16)), 8), arg(inMem(plus(reg(5), 16)), 8),
		}, nil},
		{"bad ones", many(pick(3, bad, inReg(0))), nil},
		{"divisions", many(pick(7, divided, inMem(reg(5)))), nil},
		{"missing ones", many(pick(5, location{}, bad)), nil},
	}
}

// TestRecord runs records of everything in the interpreter and in the kernel.
func TestRecord(t *testing.T) {
	for _, be := range []bool{false, true} {
		w := imaginary(be)
		w.mem[100+9], w.mem[100+17] = 0, 0
		for _, c := range append(recordCases(w), manyCases(w)...) {
			for _, w.reads = range []prologue.Reads{prologue.ReadKernel, prologue.ReadCast} {
				check(t, w, c.args, w.options(prologue.ConventionRecord))
			}
			if t.Failed() {
				t.Fatalf("%s, big-endian %v", c.name, be)
			}
		}
	}
	inKernel(t, func(t *testing.T, w *world) {
		w.mem[100+9], w.mem[100+17] = 0, 0
		executeAll(t, w, prologue.ConventionRecord, append(recordCases(w), manyCases(w)...))
		rng := rand.New(rand.NewPCG(15, 16))
		cases := make([]execCase, 1500)
		for i := range cases {
			s := source{randomBytes(rng, 3000)}
			cases[i] = execCase{name: fmt.Sprint("random ", i), args: s.recordArgs()}
		}
		executeAll(t, w, prologue.ConventionRecord, cases)
	})
}

// TestChainStops: after a link that faults nothing is read any more.
func TestChainStops(t *testing.T) {
	w := imaginary(false)
	var calls []bool
	w.helper = func(_ asm.BuiltinFunc, ok bool) { calls = append(calls, ok) }
	chain := inMem(mem(mem(mem(reg(4), 8), 8), 8))
	for _, tt := range []struct {
		args []prologue.Arg
		want []bool
	}{
		{[]prologue.Arg{arg(chain, 8), arg(inMem(reg(5)), 8)}, []bool{false, true}},
		{[]prologue.Arg{str(chain, 8), object(chain, 8), arg(inMem(reg(5)), 8)}, []bool{false, false, true}},
		{[]prologue.Arg{object(pieces(piece(8, chain), piece(8, inMem(reg(5)))), 16)}, []bool{false}},
	} {
		calls = nil
		check(t, w, tt.args, prologue.Options{Arch: amd64, Convention: prologue.ConventionRecord})
		if !slices.Equal(calls, tt.want) {
			t.Errorf("reads that succeed: %v, want %v", calls, tt.want)
		}
	}
}

// TestUserReads: an argument's reads are of user memory or not, and no two that
// differ are joined.
func TestUserReads(t *testing.T) {
	var calls []asm.BuiltinFunc
	w := imaginary(false)
	w.helper = func(f asm.BuiltinFunc, _ bool) { calls = append(calls, f) }
	args := []prologue.Arg{
		{Name: "k", Loc: inMem(plus(reg(7), 8)), Size: 8},
		{Name: "u", Loc: inMem(plus(reg(7), 16)), Size: 8, User: true},
		{Name: "l", Loc: inMem(plus(reg(7), 24)), Size: 8},
	}
	for _, tt := range []struct {
		o    prologue.Options
		want []asm.BuiltinFunc
	}{
		{prologue.Options{}, []asm.BuiltinFunc{asm.FnProbeReadKernel, asm.FnProbeReadUser}},
		{prologue.Options{Convention: prologue.ConventionRecord}, []asm.BuiltinFunc{asm.FnProbeReadKernel, asm.FnProbeReadUser}},
		{prologue.Options{Reads: prologue.ReadCast}, []asm.BuiltinFunc{asm.FnProbeReadUser}},
		{prologue.Options{Reads: prologue.ReadLegacy}, []asm.BuiltinFunc{asm.FnProbeRead}},
	} {
		calls = nil
		tt.o.Arch = amd64
		check(t, w, args, tt.o)
		if !slices.Equal(calls, tt.want) {
			t.Errorf("%+v: helpers %v, want %v", tt.o, calls, tt.want)
		}
	}
}

// TestRecordErrors: what does not fit is an error that says by how much.
func TestRecordErrors(t *testing.T) {
	o := prologue.Options{Arch: amd64, Convention: prologue.ConventionRecord}
	chain := inMem(mem(reg(5), 8))
	_, err := prologue.Emit([]prologue.Arg{str(chain, 200), object(chain, 300)}, o)
	want := "the record needs 504 bytes of stack, the prologue 8, the program 0: together, in frames of whole 32 bytes, 544, 32 more than 512; " +
		"shorten strings or fetch fewer arguments"
	var full *prologue.StackError
	if !errors.As(err, &full) || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	p, err := prologue.Emit([]prologue.Arg{str(chain, 200), object(chain, 272)}, o)
	if err != nil || p.Stack != 480 {
		t.Fatalf("%v, %v", p, err)
	}
	if err := p.CheckStack(32); err != nil {
		t.Error(err)
	}
	if err := p.CheckStack(33); err == nil {
		t.Error("a program of 33 bytes of stack fits")
	}
	if _, err := prologue.Emit(make([]prologue.Arg, prologue.MaxRecordArgs+1), o); !errors.Is(err, prologue.ErrTooManyArgs) {
		t.Error(err)
	}
	if _, err := prologue.Emit([]prologue.Arg{{Kind: 99}}, o); !errors.Is(err, prologue.ErrBadKind) {
		t.Error(err)
	}
	// In registers strings and objects have a reason.
	p, err = prologue.Emit([]prologue.Arg{str(chain, 8), object(chain, 8), {Kind: prologue.KindComm}}, prologue.Options{Arch: amd64, Convention: prologue.ConventionRegisters})
	if err != nil || len(p.Reasons) != 3 {
		t.Fatalf("%v, %v", p, err)
	}
	for i, r := range p.Reasons {
		if r.Code != reasons.TooLarge {
			t.Errorf("argument %d: %v", i, r)
		}
	}
}

// TestRecordKeys: equal code of different conventions and layouts has different keys.
func TestRecordKeys(t *testing.T) {
	keys := make(map[string]string)
	for name, args := range map[string][]prologue.Arg{
		"object, scalar": {object(location{}, 16), arg(location{}, 8)},
		"scalar, object": {arg(location{}, 8), object(location{}, 16)},
		"none":           {},
	} {
		for _, c := range []prologue.Convention{prologue.ConventionRegisters, prologue.ConventionRecord} {
			p, err := prologue.Emit(args, prologue.Options{Arch: amd64, Convention: c})
			if err != nil {
				t.Fatal(err)
			}
			if old, dup := keys[p.Key()]; dup && c == prologue.ConventionRecord {
				t.Errorf("%s has the key of %s", name, old)
			}
			keys[p.Key()] = name
		}
	}
}

// TestVerifierPaths: the verifier goes once through a program that asks for err, however
// many arguments were fetched before, and however they may fault.
func TestVerifierPaths(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	at := func(i int) *expr { return plus(reg(5), int64(100*i)) }
	for name, kind := range map[string]func(i int) prologue.Arg{
		"reads":        func(i int) prologue.Arg { return arg(inMem(at(i)), 4) },
		"chains":       func(i int) prologue.Arg { return arg(inMem(mem(at(i), 8)), 8) },
		"bit-fields":   func(i int) prologue.Arg { return arg(isValue(bin(ops.Shr, mem(at(i), 8), num(7))), 8) },
		"computations": func(i int) prologue.Arg { return arg(isValue(plus(mem(mem(at(i), 8), 8), 5)), 8) },
		"divisions":    func(i int) prologue.Arg { return arg(isValue(bin(ops.UDiv, reg(0), reg(uint64(i%4)))), 8) },
		"neighbours":   func(i int) prologue.Arg { return arg(inMem(plus(reg(uint64(8+i/2%4)), int64(200*(i/8)+i*8))), 8) },
		"strings":      func(i int) prologue.Arg { return str(inMem(mem(at(i), 8)), 8) },
		"divided strings": func(i int) prologue.Arg {
			return str(inMem(bin(ops.Add, mem(at(i), 8), bin(ops.UDiv, reg(0), reg(1)))), 8)
		},
		"objects": func(i int) prologue.Arg { return object(inMem(mem(at(i), 8)), 7) },
		"pieces":  func(i int) prologue.Arg { return object(pieces(piece(4, inMem(at(i))), piece(3, inReg(0))), 7) },
	} {
		args := make([]prologue.Arg, 30)
		for i := range args {
			args[i] = kind(i)
		}
		p, err := prologue.Emit(doubted(args), prologue.Options{Arch: amd64, Convention: prologue.ConventionRecord, Doubts: true})
		if err != nil {
			t.Fatal(err)
		}
		insns := slices.Clone(p.Insns)
		for i := range insns {
			insns[i].Metadata = asm.Metadata{}
		}
		insns = append(insns,
			asm.Mov.Imm(asm.R0, 0),
			asm.JNE.Imm(asm.R2, 0, "out"),
			asm.LoadMem(asm.R0, asm.R3, 8, asm.DWord),
			asm.Return().WithSymbol("out"))
		prog, err := ebpf.NewProgramWithOptions(&ebpf.ProgramSpec{Type: ebpf.Kprobe, License: "GPL", Instructions: insns}, ebpf.ProgramOptions{LogLevel: ebpf.LogLevelStats})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var processed int
		_, rest, _ := strings.Cut(prog.VerifierLog, "processed ")
		if _, err := fmt.Sscan(rest, &processed); err != nil || processed > 3*len(insns) {
			t.Errorf("%s: the verifier processed %d of %d instructions (%v)", name, processed, len(insns), err)
		}
		if err := bpfexec.Close(prog); err != nil {
			t.Error(err)
		}
	}
}
