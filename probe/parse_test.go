package probe

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/internal/syntax"
)

// defined returns a definition without options at offset 0.
func defined(group, event, function string, args ...Arg) Definition {
	return Definition{Options: defaultOptions(), Group: group, Event: event, Point: Point{Function: function}, Args: args}
}

func variable(name string) Arg { return Arg{Name: name, Expr: syntax.Expr{Name: name}} }

func TestParse(t *testing.T) {
	with := func(d Definition, change func(*Definition)) Definition {
		change(&d)
		return d
	}
	for _, tt := range []struct {
		text  string
		want  Definition
		print string // when it is not the text itself
	}{
		{"get_page", defined("", "", "get_page"), ""},
		{"get_page page", defined("", "", "get_page", variable("page")), ""},
		{"func=get_page page", defined("", "func", "get_page", variable("page")), ""},
		{"func=my_func_*_abcd arg1", defined("", "func", "my_func_*_abcd", variable("arg1")), ""},
		{"grp:func=get_page", defined("grp", "func", "get_page"), ""},
		{"_g1:_e2=_f3.isra.0", defined("_g1", "_e2", "_f3.isra.0"), ""},
		{"f=[!a-z_]?x[]]*", defined("", "f", "[!a-z_]?x[]]*"), ""},
		{`f=operator\=`, defined("", "f", `operator\=`), ""},
		{`operator\=\=`, defined("", "", `operator\=\=`), ""},
		{"x[=@]y", defined("", "", "x[=@]y"), ""},
		{"f=caf\u00e9$1", defined("", "f", "caf\u00e9$1"), ""},

		{"f=main@src/*.c", with(defined("", "f", "main"), func(d *Definition) { d.Point.Source = "src/*.c" }), ""},
		{"main@a=b.c", with(defined("", "", "main"), func(d *Definition) { d.Point.Source = "a=b.c" }), ""},
		{`f=main@c\+\+/x-[+@].cc+16`, with(defined("", "f", "main"), func(d *Definition) {
			d.Point.Source, d.Point.Offset = `c\+\+/x-[+@].cc`, 16
		}), `f=main@c\+\+/x-[+@].cc+0x10`},
		{"f=main+0x1F", with(defined("", "f", "main"), func(d *Definition) { d.Point.Offset = 0x1f }), "f=main+0x1f"},
		{"f=main+0xffffffffffffffff", with(defined("", "f", "main"), func(d *Definition) { d.Point.Offset = 1<<64 - 1 }), ""},
		{"f=main+0", defined("", "f", "main"), "f=main"},
		{"f=main%return", with(defined("", "f", "main"), func(d *Definition) { d.Point.Return = true }), ""},
		{"f=main%exit", with(defined("", "f", "main"), func(d *Definition) { d.Point.Exit = true }), ""},
		{"f=main@x.c%return a", with(defined("", "f", "main", variable("a")), func(d *Definition) {
			d.Point.Source, d.Point.Return = "x.c", true
		}), ""},

		{"f=g a b=c d:u32 e=f:x8", defined("", "f", "g",
			variable("a"),
			Arg{Name: "b", Expr: syntax.Expr{Name: "c"}},
			Arg{Name: "d", Expr: syntax.Expr{Name: "d"}, Type: syntax.TypeSpec{Kind: syntax.TypeUnsigned, Bits: 32}},
			Arg{Name: "e", Expr: syntax.Expr{Name: "f"}, Type: syntax.TypeSpec{Kind: syntax.TypeHex, Bits: 8}},
		), ""},
		{"f=g a:s64 b:s16", defined("", "f", "g",
			Arg{Name: "a", Expr: syntax.Expr{Name: "a"}, Type: syntax.TypeSpec{Kind: syntax.TypeSigned, Bits: 64}},
			Arg{Name: "b", Expr: syntax.Expr{Name: "b"}, Type: syntax.TypeSpec{Kind: syntax.TypeSigned, Bits: 16}},
		), ""},
		{"g a=a b=a", defined("", "", "g", variable("a"), Arg{Name: "b", Expr: syntax.Expr{Name: "a"}}), "g a b=a"},
		{" f=g\ta \n\tb\n", defined("", "f", "g", variable("a"), variable("b")), "f=g a b"},
		{"func=g\narg1\n", defined("", "func", "g", variable("arg1")), "func=g arg1"},
		{"exit=do_exit\nc=code", defined("", "exit", "do_exit", Arg{Name: "c", Expr: syntax.Expr{Name: "code"}}), "exit=do_exit c=code"},

		{"exec=/lib/libc.so.6;f=write fd", with(defined("", "f", "write", variable("fd")), func(d *Definition) {
			d.Options.Exec = "/lib/libc.so.6"
		}), "exec=/lib/libc.so.6; f=write fd"},
		{"module=ext4\nf=ext4_read", with(defined("", "f", "ext4_read"), func(d *Definition) {
			d.Options.Module = "ext4"
		}), "module=ext4; f=ext4_read"},
		{"\n exec = /a b/c=d ;\n\tinlines=\tno\n\nforce=yes;f=g", with(defined("", "f", "g"), func(d *Definition) {
			d.Options = Options{Exec: "/a b/c=d", Inlines: false, Force: true}
		}), "exec=/a b/c=d; inlines=no; force=yes; f=g"},
		{"inlines=yes;force=no;g", defined("", "", "g"), "g"},
		{"doubt=missing;g", defined("", "", "g"), "g"},
		{"doubt = keep\nf=g", with(defined("", "f", "g"), func(d *Definition) { d.Options.KeepDoubt = true }), "doubt=keep; f=g"},
		{"exec=run a", defined("", "exec", "run", variable("a")), ""},
	} {
		d, err := Parse(tt.text)
		if err != nil {
			t.Errorf("%+v", err)
			continue
		}
		if !equalDefinitions(d, &tt.want) {
			t.Errorf("Parse(%q)\n got %+v\nwant %+v", tt.text, *d, tt.want)
		}
		printed := tt.print
		if printed == "" {
			printed = tt.text
		}
		if diff := cmp.Diff(printed, d.String()); diff != "" {
			t.Errorf("Parse(%q) prints (-want +got):\n%s", tt.text, diff)
		}
		if d.Text != tt.text {
			t.Errorf("Parse(%q).Text = %q", tt.text, d.Text)
		}
	}
}

// Each position must be where the part stands in the text.
// TestForms parses every form of points, expressions and types, and prints it: the
// same text, unless another is given.
func TestForms(t *testing.T) {
	for _, tt := range []struct {
		text string
		want Definition
		out  string
	}{
		{"g:10", Definition{Point: Point{Function: "g", Line: 10, HasLine: true}}, ""},
		{`{closure#0}`, Definition{Point: Point{Function: "{closure#0}"}}, ""},
		{`f=<T\ as\ app\:\:U<'a>>@lib.rs:3 a`, Definition{Event: "f", Point: Point{Function: `<T\ as\ app\:\:U<'a>>`, Source: "lib.rs", Line: 3, HasLine: true},
			Args: []Arg{{Name: "a", Expr: syntax.Expr{Name: "a"}}}}, ""},
		{`operator()<int,~x,!y&z|^>+4`, Definition{Point: Point{Function: "operator()<int,~x,!y&z|^>", Offset: 4}}, "operator()<int,~x,!y&z|^>+0x4"},
		{`operator\ new\[]%return`, Definition{Point: Point{Function: `operator\ new\[]`, Return: true}}, ""},
		{`operator\+\=`, Definition{Point: Point{Function: `operator\+\=`}}, ""},
		{`f=operator\=\=`, Definition{Event: "f", Point: Point{Function: `operator\=\=`}}, ""},
		{`x/y.(\*P).Meth-fm\[go.shape.struct\ {\ X\ int\;\ Y\ int\ }]`, Definition{Point: Point{Function: `x/y.(\*P).Meth-fm\[go.shape.struct\ {\ X\ int\;\ Y\ int\ }]`}}, ""},
		{"exec=/a;type\\:.eq.x", Definition{Options: Options{Exec: "/a"}, Point: Point{Function: "type\\:.eq.x"}}, "exec=/a; type\\:.eq.x"},
		{"g:0", Definition{Point: Point{Function: "g", HasLine: true}}, ""},
		{"g@mm/a.c:3", Definition{Point: Point{Function: "g", Source: "mm/a.c", Line: 3, HasLine: true}}, ""},
		{"fs/read_write.c:450", Definition{Point: Point{Source: "fs/read_write.c", Line: 450, HasLine: true}}, ""},
		{"e=a.c:1", Definition{Event: "e", Point: Point{Source: "a.c", Line: 1, HasLine: true}}, ""},
		{"g;ret*", Definition{Point: Point{Function: "g", Lazy: "ret*"}}, ""},
		{"e=g@a.c;i\\=*", Definition{Event: "e", Point: Point{Function: "g", Source: "a.c", Lazy: "i\\=*"}}, ""},
		{"a.c;i\\ =\\ 0", Definition{Point: Point{Source: "a.c", Lazy: "i\\ =\\ 0"}}, ""},
		{"force=yes;g;x", Definition{Options: Options{Force: true}, Point: Point{Function: "g", Lazy: "x"}}, "force=yes; g;x"},
		{"0xffffffff81000000", Definition{Point: Point{HasAddr: true, Address: 0xffffffff81000000}}, ""},
		{"g a->b.c[3][i]", Definition{Point: Point{Function: "g"}, Args: []Arg{{Name: "c", Expr: syntax.Expr{Name: "a", Path: []syntax.Step{
			{Kind: syntax.StepArrow, Member: "b"}, {Member: "c"}, {Kind: syntax.StepIndex, Index: 3}, {Kind: syntax.StepIndex, IndexBy: &syntax.Expr{Name: "i"}},
		}}}}}, ""},
		{"g a[-1]", Definition{Point: Point{Function: "g"}, Args: []Arg{{Name: "a", Expr: syntax.Expr{Name: "a", Path: []syntax.Step{{Kind: syntax.StepIndex, Index: -1}}}}}}, ""},
		{"g a->x b->x x", Definition{Point: Point{Function: "g"}, Args: []Arg{
			{Name: "x_2", Expr: syntax.Expr{Name: "a", Path: []syntax.Step{{Kind: syntax.StepArrow, Member: "x"}}}},
			{Name: "x_3", Expr: syntax.Expr{Name: "b", Path: []syntax.Step{{Kind: syntax.StepArrow, Member: "x"}}}},
			{Name: "x", Expr: syntax.Expr{Name: "x"}},
		}}, "g x_2=a->x x_3=b->x x"},
		{"g %ax %r10:x32", Definition{Point: Point{Function: "g"}, Args: []Arg{
			{Name: "ax", Expr: syntax.Expr{Kind: syntax.KindRegister, Name: "ax"}},
			{Name: "r10", Expr: syntax.Expr{Kind: syntax.KindRegister, Name: "r10"}, Type: syntax.TypeSpec{Kind: syntax.TypeHex, Bits: 32}},
		}}, ""},
		{"g (struct file *)%di->f", Definition{Point: Point{Function: "g"}, Args: []Arg{{Name: "f", Expr: syntax.Expr{
			Kind: syntax.KindCast, Type: syntax.TypeName{Name: "struct file", Pointers: 1}, A: &syntax.Expr{Kind: syntax.KindRegister, Name: "di"}, Path: []syntax.Step{{Kind: syntax.StepArrow, Member: "f"}},
		}}}}, "g ((struct file *)%di)->f"},
		{"g @jiffies @a.b-8 @0xffff0000+", Definition{}, "error"},
		{"g @jiffies @a.b-8 @x+16 @0xffff0000", Definition{Point: Point{Function: "g"}, Args: []Arg{
			{Name: "jiffies", Expr: syntax.Expr{Kind: syntax.KindSymbol, Name: "jiffies"}},
			{Name: "a_b", Expr: syntax.Expr{Kind: syntax.KindSymbol, Name: "a.b", Number: 1<<64 - 8}},
			{Name: "x", Expr: syntax.Expr{Kind: syntax.KindSymbol, Name: "x", Number: 16}},
			{Name: "memory", Expr: syntax.Expr{Kind: syntax.KindAddress, Number: 0xffff0000}},
		}}, "g @jiffies @a.b-0x8 @x+0x10 @0xffff0000"},
		{"g \\-3 k=\\0x10", Definition{Point: Point{Function: "g"}, Args: []Arg{
			{Name: "value", Expr: syntax.Expr{Kind: syntax.KindImmediate, Number: 1<<64 - 3}}, {Name: "k", Expr: syntax.Expr{Kind: syntax.KindImmediate, Number: 16}},
		}}, "g \\-3 k=\\16"},
		{"%sdt_x:y*", Definition{Point: Point{Provider: "x", Function: "y*"}}, ""},
		{"%x:y", Definition{Point: Point{Provider: "x", Function: "y"}}, "%sdt_x:y"},
		{"sdt_x:y", Definition{Point: Point{Provider: "x", Function: "y"}}, "%sdt_x:y"},
		{"%y", Definition{Point: Point{Provider: "*", Function: "y"}}, "%sdt_*:y"},
		{"sdt_x:3", Definition{Point: Point{Function: "sdt_x", Line: 3, HasLine: true}}, ""},
		{"g $arg1 $arg2->m:u8", Definition{Point: Point{Function: "g"}, Args: []Arg{
			{Name: "arg1", Expr: syntax.Expr{Kind: syntax.KindArgument, Number: 1}},
			{Name: "m", Expr: syntax.Expr{Kind: syntax.KindArgument, Number: 2, Path: []syntax.Step{{Kind: syntax.StepArrow, Member: "m"}}}, Type: syntax.TypeSpec{Kind: syntax.TypeUnsigned, Bits: 8}},
		}}, ""},
		{"g%return $retval", Definition{Point: Point{Function: "g", Return: true}, Args: []Arg{{Name: "retval", Expr: syntax.Expr{Kind: syntax.KindRetval}}}}, ""},
		{"g $comm $stack $stack3 $params $vars", Definition{Point: Point{Function: "g"}, Args: []Arg{
			{Name: "comm", Expr: syntax.Expr{Kind: syntax.KindComm}}, {Name: "stack", Expr: syntax.Expr{Kind: syntax.KindStackAddr}}, {Name: "stack3", Expr: syntax.Expr{Kind: syntax.KindStack, Number: 3}},
			{Name: "params", Expr: syntax.Expr{Kind: syntax.KindParams}}, {Name: "vars", Expr: syntax.Expr{Kind: syntax.KindVars}},
		}}, ""},
		{"g a:char b:bool c:string d:ustring e:symbol f:symstr h:b4@2/32 i:u32[4] j:u k:string@user l@user", Definition{Point: Point{Function: "g"}, Args: []Arg{
			{Name: "a", Expr: syntax.Expr{Name: "a"}, Type: syntax.TypeSpec{Kind: syntax.TypeChar}}, {Name: "b", Expr: syntax.Expr{Name: "b"}, Type: syntax.TypeSpec{Kind: syntax.TypeBool}},
			{Name: "c", Expr: syntax.Expr{Name: "c"}, Type: syntax.TypeSpec{Kind: syntax.TypeString}}, {Name: "d", Expr: syntax.Expr{Name: "d"}, Type: syntax.TypeSpec{Kind: syntax.TypeUString}},
			{Name: "e", Expr: syntax.Expr{Name: "e"}, Type: syntax.TypeSpec{Kind: syntax.TypeSymbol}}, {Name: "f", Expr: syntax.Expr{Name: "f"}, Type: syntax.TypeSpec{Kind: syntax.TypeSymbol}},
			{Name: "h", Expr: syntax.Expr{Name: "h"}, Type: syntax.TypeSpec{Kind: syntax.TypeBitfield, Bits: 4, Offset: 2, Container: 32}},
			{Name: "i", Expr: syntax.Expr{Name: "i"}, Type: syntax.TypeSpec{Kind: syntax.TypeUnsigned, Bits: 32, Count: 4}},
			{Name: "j", Expr: syntax.Expr{Name: "j"}, Type: syntax.TypeSpec{Kind: syntax.TypeUnsigned}},
			{Name: "k", Expr: syntax.Expr{Name: "k"}, Type: syntax.TypeSpec{Kind: syntax.TypeString}, User: true}, {Name: "l", Expr: syntax.Expr{Name: "l"}, User: true},
		}}, "g a:char b:bool c:string d:ustring e:symbol f:symbol h:b4@2/32 i:u32[4] j:u k:string@user l@user"},
	} {
		d, err := Parse(tt.text)
		if tt.out == "error" {
			if err == nil {
				t.Errorf("%q is no error", tt.text)
			}
			continue
		}
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		tt.want.Options.Inlines = true
		if !equalDefinitions(d, &tt.want) {
			t.Errorf("%q is\n%+v, want\n%+v", tt.text, d, tt.want)
		}
		if tt.out == "" {
			tt.out = tt.text
		}
		if d.String() != tt.out {
			t.Errorf("%q prints as %q, want %q", tt.text, d.String(), tt.out)
		}
		if again, err := Parse(d.String()); err != nil || !equalDefinitions(again, d) {
			t.Errorf("%q prints as %q, which is another: %v", tt.text, d.String(), err)
		}
	}
}

// TestPerfExamples: what perf-probe(1) of Linux 6.1 shows as examples parses.
func TestPerfExamples(t *testing.T) {
	for _, text := range []string{
		"schedule", "schedule:12 cpu", "schedule:10 cpu", "schedule;rq\\ =\\ cpu_rq*", "vfs_read $vars",
		"malloc", "zfree*", "vfs_read%return $retval", "vfs_read%exit $retval", "myprobe=main", "grp:myprobe=schedule+4",
		"kernel/sched/core.c:1234", "kernel/sched/core.c;switch_count=*", "foo@bar.c+8 a b:u32", "do_fork%return",
		"getname_flags filename:string", "getname_flags filename:ustring", "do_sys_open filename:string@user",
		"__switch_to prev->comm:string", "tcp_sendmsg size sk->__sk_common.skc_dport:u16", "proc_set_foo i:s64 f=foo->bar.baz[2]",
	} {
		d, err := Parse(text)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if again, err := Parse(d.String()); err != nil || !equalDefinitions(again, d) {
			t.Errorf("%q prints as %q, which is another: %v", text, d, err)
		}
	}
}

func TestPositions(t *testing.T) {
	d, err := Parse("exec=/bin/x;\n ev=main+4 a  b=cc:u32")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{
		"main":     d.Point.Pos,
		"a":        d.Args[0].Pos,
		"b=cc:u32": d.Args[1].Pos,
		"cc:u32":   d.Args[1].Expr.Pos,
		"u32":      d.Args[1].Type.Pos,
	}
	want := map[string]int{"main": 17, "a": 24, "b=cc:u32": 27, "cc:u32": 29, "u32": 32}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("positions (-want +got):\n%s", diff)
	}
}

func TestEqual(t *testing.T) {
	base := "exec=/x; inlines=no; g:e=f@s+0x4 a=b:u8"
	texts := []string{
		base,
		"exec=/y; inlines=no; g:e=f@s+0x4 a=b:u8",
		"exec=/x; g:e=f@s+0x4 a=b:u8",
		"exec=/x; inlines=no; force=yes; g:e=f@s+0x4 a=b:u8",
		"module=x; inlines=no; g:e=f@s+0x4 a=b:u8",
		"exec=/x; inlines=no; h:e=f@s+0x4 a=b:u8",
		"exec=/x; inlines=no; e=f@s+0x4 a=b:u8",
		"exec=/x; inlines=no; g:e=h@s+0x4 a=b:u8",
		"exec=/x; inlines=no; g:e=f@t+0x4 a=b:u8",
		"exec=/x; inlines=no; g:e=f@s+0x5 a=b:u8",
		"exec=/x; inlines=no; g:e=f@s%return a=b:u8",
		"exec=/x; inlines=no; g:e=f@s+0x4 c=b:u8",
		"exec=/x; inlines=no; g:e=f@s+0x4 a=c:u8",
		"exec=/x; inlines=no; g:e=f@s+0x4 a=b:s8",
		"exec=/x; inlines=no; g:e=f@s+0x4 a=b:u16",
		"exec=/x; inlines=no; g:e=f@s+0x4 a=b",
		"exec=/x; inlines=no; g:e=f@s+0x4 a=b:u8 c",
		"exec=/x; inlines=no; g:e=f@s+0x4",
	}
	var all []*Definition
	for _, text := range texts {
		d, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	for i, a := range all {
		for j, b := range all {
			if equalDefinitions(a, b) != (i == j) {
				t.Errorf("%q equals %q: %v", texts[i], texts[j], equalDefinitions(a, b))
			}
		}
	}
	spaced, err := Parse("inlines=no\nexec=/x\n  g:e=f@s+4  a=b:u8 ")
	if err != nil {
		t.Fatal(err)
	}
	if !equalDefinitions(spaced, all[0]) {
		t.Errorf("%q does not equal %q", spaced.Text, base)
	}
}

func TestLooksLikeDefinition(t *testing.T) {
	for _, section := range []string{
		"func=foo arg", "func=my_func_*_abcd arg1", "g:e=f", "exec=/bin/x;f=g", " \nexec = /bin/x\nf=g",
		"func=", "unknown=x;func=foo",
	} {
		if !LooksLikeDefinition(section) {
			t.Errorf("%q does not look like a definition", section)
		}
	}
	for _, section := range []string{
		"", "xdp", "xdp.frags/cpumap", "tc", "classifier", "socket", "license", "version", ".text", ".maps", ".rodata.str1.1",
		"kprobe/foo", "?kprobe/foo", "kprobe.multi/foo*", "kretprobe/foo+0x10", "uprobe//bin/x:foo", "uprobe//bin/x=y:foo",
		"usdt//bin/x:provider:name", "tracepoint/sched/sched_switch", "raw_tp/sys_enter", "fentry/foo", "lsm/file_open",
		"struct_ops/x", "iter/task", "cgroup/connect4", "foo arg", "g:=f", ":e=f", "=f", "1e=f", "a-b=c", "a*=c",
	} {
		if LooksLikeDefinition(section) {
			t.Errorf("%q looks like a definition", section)
		}
	}
}
