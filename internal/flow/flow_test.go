package flow

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// start is where the code of the tests begins.
const start = 0x10

// function returns a function whose code has one part for each text of hexadecimal digits. The
// first is at start, and each is 0x40 bytes from the one before.
func function(t testing.TB, arch string, code ...string) *Function {
	t.Helper()
	f := &Function{Arch: insn.For(arch), Entry: start}
	for i, c := range code {
		f.Parts = append(f.Parts, insn.Code{Addr: start + uint64(i)*0x40, Bytes: dwarftest.Hex(t, strings.ReplaceAll(c, " ", ""))})
	}
	return f
}

var kindNames = map[Kind]string{Plain: "", Nop: "nop", Jump: "jump", Branch: "branch", Leave: "leave", Halt: "halt", Last: "last"}

// blocksText prints blocks: "10 branch>14,10": where each begins, what its last instruction is, and
// where execution goes on.
func blocksText(g *Graph) string {
	var out []string
	for _, b := range g.Blocks {
		text := fmt.Sprintf("%x", g.Insns[b.First].Addr)
		if k := kindNames[g.Insns[b.Last-1].Kind]; k != "" {
			text += " " + k
		}
		for i, s := range b.Succs {
			text += fmt.Sprintf("%c%x", ">,"[min(i, 1)], g.Insns[g.Blocks[s].First].Addr)
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// always is an answer of Function.Ends.
func always(ends, out bool) func(uint64, *insn.Insn) (bool, bool) {
	return func(uint64, *insn.Insn) (bool, bool) { return ends, out }
}

// TestFollow: in x86 ffc0 is inc, 90 nop, 75 jne, eb jmp, e8 call, c3 ret, 0f0b ud2 and ffe0 jmp *rax.
func TestFollow(t *testing.T) {
	for _, tt := range []struct {
		name, arch string
		code       []string
		change     func(f *Function)
		blocks     string
		why        string
	}{
		{"a straight line", "amd64", []string{"ffc0 90 ffc0 c3"}, nil, "10 leave", ""},
		{"a loop", "amd64", []string{"ffc0 ffc0 75fc c3"}, nil, "10>12; 12 branch>12,16; 16 leave", ""},
		{"code that is not reached", "amd64", []string{"eb02 0f0b c3"}, nil, "10 jump>14; 14 leave", ""},
		{"a jump into what was followed", "amd64", []string{"7502 ffc0 ffc0 c3"}, nil, "10 branch>12,14; 12>14; 14 leave", ""},
		{"a jump into an instruction", "amd64", []string{"7501 b890c39090 c3"}, nil, "10 branch>12,13; 12>17; 13 leave; 17 leave", ""},
		{"a jump past the end of the other part", "amd64", []string{"753e c3", "ffc0 ebbf"}, nil, "10 branch>12,50; 12 leave; 50 leave", ""},
		{"two parts", "amd64", []string{"753e c3", "ffc0 ebbe"}, nil, "10 branch>12,50; 12 leave; 50 jump>12", ""},
		{"a jump to another function", "amd64", []string{"ffc0 eb7f"}, nil, "10 leave", ""},
		{"a branch to another function", "amd64", []string{"757f c3"}, nil, "10 leave", ""},
		{"a call", "amd64", []string{"e800000000 c3"}, nil, "10 leave", ""},
		{"a call that does not return, at the end", "amd64", []string{"e800000000"}, nil, "10 last", ""},
		{"padding after it", "amd64", []string{"e800000000 9090"}, nil, "10 last; 15 nop", ""},
		{"a call that does not return", "amd64", []string{"e800000000 06"}, func(f *Function) { f.Ends = always(true, true) }, "10 last", ""},
		{"a check that does not return", "amd64", []string{"e800000000 06"}, func(f *Function) { f.Ends = always(true, false) }, "10 halt", ""},
		{"a trap that is returned from", "amd64", []string{"0f0b c3"}, func(f *Function) { f.Ends = always(false, false) }, "10 leave", ""},
		{"a trap that is not", "amd64", []string{"0f0b 06"}, func(f *Function) { f.Ends = always(true, false) }, "10 halt", ""},
		{"code that runs off its end", "amd64", []string{"ffc0"}, nil, "10", "the code goes on after the function's end"},
		{"an unknown instruction", "amd64", []string{"ffc0 06"}, nil, "10 halt", "the instruction does not decode (06)"},
		{"an instruction that is cut short", "amd64", []string{"0f85"}, nil, "10 halt", "the instruction does not decode (0f 85)"},
		{"an indirect jump", "amd64", []string{"ffe0"}, nil, "10 jump", "it is not known where the indirect jump leads"},
		{"an indirect jump to another function", "amd64", []string{"ffe0"},
			func(f *Function) { f.Leaves = func(addr uint64, _ *insn.Insn) bool { return addr == start } }, "10 leave", ""},
		{"an indirect jump without a frame", "amd64", []string{"ffe0"},
			func(f *Function) { f.Torn = func(_ uint64, had bool) bool { return had } }, "10 leave", ""},
		{"an indirect jump to where a pointer leads, without a frame anywhere", "amd64", []string{"85f6 7403 ff6020 c3"},
			func(f *Function) { f.Torn = func(_ uint64, had bool) bool { return !had } }, "10 branch>14,17; 14 leave; 17 leave", ""},
		{"one that code is left for, as the label of a computed goto", "amd64", []string{"85f6 7403 ff6020 c3 ffc0 c3"},
			func(f *Function) { f.Torn = func(_ uint64, had bool) bool { return !had } }, "10 branch>14,17; 14 jump; 17 leave", "it is not known where the indirect jump leads"},
		{"one through a table", "amd64", []string{"85f6 7404 ff64f020 c3"},
			func(f *Function) { f.Torn = func(_ uint64, had bool) bool { return !had } }, "10 branch>14,18; 14 jump; 18 leave", "it is not known where the indirect jump leads"},
		{"one in the frame", "amd64", []string{"85f6 7403 ff6020 c3"},
			func(f *Function) { f.Torn = func(uint64, bool) bool { return false } }, "10 branch>14,17; 14 jump; 17 leave", "it is not known where the indirect jump leads"},
		{"a thunk", "amd64", []string{"eb7f"}, func(f *Function) { f.Indirect = func(to uint64) bool { return to == 0x91 } },
			"10 jump", "it is not known where the indirect jump leads"},
		{"a thunk, to another function", "amd64", []string{"eb7f"}, func(f *Function) {
			f.Indirect = func(to uint64) bool { return to == 0x91 }
			f.Torn = func(_ uint64, had bool) bool { return !had }
		}, "10 leave", ""},
		{"a nop that becomes a jump", "amd64", []string{"90 ffc0 c3"}, func(f *Function) {
			f.Further = func(addr uint64, _ *insn.Insn) []uint64 {
				if addr == 0x10 {
					return []uint64{0x13}
				}
				return nil
			}
		}, "10 branch>11,13; 11>13; 13 leave", ""},
		{"a call that throws", "amd64", []string{"e800000000 c3", "c3"}, func(f *Function) {
			f.Further = func(_ uint64, in *insn.Insn) []uint64 {
				if in.Call {
					return []uint64{0x50}
				}
				return nil
			}
		}, "10>50,15; 15 leave; 50 leave", ""},

		// add; nop; ret / add; cbnz .-4; ret / b .+8; .word; ret / bl; brk / br / b to elsewhere
		{"a straight line", "arm64", []string{"00040091 1f2003d5 c0035fd6"}, nil, "10 leave", ""},
		{"a loop", "arm64", []string{"00040091 e1ffffb5 c0035fd6"}, nil, "10 branch>10,18; 18 leave", ""},
		{"a jump", "arm64", []string{"02000014 00000000 c0035fd6"}, nil, "10 jump>18; 18 leave", ""},
		{"a call that does not return, at the end", "arm64", []string{"00000094"}, nil, "10 last", ""},
		{"a trap that is not returned from", "arm64", []string{"000020d4"}, func(f *Function) { f.Ends = always(true, false) }, "10 halt", ""},
		{"an indirect jump", "arm64", []string{"a0001fd6"}, nil, "10 jump", "it is not known where the indirect jump leads"},
		{"a jump to another function", "arm64", []string{"00010014"}, nil, "10 leave", ""},
	} {
		f := function(t, tt.arch, tt.code...)
		if tt.change != nil {
			tt.change(f)
		}
		g := new(Graph).Follow(f)
		if got := blocksText(g); got != tt.blocks {
			t.Errorf("%s, %s: the blocks are %q, want %q", tt.arch, tt.name, got, tt.blocks)
		}
		if !strings.Contains(g.Why, tt.why) || tt.why == "" && g.Why != "" {
			t.Errorf("%s, %s: at %#x: %q, want %q", tt.arch, tt.name, g.Lost, g.Why, tt.why)
		}
	}
}

// marksOf reads marks: "E12 X16": a kind (enter, inside, exit, away, twin, perhaps) and the address of an
// instruction.
func marksOf(t *testing.T, g *Graph, text string) (out []Mark) {
	t.Helper()
	kinds := map[byte]MarkKind{'E': MarkEnter, 'I': MarkInside, 'X': MarkExit, 'A': MarkAway, 'T': MarkTwin, 'P': MarkPerhaps}
	for _, f := range strings.Fields(text) {
		addr, err := strconv.ParseUint(f[1:], 16, 64)
		n, ok := g.At(addr)
		if err != nil || !ok {
			t.Fatalf("mark %s: no instruction there, %v", f, err)
		}
		out = append(out, Mark{Insn: int32(n), Kind: kinds[f[0]]})
	}
	return out
}

// runsText prints ways: "12@10*<16!": the way, where its probe is if that is elsewhere, * with
// Again, and what is in Before. A way out after its instruction has a +.
func runsText(g *Graph, r Runs) string {
	text := func(ways []Way) string {
		var out []string
		for _, w := range ways {
			text := fmt.Sprintf("%x", g.Insns[w.Insn].Addr)
			if w.View == LastView {
				text += "+"
			}
			if w.Probe != w.Insn {
				text += fmt.Sprintf("@%x", g.Insns[w.Probe].Addr)
			}
			if w.Again {
				text += "*"
			}
			for i, n := range w.Before {
				text += fmt.Sprintf("%c%x", "<,"[min(i, 1)], g.Insns[n].Addr)
			}
			out = append(out, text)
		}
		return strings.Join(out, " ")
	}
	out := fmt.Sprintf("in %s; out %s", text(r.In), text(r.Out))
	if r.Ends > 0 {
		out += fmt.Sprintf("; %d end", r.Ends)
	}
	return out
}

func TestRuns(t *testing.T) {
	for _, tt := range []struct{ name, arch, code, marks, want string }{
		{"a straight line", "amd64", "ffc0 ffc0 ffc0 c3", "E12 X14", "in 12; out 14"},
		{"the whole function", "amd64", "ffc0 c3", "E10", "in 10; out 12+"},
		{"no marks", "amd64", "ffc0 c3", "", "in ; out "},
		{"what is not reached from the entry", "amd64", "eb02 ffc0 ffc0 c3", "", "in ; out "},
		{"several statements", "amd64", "ffc0 ffc0 ffc0 c3", "E10 E12 E14 X16", "in 10; out 16"},
		{"two runs in a row", "amd64", "ffc0 ffc0 ffc0 c3", "E10 X12 E14 X16", "in 10 14; out 12 16"},
		{"one run ends where another begins", "amd64", "ffc0 ffc0 c3", "E10 X12 E12 X14", "in 10 12; out 12 14"},
		{"two ways in that meet in the body", "amd64", "7504 ffc0 eb02 ffc0 ffc0 c3", "E12 E16 E18 X1a", "in 12 16; out 1a"},
		{"two ways out", "amd64", "ffc0 7503 ffc0 c3 ffc0 c3", "E10 X14 X17", "in 10; out 14 17"},
		{"a way out and a return", "amd64", "ffc0 7503 ffc0 c3 ffc0 c3", "E10 E14 X17", "in 10; out 16+ 17"},

		{"in a loop of the caller", "amd64", "ffc0 ffc0 ffc0 75fa c3", "E12 X14", "in 12; out 14"},
		{"a loop in the body", "amd64", "ffc0 ffc0 ffc0 75fc c3", "E12 X18", "in 12; out 18"},
		{"a loop that begins the body", "amd64", "ffc0 ffc0 75fc c3", "E12 X16", "in 12*<10; out 16"},
		{"a jump into it", "amd64", "eb02 0f0b ffc0 75fc c3", "E14 X18", "in 14@10; out 18"},
		{"padding before it", "amd64", "ffc0 90 ffc0 75fc c3", "E13 X17", "in 13@12; out 17"},
		{"padding after the loop's head", "amd64", "ffc0 90 ffc0 75fb c3", "E13 X17", "in 13*<10; out 17"},
		{"a jump to an instruction before the loop's first statement", "amd64", "eb02 0f0b ffc0 ffc0 75fa c3", "E16 X1a", "in 16*; out 1a"},
		{"a branch into it", "amd64", "7502 ffc0 ffc0 75fc c3", "E14 X18", "in 14*; out 18"},
		{"a jump and a plain instruction into it", "amd64", "7504 ffc0 eb02 ffc0 ffc0 75fc c3", "E18 X1c", "in 18*<14,16; out 1c"},
		{"two jumps into it", "amd64", "7504 ffc0 eb06 ffc0 eb02 0f0b ffc0 75fc c3", "E1c X20", "in 1c@14 1c@18; out 20"},
		{"a loop that begins the function and the body", "amd64", "ffc0 75fc c3", "E10 X14", "in 10*; out 14"},
		{"a jump over the first statement", "amd64", "7502 ffc0 ffc0 c3", "E12 I14 X16", "in 12 14*; out 16"},

		{"a copy after instructions of the caller", "amd64", "ffc0 ffc0 ffc0 c3", "E10 A12 E14 X16", "in 10 14; out 12 16"},
		{"the end of another body of the function", "amd64", "7504 ffc0 eb02 ffc0 ffc0 c3", "E12 T16 I18 X1a", "in 12; out 1a"},

		// Only one of the paths that meet at 14 was in the body.
		{"paths meet after the body", "amd64", "7502 ffc0 ffc0 c3", "E12", "in 12; out 12+"},
		{"paths meet in the body", "amd64", "7502 ffc0 ffc0 c3", "E12 X16", "in 12; out 12+"},
		{"paths meet, and one stays in the body", "amd64", "7504 ffc0 7503 ffc0 c3 ffc0 c3", "E12 I19", "in 12; out 16* 1b+"},

		{"a call that does not return", "amd64", "ffc0 e800000000", "E12", "in 12; out 12+; 1 end"},
		{"a call of the caller's that does not return", "amd64", "ffc0 ffc0 e800000000", "E10 X12", "in 10; out 12"},

		{"a straight line", "arm64", "00040091 00040091 c0035fd6", "E14 X18", "in 14; out 18"},
		{"a loop that begins the body", "arm64", "00040091 00040091 e1ffffb5 c0035fd6", "E14 X1c", "in 14*<10; out 1c"},
		{"a jump into it", "arm64", "02000014 00000000 00040091 e1ffffb5 c0035fd6", "E18 X20", "in 18@10; out 20"},
		{"padding before it", "arm64", "1f2003d5 00040091 e1ffffb5 c0035fd6", "E14 X1c", "in 14@10; out 1c"},
		{"two ways in", "arm64", "61000054 00040091 02000014 00040091 00040091 c0035fd6", "E14 E1c E20 X24", "in 14 1c; out 24"},
	} {
		g := new(Graph).Follow(function(t, tt.arch, tt.code))
		if g.Why != "" {
			t.Errorf("%s, %s: %s", tt.arch, tt.name, g.Why)
			continue
		}
		s := g.Solver()
		marks := marksOf(t, g, tt.marks)
		for range 2 { // a solver can be used again
			if got := runsText(g, s.Solve(slices.Clone(marks), nil)); got != tt.want {
				t.Errorf("%s, %s: %q, want %q", tt.arch, tt.name, got, tt.want)
			}
		}
	}
}

// TestJoins: a jump comes before all marks of its target, behind them, or to one that is not known.
func TestJoins(t *testing.T) {
	// 10: jne 16; 12: add; 14: jmp 18; 16: add; 18: add; 1a: ret
	const code = "7504 ffc0 eb02 ffc0 ffc0 c3"
	for _, tt := range []struct {
		name, code, marks string
		own               uint64 // of the body
		join              Join   // of the jump at 14
		want              string
	}{
		{"before", code, "E14 X14 E18 X1a", 0, JoinFirst, "in 14 18; out 14 1a"},
		{"behind the beginning: the run of the jump goes on", code, "E14 E18 X1a", 0, JoinLast, "in 14 18*<16; out 1a"},
		{"behind the beginning, from elsewhere: equal code of another function", code, "X14 E18 X1a", 0, JoinLast, "in 18*; out 1a"},
		{"not known", code, "X14 E18 X1a", 0, JoinUnsure, "in 18*; out 1a*"},
		// 18 ends a run and begins the next; the branch at 10 is the body's.
		{"a branch of the body to an end and a beginning", "7506 ffc0 eb02 ffc0 ffc0 c3", "E10 E18 X18 E18 X1a", 0x10, JoinFirst, "in 10 18*; out 18* 1a"},
		{"perhaps", code, "P12 E18 X1a", 0, JoinFirst, "in 12* 18*<16; out 1a"},
	} {
		g := new(Graph).Follow(function(t, "amd64", tt.code))
		from, _ := g.At(0x14)
		to, _ := g.At(0x18)
		s := g.Solver()
		if tt.join != JoinFirst {
			s.SetJoins(map[[2]int32]Join{{g.Block(int32(from)), g.Block(int32(to))}: tt.join})
		}
		r := s.Solve(marksOf(t, g, tt.marks), func(n int32) bool { return g.Insns[n].Addr == tt.own })
		if got := runsText(g, r); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestEnds: a check that fails is no way out, as a return is.
func TestEnds(t *testing.T) {
	f := function(t, "amd64", "ffc0 7505 e800000000 c3")
	f.Ends = always(true, false)
	g := new(Graph).Follow(f)
	if got, want := runsText(g, g.Solver().Solve(marksOf(t, g, "E12"), nil)), "in 12; out 19+; 1 end"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTables: what is known of a table or an index stays known where it seems to have changed.
func TestTables(t *testing.T) {
	const unknown = " it is not known where the indirect jump leads"
	for _, tt := range []struct{ name, code, tables, want string }{
		// The index is compared in memory, and loaded again behind a store: mov %rsi, 8(%rsp); mov %sil, 1(%rdi).
		{
			"memory twice", "833f02 4889742408 7712 8b07 488d15dd010000 48630482 4801d0 ffe0 c3 ffc0c3", "2cfeffff 2dfeffff 2cfeffff",
			"10 branch>1a,2c; 1a jump>2c,2d; 2c leave; 2d leave ",
		},
		{
			"memory that changes: the table ends where nothing can be read", "833f02 4088770190 7712 8b07 488d15dd010000 48630482 4801d0 ffe0 c3 ffc0c3", "2cfeffff 2dfeffff 2cfeffff",
			"10 branch>1a,2c; 1a jump>2c,2d; 2c leave; 2d leave ",
		},
		{
			"an entry out of the function ends it", "833f02 4088770190 7712 8b07 488d15dd010000 48630482 4801d0 ffe0 c3 ffc0c3", "2cfeffff 2dfeffff 34feffff 2ffeffff",
			"10 branch>1a,2c; 1a jump>2c,2d; 2c leave; 2d leave ",
		},
		{
			"one to its end does not", "833f02 4088770190 7712 8b07 488d15dd010000 48630482 4801d0 ffe0 c3 ffc0c3", "2cfeffff 30feffff 2dfeffff",
			"10 branch>1a,2c; 1a jump>2c,2d; 2c leave; 2d leave ",
		},
		{
			"there is code to which none leads", "833f02 4088770190 7712 8b07 488d15dd010000 48630482 4801d0 ffe0 c3 ffc0c3 ffc0c3", "2cfeffff 2dfeffff 2cfeffff",
			"10 branch>1a,2c; 1a jump>2c,2d; 2c leave; 2d leave" + unknown,
		},
		// The lower bits of a spilled number are compared, and all of it is the index.
		{
			"a spilled index", "488b6c2408 83fd02 7710 488d15df010000 48630caa 4801d1 ffe1 c3 ffc0c3", "2afeffff 2bfeffff 2afeffff",
			"10 branch>1a,2a; 1a jump>2a,2b; 2a leave; 2b leave ",
		},
		// 10: lea 200, %rbx; 17: call; jump to 3c for 7, or by the table at 200 to 31 and 32; 35: %rbx is set, a call that does not return; 3c: jmp 17
		{
			"a call that does not return", "488d1de9010000 e8e4070000 83f807 741b 83f802 770f 89c0 48630483 4801d8 ffe0 c3 ffc0c3 89fb e8c4080000 ebd9",
			"31feffff 32feffff 31feffff", "10>17; 17 branch>21,3c; 21 branch>26,35; 26 jump>31,32; 31 leave; 32 leave; 35 last; 3c jump>17 ",
		},
		// By the table at 200 to 48, where another is read that is at 208 in %rbx, or to 47; behind 2e %rbx is set, and there is a third one, to 47 alone.
		{
			"another table", "488d1df1010000 83ff01 7712 89f8 488d0ddb010000 48630481 4801c8 ffe0 89f3 83fe01 7712 89f0 488d0dd2010000 48630481 4801c8 ffe0 c3" +
				"83fa01 77fa 89d0 48630483 4801d8 ffe0",
			"48feffff 47feffff 3ffeffff 40feffff 37feffff 37feffff",
			"10 branch>1c,2e; 1c jump>47,48; 2e branch>35,47; 35 jump>47; 47 leave; 48 branch>47,4d; 4d jump>47,48 ",
		},
	} {
		f := function(t, "amd64", tt.code)
		tables := dwarftest.Hex(t, strings.ReplaceAll(tt.tables, " ", ""))
		f.Read = func(addr uint64, n int) []byte {
			if addr -= 0x200; addr > uint64(len(tables)) || uint64(n) > uint64(len(tables))-addr {
				return nil
			}
			return tables[addr : addr+uint64(n)]
		}
		f.Ends = func(addr uint64, _ *insn.Insn) (ends, out bool) { return addr == 0x37, true }
		g := new(Graph).Follow(f)
		if got := blocksText(g) + " " + g.Why; got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
