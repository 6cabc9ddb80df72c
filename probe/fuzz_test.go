package probe

import (
	"errors"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/caret"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
)

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"func=my_func_*_abcd arg1",
		"get_page page",
		"exec=/lib/libc.so.6;\ninlines=no\nforce=yes; g:f=write@*/io.c+0x10 fd n=count:u32",
		" module = ext4 ;\n\tf=ext4_*%return\n\ta:x64\n\tb ",
		"f=[!]a-z]?\\*\\=*[=;@+]x@[+@]\\+/\\@x",
		"x[=]y\\=z a=b",
		"func=g\narg1\n",
		"exit=do_exit\ncode",
		"modul=ext4\nf=g",
		"foo;ret*",
		"f=g a->b.c[3]",
		"f=g:10 $retval %ax",
		"f=g+0xffffffffffffffff a:u8 b:s16 c:x32",
		"f=caf\u00e9\xff a",
		"if=size > 4096 && flags & 0x400 || !p->q;ifmissing=pass;f=g a",
		"doubt=keep;f=g a b:string",
		"if=$comm ~ \"ba*\" && name==\"a\\x3b\\\"b\";f=g",
		"f=g (struct sock *)p->sk_state:u8 ((struct sock *)p)->x container_of(a->b,struct x,c.d[2])->e *q &r (u32)-a",
		"f=g +8(%di):string -4(+u0(@x)) +0(p):u32[3] a%b x*3+y-1<<2 a[i+1] a[-1] sizeof(struct x)*$pid $caller (a)-b (a)(b) \\5+1",
		"f=g buf[0..count] buf[n+1 .. p->m]:hex buf[-1..3]:string x:hex[16] a.b[1..2]",
		"f=g ((((a)))) --a !~a (a||b)&&c",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		section, sectionErr := ParseSection(text)
		d, err := Parse(text)
		if err != nil {
			var e *Error
			if d != nil || section != nil || sectionErr == nil {
				t.Fatalf("error %v, but results %v and %v (%v)", err, d, section, sectionErr)
			}
			if !errors.As(err, &e) || e.Text != text || e.Column < 1 || e.Column > len(text)+1 || caret.Mark(e.Text, e.Column) == "" {
				t.Fatalf("misplaced error %+v", err)
			}
			return
		}
		if (d.Event != "") != (sectionErr == nil) || sectionErr == nil && !equalDefinitions(section, d) {
			t.Fatalf("Parse gives %q, ParseSection %v, %v", d, section, sectionErr)
		}
		if sectionErr == nil && !LooksLikeDefinition(text) {
			t.Fatalf("%q does not look like the definition that it is", text)
		}

		printed := d.String()
		again, err := Parse(printed)
		if err != nil {
			t.Fatalf("%q prints as %q: %v", text, printed, err)
		}
		if !equalDefinitions(again, d) {
			t.Fatalf("%q prints as %q, which is %+v instead of %+v", text, printed, again, d)
		}
		if again.String() != printed {
			t.Fatalf("%q prints as %q, and that as %q", text, printed, again)
		}

		// Each part stands where its position says.
		names := make(map[string]bool)
		at := func(pos int, part string) {
			if pos < 0 || pos+len(part) > len(text) || text[pos:pos+len(part)] != part {
				t.Fatalf("%q: no %q at offset %d", text, part, pos)
			}
		}
		at(d.Point.Pos, d.Point.Function)
		for _, a := range d.Args {
			if a.Expr.Kind == syntax.KindVariable {
				at(a.Expr.Pos, a.Expr.Name)
			}
			for _, p := range a.Expr.Path {
				at(p.Pos, map[syntax.StepKind]string{syntax.StepDot: ".", syntax.StepArrow: "->", syntax.StepIndex: "[", syntax.StepRange: "["}[p.Kind])
			}
			if a.Type.Count == 0 && a.Type.Kind != syntax.TypeBitfield && a.Type.Kind != syntax.TypeSymbol {
				at(a.Type.Pos, a.Type.String())
			}
			if names[a.Name] {
				t.Fatalf("%q has two arguments %q", text, a.Name)
			}
			names[a.Name] = true
		}
	})
}
