package probe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// defined returns a definition without options at offset 0.
func defined(group, event, function string, args ...Arg) Definition {
	return Definition{Options: DefaultOptions(), Group: group, Event: event, Point: Point{Function: function}, Args: args}
}

func variable(name string) Arg { return Arg{Name: name, Expr: Expr{Name: name}} }

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
		{"f=main@x.c%return a", with(defined("", "f", "main", variable("a")), func(d *Definition) {
			d.Point.Source, d.Point.Return = "x.c", true
		}), ""},

		{"f=g a b=c d:u32 e=f:x8", defined("", "f", "g",
			variable("a"),
			Arg{Name: "b", Expr: Expr{Name: "c"}},
			Arg{Name: "d", Expr: Expr{Name: "d"}, Type: TypeSpec{Kind: Unsigned, Bits: 32}},
			Arg{Name: "e", Expr: Expr{Name: "f"}, Type: TypeSpec{Kind: Hex, Bits: 8}},
		), ""},
		{"f=g a:s64 b:s16", defined("", "f", "g",
			Arg{Name: "a", Expr: Expr{Name: "a"}, Type: TypeSpec{Kind: Signed, Bits: 64}},
			Arg{Name: "b", Expr: Expr{Name: "b"}, Type: TypeSpec{Kind: Signed, Bits: 16}},
		), ""},
		{"g a=a b=a", defined("", "", "g", variable("a"), Arg{Name: "b", Expr: Expr{Name: "a"}}), "g a b=a"},
		{" f=g\ta \n\tb\n", defined("", "f", "g", variable("a"), variable("b")), "f=g a b"},
		{"func=g\narg1\n", defined("", "func", "g", variable("arg1")), "func=g arg1"},
		{"exit=do_exit\nc=code", defined("", "exit", "do_exit", Arg{Name: "c", Expr: Expr{Name: "code"}}), "exit=do_exit c=code"},

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
		{"exec=run a", defined("", "exec", "run", variable("a")), ""},
	} {
		d, err := Parse(tt.text)
		if err != nil {
			t.Errorf("%+v", err)
			continue
		}
		if !d.Equal(&tt.want) {
			t.Errorf("Parse(%q)\n got %+v\nwant %+v", tt.text, *d, tt.want)
		}
		print := tt.print
		if print == "" {
			print = tt.text
		}
		if diff := cmp.Diff(print, d.String()); diff != "" {
			t.Errorf("Parse(%q) prints (-want +got):\n%s", tt.text, diff)
		}
		if d.Text != tt.text {
			t.Errorf("Parse(%q).Text = %q", tt.text, d.Text)
		}
	}
}

// Each position must be where the part stands in the text.
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
			if a.Equal(b) != (i == j) {
				t.Errorf("%q equals %q: %v", texts[i], texts[j], a.Equal(b))
			}
		}
	}
	spaced, err := Parse("inlines=no\nexec=/x\n  g:e=f@s+4  a=b:u8 ")
	if err != nil {
		t.Fatal(err)
	}
	if !spaced.Equal(all[0]) {
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
