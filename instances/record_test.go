package instances_test

import (
	"bytes"
	_ "embed"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

const program = "run-gcc12-O2-dwarf5.exe"

//go:embed testdata/record.o
var recordObject []byte

// TestRecordPrograms makes a record's prologue the entry function of a program that
// clang made, and looks at what the kernel then knows of it.
func TestRecordPrograms(t *testing.T) {
	coll, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(recordObject))
	if err != nil {
		t.Fatal(err)
	}
	spec := coll.Programs["func"]
	before := spec.Instructions.String()
	p, err := plantest.Fixture(t, program, spec.SectionName, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Convention != prologue.ConventionRecord {
		t.Fatalf("the convention is %v", p.Convention)
	}
	specs, err := instances.ProgramSpecs(p, spec)
	if err != nil {
		t.Fatal(err)
	}
	if fn := btf.FuncMetadata(&spec.Instructions[0]); spec.Instructions.String() != before || fn.Linkage != btf.GlobalFunc {
		t.Error("ProgramSpecs changed the user's program")
	}
	bpfexec.RequireOrSkip(t)
	for i, s := range specs {
		entry := len(p.Instances[i].Prologue.Insns) + 2
		if got := s.Instructions[0].Symbol() + " " + s.Instructions[entry].Symbol(); got != "func_fetch_0 func" {
			t.Errorf("instance %d has the functions %s", i, got)
		}
		prog, err := ebpf.NewProgramWithOptions(s, ebpf.ProgramOptions{LogLevel: ebpf.LogLevelInstruction, LogSizeStart: 1 << 20})
		if err != nil {
			t.Fatalf("instance %d: %+v", i, err)
		}
		info, err := prog.Info()
		if err != nil {
			t.Fatal(err)
		}
		funcs, err := info.FuncInfos()
		if err != nil {
			t.Fatal(err)
		}
		raw := rawOffset(s.Instructions, entry)
		var names []string
		for _, f := range funcs {
			names = append(names, f.Func.Name)
		}
		if want := []string{"func_fetch_0", "func_0", "print"}; !cmp.Equal(names, want) || funcs[1].Offset != raw {
			t.Errorf("instance %d: the kernel knows functions %v, want %v with func_0 at %d", i, names, want, raw)
		}
		lines, err := info.LineInfos()
		if err != nil {
			t.Fatal(err)
		}
		inEntry, user := 0, 0
		for _, l := range lines {
			switch file := l.Line.FileName(); {
			case l.Offset < raw && file == "prologue" && l.Line.LineNumber() == uint32(inEntry+1):
				inEntry++
			case l.Offset >= raw && strings.HasSuffix(file, "record.c"):
				user++
			default:
				t.Errorf("instance %d: at %d line %q of %q", i, l.Offset, l.Line, file)
			}
		}
		// A comment for each argument, and one for the call.
		if inEntry != 7 || user < 5 {
			t.Errorf("instance %d: %d comments and %d lines of record.c", i, inEntry, user)
		}
		if log := prog.VerifierLog; !strings.Contains(log, "; text: [%r9] · words") || !strings.Contains(log, "return print(text, args->l") {
			t.Errorf("instance %d: the verifier's log does not explain itself:\n%s", i, log)
		}
		_ = bpfexec.Close(prog)
	}
}

func rawOffset(insns asm.Instructions, n int) asm.RawInstructionOffset {
	iter := insns.Iterate()
	for range n + 1 {
		iter.Next()
	}
	return iter.Offset
}

// TestRecordAssembled: programs without types, lines or a symbol load too.
func TestRecordAssembled(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	p, err := plantest.Fixture(t, program, "words l text:string", plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, insns := range map[string]asm.Instructions{
		"plain": {asm.LoadMem(asm.R0, asm.R3, 0, asm.DWord), asm.Return()},
		"with a function": {
			asm.Mov.Reg(asm.R1, asm.R3).WithSymbol("main"),
			asm.Call.Label("sub"),
			asm.Return(),
			asm.LoadMem(asm.R0, asm.R1, 8, asm.Byte).WithSymbol("sub"),
			asm.Return(),
		},
		"whose name is taken": {
			asm.Mov.Reg(asm.R1, asm.R3).WithSymbol("main"),
			asm.Call.Label("main_fetch_0"),
			asm.Return(),
			asm.LoadMem(asm.R0, asm.R1, 0, asm.DWord).WithSymbol("main_fetch_0"),
			asm.Return(),
		},
	} {
		specs, err := instances.ProgramSpecs(p, &ebpf.ProgramSpec{Name: "assembled", Instructions: insns, License: "GPL"})
		if err != nil {
			t.Fatal(err)
		}
		prog, err := ebpf.NewProgram(specs[0])
		if err != nil {
			t.Errorf("%s: %+v", name, err)
			continue
		}
		_ = bpfexec.Close(prog)
	}
}

// TestStack: what is more than a kernel gives is an error, and what is not the kernel
// takes.
func TestStack(t *testing.T) {
	use := func(bytes int32) asm.Instructions {
		return asm.Instructions{
			asm.Mov.Reg(asm.R1, asm.R10),
			asm.Add.Imm(asm.R1, -bytes),
			asm.Mov.Imm(asm.R2, 8),
			asm.FnGetCurrentComm.Call(),
			asm.Mov.Imm(asm.R0, 0),
			asm.Return(),
		}
	}
	store := func(bytes int16) asm.Instructions {
		return asm.Instructions{asm.StoreMem(asm.R10, -bytes, asm.R1, asm.DWord), asm.Mov.Imm(asm.R0, 0), asm.Return()}
	}
	calling := func(own, below int32) asm.Instructions {
		sub := use(below)
		sub[0] = sub[0].WithSymbol("sub")
		insns := use(own)
		insns[4] = asm.Call.Label("sub")
		insns[0] = insns[0].WithSymbol("main")
		return append(insns, sub...)
	}
	p, err := plantest.Fixture(t, program, "words text:string l", plan.Options{StringBytes: 200})
	if err != nil {
		t.Fatal(err)
	}
	const needs = 208 // in frames of 32: 224
	if got := p.Instances[0].Prologue.Stack; got != needs {
		t.Fatalf("the prologue needs %d bytes", got)
	}
	for _, c := range []struct {
		insns asm.Instructions
		more  int // than 512; 0: it fits
	}{
		{use(8), 0}, {use(288), 0}, {use(296), 32}, {use(512), 224},
		{store(288), 0}, {store(296), 32},
		{calling(128, 160), 0}, {calling(136, 160), 32}, {calling(128, 168), 32}, {calling(8, 256), 0}, {calling(8, 264), 32},
	} {
		specs, err := instances.ProgramSpecs(p, &ebpf.ProgramSpec{Name: "stack", Instructions: c.insns, License: "GPL"})
		var full *prologue.StackError
		switch {
		case c.more == 0 && err != nil, c.more > 0 && (!errors.As(err, &full) || full.Over != c.more):
			t.Errorf("want %d bytes more than there are, got %v of\n%v", c.more, err, c.insns)
		case c.more == 0 && bpfexec.Available() == nil:
			prog, err := ebpf.NewProgram(specs[0])
			if err != nil {
				t.Errorf("%+v\n%v", err, specs[0].Instructions)
				continue
			}
			_ = bpfexec.Close(prog)
		}
	}
	_, err = plantest.Fixture(t, program, "words text:string again=text:string", plan.Options{StringBytes: 256})
	if err == nil || !strings.Contains(err.Error(), "the record needs 512 bytes of stack, the prologue 0, the program 0: together, in frames of whole 32 bytes, 544, 32 more than 512; shorten strings or fetch fewer arguments") {
		t.Errorf("got %v", err)
	}
}

// TestConventions: how the convention is chosen, and which shape the arguments get.
func TestConventions(t *testing.T) {
	for _, c := range []struct {
		def        string
		convention prologue.Convention
		want       prologue.Convention
		size       int
	}{
		{"words l ul t", prologue.ConventionAuto, prologue.ConventionRegisters, 0},
		{"words l ul t", prologue.ConventionRecord, prologue.ConventionRecord, 24},
		{"words l ul t e", prologue.ConventionAuto, prologue.ConventionRecord, 32},
		{"words text:string", prologue.ConventionAuto, prologue.ConventionRecord, 64},
		{"words c=$comm", prologue.ConventionAuto, prologue.ConventionRecord, 16},
		{"take_pair p", prologue.ConventionAuto, prologue.ConventionRecord, 16},
		{"take_small s", prologue.ConventionAuto, prologue.ConventionRecord, 8},
		{"take_small s", prologue.ConventionRegisters, prologue.ConventionRegisters, 0},
		{"take_small big s", prologue.ConventionAuto, prologue.ConventionRecord, 72},
		{"take_small t=big.text:string", prologue.ConventionAuto, prologue.ConventionRecord, 24},
		{"take_small t=big.v[1]", prologue.ConventionAuto, prologue.ConventionRegisters, 0},
		{"take_small t=big.v:u32[3]", prologue.ConventionAuto, prologue.ConventionRecord, 16},
		{"walk n->flags n->mode n->tag:char[3] n->name:ustring", prologue.ConventionAuto, prologue.ConventionRecord, 8 + 8 + 8 + 64},
		{"walk n:u8[5] i:b3@4/8 n->fn:symbol", prologue.ConventionAuto, prologue.ConventionRecord, 24},
	} {
		p, err := plantest.Fixture(t, program, c.def, plan.Options{Convention: c.convention})
		if err != nil {
			t.Errorf("%s: %v", c.def, err)
			continue
		}
		if got := p.Instances[0].Prologue; p.Convention != c.want || got.Layout.Size != c.size {
			t.Errorf("%s: %v with %d bytes, want %v with %d", c.def, p.Convention, got.Layout.Size, c.want, c.size)
		}
		for _, a := range p.Sites[0].Args {
			if !a.Fetched() {
				t.Errorf("%s: %s: %v", c.def, a.Name, a.Unfetched)
			}
		}
	}
}

// TestTypeErrors: types that do not fit, with what would.
func TestTypeErrors(t *testing.T) {
	for _, c := range []struct{ def, want string }{
		{"words l:string", `column 9: "l" is long int, and a string is a char * or an array of char`},
		{"walk n:string", `column 8: "n" is struct node *, and a string is a char * or an array of char`},
		{"walk i:u32[2]", `column 8: "i" is int of 4 bytes, and u32[2] takes 8`},
		{"walk i:b3@4/64", `column 8: "i" is int of 4 bytes, and b3@4/64 is cut from 8`},
		{"take_pair p:b1@0/8", `column 13: "p" is struct pair of 16 bytes, and b1@0/8 is cut from 1`},
	} {
		_, err := plantest.Fixture(t, program, c.def, plan.Options{})
		var pe *probe.Error
		if !errors.As(err, &pe) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want a *probe.Error that begins with %q", c.def, err, c.want)
		}
	}
	// If another function has the argument, it is a reason.
	p, err := plantest.Fixture(t, program, "wa* i text:string", plan.Options{})
	if err == nil {
		t.Errorf("%v", p.Sites)
	}
	p, err = plantest.Fixture(t, program, "wor* l e text:string", plan.Options{})
	if err != nil || p.Sites[0].Args[2].Unfetched.Code != reasons.None {
		t.Error(err)
	}
}

// TestHeader prints declarations, and has clang compile them.
func TestHeader(t *testing.T) {
	for _, c := range []struct {
		def, want string
	}{
		{"words l t e", `/* SEC("func=words l t e") */
int func(void *ctx, int err, __s64 l, __u8 t, __u32 e);

/* What a program can hand to user space, for Plan.Event of package plan. */
struct func_event {
	__u64 site; /* bpf_get_attach_cookie(ctx) */
	__u64 err;
	__s64 l;
	__u64 t;
	__u64 e;
};
`},
		{"hit=words text:string l t $comm", `struct hit_args {
	char text[64] __attribute__((aligned(8))); /* const char *, as string */
	__s64 l;                                   /* long int */
	__u64 t;                                   /* _Bool */
	char comm[16] __attribute__((aligned(8))); /* the task's name */
};
_Static_assert(sizeof(struct hit_args) == 96, "hit_args");

/* SEC("hit=words text:string l t $comm") */
int hit(void *ctx, int err, struct hit_args *args);

/* What a program can hand to user space, for Plan.Event of package plan. */
struct hit_event {
	__u64 site; /* bpf_get_attach_cookie(ctx) */
	__u64 err;
	struct hit_args args; /* *args */
};
`},
		{"take_pair p err=x register=x ctx=p.a:u16[3]", `struct func_args {
	__u8 p[16] __attribute__((aligned(8)));   /* struct pair */
	__s64 err;                                /* int */
	__s64 register_;                          /* int */
	__u16 ctx[3] __attribute__((aligned(8))); /* long int, as u16[3] */
};
_Static_assert(sizeof(struct func_args) == 40, "func_args");

/* SEC("func=take_pair p err=x register=x ctx=p.a:u16[3]") */
int func(void *ctx, int err, struct func_args *args);

/* What a program can hand to user space, for Plan.Event of package plan. */
struct func_event {
	__u64 site; /* bpf_get_attach_cookie(ctx) */
	__u64 err;
	struct func_args args; /* *args */
};
`},
		{"w* $params", `/* For walk. */
struct func_args_1 {
	__u64 n;    /* struct node * */
	__s64 i;    /* int */
	__u64 list; /* struct node ** */
};
_Static_assert(sizeof(struct func_args_1) == 24, "func_args_1");

/* SEC("func=w* $params") */
int func_1(void *ctx, int err, struct func_args_1 *args);

/* What a program can hand to user space, for Plan.Event of package plan. */
struct func_event_1 {
	__u64 site; /* bpf_get_attach_cookie(ctx) */
	__u64 err;
	struct func_args_1 args; /* *args */
};

/* For words. */
struct func_args_2 {
	__s64 l;    /* long int */
	__u64 ul;   /* u64 */
	__u64 t;    /* _Bool */
	__u64 e;    /* enum color */
	__s64 lv;   /* enum level */
	__u64 text; /* const char * */
};
_Static_assert(sizeof(struct func_args_2) == 48, "func_args_2");

/* SEC("func=w* $params") */
int func_2(void *ctx, int err, struct func_args_2 *args);

/* What a program can hand to user space, for Plan.Event of package plan. */
struct func_event_2 {
	__u64 site; /* bpf_get_attach_cookie(ctx) */
	__u64 err;
	struct func_args_2 args; /* *args */
};
`},
	} {
		p, err := plantest.Fixture(t, program, c.def, plan.Options{})
		if err != nil {
			t.Errorf("%s: %v", c.def, err)
			continue
		}
		if diff := cmp.Diff(c.want, p.Header()); diff != "" {
			t.Errorf("%s: %s", c.def, diff)
		}
		compile(t, p.Header())
	}
}

// compile checks a header with clang.
func compile(t *testing.T, header string) {
	t.Helper()
	clang, err := exec.LookPath("clang-14")
	if err != nil {
		testenv.Missing(t, "%v", err)
		return
	}
	const types = `typedef unsigned char __u8; typedef unsigned short __u16; typedef unsigned __u32; typedef unsigned long long __u64;
typedef signed char __s8; typedef short __s16; typedef int __s32; typedef long long __s64;
`
	cmd := exec.Command(clang, "-target", "bpf", "-Wall", "-Werror", "-fsyntax-only", "-x", "c", "-")
	cmd.Stdin = strings.NewReader(types + header)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\n%s", err, out, header)
	}
}
