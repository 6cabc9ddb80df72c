package prologue_test

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/proof/exprtest"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// execCase is arguments to fetch. What they must be is computed by definition;
// want says it once more by hand, where a test is about that.
type execCase struct {
	name string
	args []prologue.Arg
	want *bpfexec.Result
}

// value is an expression as the only argument, 8 bytes wide.
func value(e *expr) []prologue.Arg {
	return []prologue.Arg{{Name: "v", Loc: isValue(e), Size: 8}}
}

func result(err uint64, values ...uint64) *bpfexec.Result {
	r := &bpfexec.Result{Err: err}
	copy(r.Values[:], values)
	return r
}

// executeAll runs cases in the kernel, as many at once as can be.
func executeAll(t *testing.T, w *world, convention prologue.Convention, cases []execCase) {
	t.Helper()
	executeWith(t, w, convention, cases)
	w.doubts = true
	defer func() { w.doubts = false }()
	cases = slices.Clone(cases)
	for i := range cases {
		cases[i].args = doubted(cases[i].args)
	}
	executeWith(t, w, convention, cases)
}

func executeWith(t *testing.T, w *world, convention prologue.Convention, cases []execCase) {
	t.Helper()
	for len(cases) > 0 {
		size, n := 0, 0
		for n < len(cases) && size < 25000 {
			size += 8 + max(24, prologue.NewLayout(cases[n].args, w.doubts).Size)
			n++
		}
		executeBatch(t, w, convention, cases[:n])
		cases = cases[n:]
	}
}

// execute runs cases in the interpreter, on both byte orders, and in the kernel: in
// both conventions, with the same results.
func execute(t *testing.T, cases func(w *world) []execCase) {
	t.Helper()
	for _, be := range []bool{false, true} {
		t.Run(fmt.Sprintf("interpreter/be=%v", be), func(t *testing.T) {
			w := imaginary(be)
			for _, c := range cases(w) {
				for _, w.reads = range []prologue.Reads{prologue.ReadKernel, prologue.ReadCast, prologue.ReadSleep} {
					p := check(t, w, c.args, w.options(prologue.ConventionRegisters))
					if want := w.want(c.args); c.want != nil && want != *c.want {
						t.Errorf("%s: the definition gives %#x, want %#x\n%v", c.name, want, *c.want, p)
					}
					check(t, w, c.args, w.options(prologue.ConventionRecord))
				}
			}
		})
	}
	inKernel(t, func(t *testing.T, w *world) {
		cases := cases(w)
		executeAll(t, w, prologue.ConventionRegisters, cases)
		executeAll(t, w, prologue.ConventionRecord, cases)
	})
}

// allInKernel returns cases without arguments in user memory.
func allInKernel(cases []execCase) []execCase {
	out := slices.Clone(cases)
	for i := range out {
		out[i].args = slices.Clone(out[i].args)
		for j := range out[i].args {
			a := &out[i].args[j]
			if a.User = false; a.Kind == prologue.KindUserString {
				a.Kind = prologue.KindString
			}
		}
	}
	return out
}

func executeBatch(t *testing.T, w *world, convention prologue.Convention, cases []execCase) {
	t.Helper()
	codes, o := make([]bpfexec.Code, len(cases)), w.options(convention)
	if w.reads == prologue.ReadCast {
		cases = allInKernel(cases)
	}
	for i, c := range cases {
		p, err := prologue.Emit(c.args, o)
		if err != nil {
			t.Fatal(err)
		}
		codes[i] = bpfexec.CodeOf(p, len(c.args))
	}
	prog, err := bpfexec.Load(codes...)
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	got, err := prog.Run(bpfexec.State{Regs: w.ptRegs()})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		if want := w.wantBy(&o, c.args); got[i] != want {
			t.Errorf("%s: the kernel gives %#x, want %#x\n%v", c.name, got[i], want, codes[i].Insns)
		}
	}
}

// TestOps runs every operation: with operands at which sign, width and overflow
// show, both in registers, and one or the other constant. The expected results do not come
// from the code that folds constants, which the emitter uses too.
func TestOps(t *testing.T) {
	operands := []uint64{
		0, 1, 2, 7, 63, 64, 65, 1 << 31, 1<<31 - 1, 1<<32 - 1, 1 << 32, math.MaxInt64, 1 << 63,
		1<<64 - 1, 1<<64 - 7, 1<<64 - 1<<31, 1<<64 - 1<<31 - 1, 0x1234567890abcdef,
	}
	// A register of the world plus a constant that makes it a given number, which
	// cannot be folded.
	hidden := func(w *world, r, v uint64) *expr { return bin(ops.Xor, reg(r), num(w.regs[r]^v)) }
	execute(t, func(w *world) (cases []execCase) {
		for op := ops.Add; op < ops.Select; op++ {
			for _, a := range operands {
				for _, b := range operands {
					want := result(1)
					if v, ok := exprtest.Operate(op, a, b); ok {
						want = result(0, v)
					}
					add := func(how string, x, y *expr) {
						cases = append(cases, execCase{
							name: fmt.Sprintf("op %d, %s: %#x, %#x", op, how, a, b),
							args: value(bin(op, x, y)),
							want: want,
						})
					}
					add("registers", hidden(w, 0, a), hidden(w, 1, b))
					add("constant right", hidden(w, 0, a), num(b))
					add("constant left", num(a), hidden(w, 1, b))
					add("constants", num(a), num(b))
				}
			}
		}
		for _, a := range operands {
			cases = append(cases,
				execCase{fmt.Sprintf("neg %#x", a), value(&expr{Op: ops.Neg, A: hidden(w, 0, a)}), result(0, -a)},
				execCase{fmt.Sprintf("not %#x", a), value(&expr{Op: ops.Not, A: hidden(w, 0, a)}), result(0, ^a)},
				execCase{fmt.Sprintf("clz %#x", a), value(&expr{Op: ops.Clz, A: hidden(w, 0, a)}), result(0, uint64(bits.LeadingZeros64(a)))},
				execCase{fmt.Sprintf("select %#x", a), value(sel(hidden(w, 0, a), num(3), num(4))), nil},
			)
		}
		return cases
	})
}

// TestCaller: each number of arms, with an address for each arm, and some that none is for: between them, before and behind.
func TestCaller(t *testing.T) {
	execute(t, func(w *world) (cases []execCase) {
		for n := 1; n <= 9; n++ {
			for at := uint64(0); at < uint64(10*n+10); at += 5 {
				var arms []*expr
				for i := range n {
					v := num(uint64(100 + i))
					switch i % 3 {
					case 1:
						v = reg(1) // one value for several callers
					case 2:
						v = mem(reg(5), 8)
					}
					arms = append(arms, &expr{Op: ops.Arm, K: uint64(10 * i), A: v})
				}
				var want *bpfexec.Result // by the expression
				if at%10 != 0 || at >= uint64(10*n) {
					want = result(1)
				}
				e := callerOf(bin(ops.Xor, reg(0), num(w.regs[0]^at)), arms...)
				cases = append(cases, execCase{fmt.Sprintf("%d of %d callers", at, n), value(e), want})
			}
		}
		return cases
	})
}

// TestSigns states results of signed operations outright.
func TestSigns(t *testing.T) {
	s := func(v int64) uint64 { return uint64(v) }
	tests := []struct {
		op         loc.Op
		a, b, want int64
	}{
		{ops.Div, 7, 2, 3}, {ops.Div, -7, 2, -3}, {ops.Div, 7, -2, -3}, {ops.Div, -7, -2, 3},
		{ops.Div, math.MinInt64, -1, math.MinInt64}, {ops.Div, math.MinInt64, 1, math.MinInt64},
		{ops.Div, math.MinInt64, math.MinInt64, 1}, {ops.Div, 5, math.MinInt32, 0},
		{ops.Mod, 7, 2, 1}, {ops.Mod, -7, 2, -1}, {ops.Mod, 7, -2, 1}, {ops.Mod, -7, -2, -1},
		{ops.Mod, math.MinInt64, -1, 0},
		{ops.UDiv, -1, 2, math.MaxInt64}, {ops.UMod, -1, 16, 15},
		{ops.Shra, -8, 1, -4}, {ops.Shra, -8, 64, -1}, {ops.Shra, 8, 200, 0}, {ops.Shra, -8, -1, -1},
		{ops.Shr, -1, 60, 15}, {ops.Shr, -1, 64, 0}, {ops.Shl, 1, 64, 0}, {ops.Shl, 1, 63, math.MinInt64},
		{ops.Lt, -1, 0, 1}, {ops.ULt, -1, 0, 0}, {ops.Ge, math.MinInt64, math.MaxInt64, 0},
		{ops.UGe, math.MinInt64, math.MaxInt64, 1}, {ops.Le, 3, 3, 1}, {ops.Gt, 3, 3, 0},
	}
	execute(t, func(w *world) (cases []execCase) {
		for _, tt := range tests {
			a := bin(ops.Xor, reg(0), num(w.regs[0]^s(tt.a)))
			b := bin(ops.Xor, reg(1), num(w.regs[1]^s(tt.b)))
			name := fmt.Sprintf("op %d: %d, %d", tt.op, tt.a, tt.b)
			cases = append(cases,
				execCase{name, value(bin(tt.op, a, b)), result(0, s(tt.want))},
				execCase{name + " constant", value(bin(tt.op, a, num(s(tt.b)))), result(0, s(tt.want))})
		}
		return cases
	})
}

// TestSizes fetches every size and sign from every kind of place.
func TestSizes(t *testing.T) {
	bytes := []byte{0x81, 0x92, 0xa3, 0xb4, 0xc5, 0xd6, 0xe7, 0xf8}
	execute(t, func(w *world) (cases []execCase) {
		places := map[string]location{
			"register":      inReg(0),
			"value":         isValue(plus(reg(0), 0x7f)),
			"memory":        inMem(plus(reg(5), 3)),
			"stack":         inMem(plus(reg(7), 8)),
			"constant":      isConst(0x8899aabbccddeeff),
			"bytes":         known(bytes...),
			"wider memory":  isValue(mem(plus(reg(5), 8), 8)),
			"narrow memory": isValue(mem(plus(reg(5), 8), 2)),
			"odd memory":    isValue(mem(plus(reg(5), 8), 5)),
			"pieces":        pieces(piece(3, inReg(0)), piece(2, inMem(reg(5))), piece(3, known(bytes...))),
		}
		for name, l := range places {
			for size := 1; size <= 8; size++ {
				for _, signed := range []bool{false, true} {
					cases = append(cases, execCase{
						name: fmt.Sprintf("%s, %d bytes, signed %v", name, size, signed),
						args: []prologue.Arg{{Name: "v", Loc: l, Size: size, Signed: signed}},
					})
				}
			}
		}
		return cases
	})
}

// TestFaults loses the argument that faults and no other.
func TestFaults(t *testing.T) {
	bad := inMem(plus(reg(4), 16))
	zero := bin(ops.Sub, reg(0), reg(0))
	execute(t, func(w *world) []execCase {
		good := prologue.Arg{Name: "good", Loc: inMem(reg(5)), Size: 1}
		first := uint64(w.mem[0])
		r := prologue.Arg{Name: "r", Loc: inReg(1), Size: 8}
		v := w.regs[1]
		failing := map[string]location{
			"memory":                     bad,
			"null":                       inMem(num(8)),
			"across the end":             inMem(plus(reg(5), 4092)),
			"inner read":                 inMem(plus(mem(plus(reg(4), 8), 8), 8)),
			"inner narrow read":          inMem(bin(ops.Add, reg(5), mem(plus(reg(4), 8), 2))),
			"outer read":                 inMem(bin(ops.Sub, mem(plus(reg(5), ptrOff), 8), num(1<<30))),
			"one of two":                 isValue(bin(ops.Add, mem(reg(5), 8), mem(reg(4), 8))),
			"the other of two":           isValue(bin(ops.Add, mem(reg(4), 8), mem(reg(5), 8))),
			"value of a read":            isValue(plus(mem(reg(4), 4), 1)),
			"division":                   isValue(bin(ops.Div, reg(0), zero)),
			"unsigned modulo":            isValue(bin(ops.UMod, reg(0), zero)),
			"division by constant":       isValue(bin(ops.UDiv, reg(0), num(0))),
			"division of what was read":  isValue(bin(ops.Mod, mem(reg(5), 8), zero)),
			"masked away":                isValue(bin(ops.And, mem(reg(4), 8), num(0))),
			"shifted away":               isValue(bin(ops.Shl, mem(reg(4), 8), num(64))),
			"address of a division":      inMem(bin(ops.Add, reg(5), bin(ops.UDiv, reg(0), zero))),
			"a piece":                    pieces(piece(4, inReg(0)), piece(4, bad)),
			"read by a read by a read":   inMem(mem(mem(mem(reg(4), 8), 8), 8)),
			"condition":                  isValue(sel(mem(reg(4), 8), num(1), num(2))),
			"the chosen side":            isValue(sel(num(1), mem(reg(4), 8), num(2))),
			"the side that a reg choses": isValue(sel(reg(0), mem(reg(4), 8), num(2))),
		}
		var cases []execCase
		for name, l := range failing {
			f := prologue.Arg{Name: "bad", Loc: l, Size: 8}
			cases = append(cases,
				execCase{name, []prologue.Arg{f}, result(1)},
				execCase{name + ", first", []prologue.Arg{f, good, r}, result(1, 0, first, v)},
				execCase{name + ", second", []prologue.Arg{r, f, good}, result(2, v, 0, first)},
				execCase{name + ", third", []prologue.Arg{good, r, f}, result(4, first, v)},
				execCase{name + ", twice", []prologue.Arg{f, good, f}, result(5, 0, first)},
				execCase{name + ", not located", []prologue.Arg{{Name: "n", Size: 8}, f, good}, result(3, 0, 0, first)},
			)
		}
		return cases
	})
}

// TestJoinedFaults reads arguments together that hang at one base, on both sides of
// the end of a page: those that can be read are.
func TestJoinedFaults(t *testing.T) {
	parts := []struct {
		off    int64 // from the end of the page on
		size   int
		signed bool
	}{{-16, 8, false}, {-8, 8, true}, {-8, 4, false}, {-4, 4, true}, {-2, 2, false}, {-1, 1, true}, {0, 8, false}, {4, 4, false}, {16, 8, true}}
	execute(t, func(w *world) (cases []execCase) {
		for name, place := range map[string]func(off int64) *expr{
			"register": func(off int64) *expr { return plus(reg(5), 4096+off) },
			"sum": func(off int64) *expr {
				return plus(bin(ops.Add, reg(5), bin(ops.And, reg(0), num(0))), 4096+off)
			},
			"pointer on the stack": func(off int64) *expr {
				return plus(mem(plus(reg(7), ptrOff-spOff), 8), 4096-1024+off)
			},
			"pointer":     func(off int64) *expr { return plus(mem(plus(reg(5), ptrOff), 8), 4096-1024+off) },
			"bad pointer": func(off int64) *expr { return plus(mem(plus(reg(4), 8), 8), off) },
			"narrow pointer": func(off int64) *expr {
				return plus(bin(ops.Add, reg(5), bin(ops.And, mem(reg(5), 3), num(8))), 4096-8+off)
			},
			"large offset":   func(off int64) *expr { return plus(bin(ops.Sub, reg(5), num(1<<40)), 1<<40+4096+off) },
			"all of it bad":  func(off int64) *expr { return plus(reg(4), 64+off) },
			"all of it good": func(off int64) *expr { return plus(reg(5), 64+off) },
		} {
			for i := range parts {
				for j := range parts {
					for k := range parts {
						var args []prologue.Arg
						for n, x := range []int{i, j, k} {
							p := parts[x]
							args = append(args, prologue.Arg{Name: string(rune('a' + n)), Loc: inMem(place(p.off)), Size: p.size, Signed: p.signed})
						}
						cases = append(cases, execCase{name: fmt.Sprint(name, " ", i, j, k), args: args})
					}
				}
			}
		}
		return cases
	})
}

// TestSelect computes only the side that is chosen: the other one would fault.
func TestSelect(t *testing.T) {
	bad := mem(reg(4), 8)
	div := bin(ops.Div, reg(0), bin(ops.Xor, reg(0), reg(0)))
	yes := bin(ops.Ne, reg(0), num(0))
	no := bin(ops.Eq, reg(0), reg(1))
	execute(t, func(w *world) []execCase {
		at := w.number(w.mem[:8])
		return []execCase{
			{"yes", value(sel(yes, mem(reg(5), 8), bad)), result(0, at)},
			{"no", value(sel(no, bad, mem(reg(5), 8))), result(0, at)},
			{"not a comparison", value(sel(reg(0), num(5), bad)), result(0, 5)},
			{"division", value(sel(no, div, num(6))), result(0, 6)},
			{"inside", value(plus(sel(yes, sel(no, bad, num(7)), bad), 1)), result(0, 8)},
			{"beside a read", value(bin(ops.Add, mem(reg(5), 8), sel(yes, num(1), bad))), result(0, at+1)},
			{"address", value(mem(sel(no, num(0), reg(5)), 8)), result(0, at)},
			{"condition is read", value(sel(bin(ops.ULt, mem(reg(5), 8), num(1)), bad, num(9))), result(0, 9)},
		}
	})
}

// TestPieces puts objects together, also of bits.
func TestPieces(t *testing.T) {
	execute(t, func(w *world) (cases []execCase) {
		add := func(name string, size int, ps ...loc.Piece) {
			cases = append(cases, execCase{name, []prologue.Arg{{Name: "v", Loc: pieces(ps...), Size: size}}, nil})
		}
		add("two registers", 8, piece(4, inReg(0)), piece(4, inReg(1)))
		add("register, stack, constant", 8, piece(2, inReg(0)), piece(2, inMem(plus(reg(7), 6))), piece(4, isConst(0x80000001)))
		add("known bytes", 8, piece(5, known(1, 2, 3, 4, 5)), piece(3, inMem(reg(5))))
		add("larger than the object", 4, piece(2, inReg(0)), piece(8, inReg(1)))
		add("only the first", 4, piece(8, inReg(0)), piece(8, inReg(1)))
		add("bits of a register", 4, bitPiece(5, 3, inReg(0)), bitPiece(27, 37, inReg(1)))
		for off := uint64(0); off < 24; off++ {
			for _, n := range []uint64{1, 7, 8, 9, 31, 57, 58, 63} {
				add(fmt.Sprintf("%d bits of memory from %d on", n, off), 8, bitPiece(n, off, inMem(plus(reg(5), 1))), bitPiece(64-n, 0, inReg(0)))
				add(fmt.Sprintf("%d known bits from %d on", n, off), 8, bitPiece(64-n, 0, inReg(0)), bitPiece(n, off, known(w.mem[:16]...)))
			}
			add(fmt.Sprintf("64 bits of memory from %d on", off), 8, bitPiece(64, off, inMem(plus(reg(5), 1))))
		}
		return cases
	})
	// By hand: 3 bits, then 5, of an object of one byte.
	args := []prologue.Arg{{Name: "v", Loc: pieces(bitPiece(3, 0, isConst(0b101)), bitPiece(5, 1, known(0b01001110))), Size: 1}}
	for be, want := range map[bool]uint64{
		false: 0b00111_101, // bits 1 to 5 of the byte from its low end, above the three
		true:  0b101_10011, // bits 1 to 5 of the byte from its high end, below the three
	} {
		w := imaginary(be)
		check(t, w, args, prologue.Options{Arch: amd64, BigEndian: be})
		if got := w.want(args); got != *result(0, want) {
			t.Errorf("big-endian %v: got %#b, want %#b", be, got.Values[0], want)
		}
	}
}

// TestOrders fetches three arguments of all kinds in all orders.
func TestOrders(t *testing.T) {
	kinds := []prologue.Arg{
		{Name: "reg", Loc: inReg(2), Size: 8},
		{Name: "const", Loc: isConst(1<<64 - 2), Size: 4, Signed: true},
		{Name: "value", Loc: isValue(bin(ops.Shl, reg(0), bin(ops.And, reg(1), num(7)))), Size: 8},
		{Name: "stack", Loc: inMem(plus(reg(7), 24)), Size: 4, Signed: true},
		{Name: "near", Loc: inMem(plus(reg(7), 12)), Size: 2},
		{Name: "far", Loc: inMem(plus(reg(7), 80)), Size: 8},
		{Name: "odd", Loc: inMem(plus(reg(7), 29)), Size: 4},
		{Name: "indirect", Loc: inMem(plus(mem(plus(reg(5), ptrOff), 8), 8)), Size: 3, Signed: true},
		{Name: "sum", Loc: isValue(bin(ops.Add, mem(reg(5), 8), mem(plus(reg(7), 8), 4))), Size: 8},
		{Name: "quotient", Loc: isValue(bin(ops.Div, reg(3), reg(1))), Size: 8},
		{Name: "pieces", Loc: pieces(piece(4, inReg(0)), piece(4, inMem(plus(reg(7), 4)))), Size: 8},
		{Name: "none", Size: 8},
	}
	execute(t, func(w *world) (cases []execCase) {
		for _, a := range kinds {
			for _, b := range kinds {
				for _, c := range kinds {
					cases = append(cases, execCase{a.Name + ", " + b.Name + ", " + c.Name, []prologue.Arg{a, b, c}, nil})
				}
			}
		}
		return cases
	})
}

// TestDeep computes balanced expressions, which need more registers than there
// are.
func TestDeep(t *testing.T) {
	var tree func(depth int, leaf func() *expr) *expr
	tree = func(depth int, leaf func() *expr) *expr {
		if depth == 0 {
			return leaf()
		}
		op := ops.Sub
		if depth == 2 {
			op = ops.Div
		}
		return bin(op, tree(depth-1, leaf), tree(depth-1, leaf))
	}
	n := uint64(0)
	registers := func() *expr { n++; return reg(general[n%uint64(len(general))]) }
	memory := func() *expr { n++; return mem(plus(reg(5), int64(8*(n%400))), 8) }
	mixed := func() *expr {
		if n%3 == 0 {
			return memory()
		}
		return registers()
	}
	for _, tt := range []struct {
		name    string
		leaf    func() *expr
		deepest int // that maxNodes allows
	}{
		{"registers", registers, 10},
		{"memory", memory, 8},
		{"mixed", mixed, 9},
	} {
		leaf := tt.leaf
		t.Run(tt.name, func(t *testing.T) {
			execute(t, func(w *world) []execCase {
				n = 0
				return []execCase{
					{"deep", value(tree(tt.deepest, leaf)), nil},
					{"three", append(append(value(tree(5, leaf)), value(tree(6, leaf))...), value(tree(5, leaf))...), nil},
				}
			})
			n = 0
			args := value(tree(tt.deepest, leaf))
			args = append(append(args, args...), args...)
			check(t, imaginary(false), args, prologue.Options{Arch: amd64, Reads: prologue.ReadCast})
			p := check(t, imaginary(false), args, prologue.Options{Arch: amd64})
			if slices.ContainsFunc(p.Reasons, func(r loc.Reason) bool { return r != loc.Reason{} }) {
				t.Error(p.Reasons)
			}
			t.Logf("%d instructions, %d bytes of stack", len(p.Insns), p.Stack)
		})
	}
}

// TestRandomKernel runs random arguments in the kernel.
func TestRandomKernel(t *testing.T) {
	inKernel(t, func(t *testing.T, w *world) {
		rng := rand.New(rand.NewPCG(5, 6))
		for range 10 {
			cases := make([]execCase, 500)
			for i := range cases {
				s := source{randomBytes(rng, 1000)}
				cases[i] = execCase{name: fmt.Sprint("case ", i), args: s.args()}
			}
			executeBatch(t, w, prologue.ConventionRegisters, cases)
			executeAll(t, w, prologue.ConventionRecord, cases)
		}
	})
}

// BenchmarkExecute measures distinct prologues loaded and run, with three sets of
// registers each.
func BenchmarkExecute(b *testing.B) {
	bpfexec.RequireOrSkip(b)
	w := actual(b, prologue.ReadUser)
	for _, batch := range []int{1, 50, 200, 500, bpfexec.MaxBatch} {
		b.Run(fmt.Sprint("batch=", batch), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(7, 8))
			done := 0
			for b.Loop() {
				codes := make([]bpfexec.Code, batch)
				for i := range codes {
					off := int64(8 * rng.IntN(64))
					args := []prologue.Arg{
						{Name: "a", Loc: inReg(general[rng.IntN(len(general))]), Size: 8},
						{Name: "b", Loc: inMem(plus(reg(7), off)), Size: 4},
						{Name: "c", Loc: inMem(plus(reg(5), off)), Size: 4, Signed: true},
					}
					p, err := prologue.Emit(args, prologue.Options{Arch: amd64, Reads: prologue.ReadUser})
					if err != nil {
						b.Fatal(err)
					}
					codes[i] = bpfexec.Code{Insns: p.Insns, Args: 3}
				}
				prog, err := bpfexec.Load(codes...)
				if err != nil {
					b.Fatal(err)
				}
				for range 3 {
					if _, err := prog.Run(bpfexec.State{Regs: w.ptRegs()}); err != nil {
						b.Fatal(err)
					}
				}
				if err := prog.Close(); err != nil {
					b.Fatal(err)
				}
				done += batch
			}
			b.ReportMetric(float64(done)/b.Elapsed().Seconds(), "prologues/s")
		})
	}
}
