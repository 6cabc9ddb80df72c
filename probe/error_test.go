package probe

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/caret"
)

func TestParseError(t *testing.T) {
	for _, tt := range []struct {
		text   string
		column int
		msg    string
	}{
		{"", 1,
			`expected a function name or pattern, found the end`},
		{" \n", 3,
			`expected a function name or pattern, found the end`},
		{`exec=/bin/ls;`, 14,
			`expected a function name or pattern, found the end`},
		{`exec=;f=g`, 6,
			`expected a path after "exec=", found the end of the option`},
		{"exec= \nf=g", 7,
			`expected a path after "exec=", found the end of the option`},
		{`module=;f=g`, 8,
			`expected the name or path of a module after "module=", found the end of the option`},
		{`exec=/a;exec=/b;f=g`, 9,
			`expected each option once, found "exec" again`},
		{`exec=/a;module=b;f=g`, 9,
			`expected exec or module, found both`},
		{`inlines=maybe;f=g`, 9,
			`expected yes or no after "inlines=", found "maybe"`},
		{`force=;f=g`, 7,
			`expected yes or no after "force=", found the end of the option`},
		{"force=Yes\nf=g", 7,
			`expected yes or no after "force=", found "Yes"`},
		{`exce=/bin/ls;f=g`, 1,
			`expected an option (doubt=, exec=, force=, if=, ifmissing=, inlines= or module=) before the semicolon, found "exce"; did you mean "exec"?`},
		{"exce=/bin/ls\nf=g", 1,
			`expected an option (doubt=, exec=, force=, if=, ifmissing=, inlines= or module=) before the end of the line, found "exce"; did you mean "exec"?`},
		{"modul=ext4\nf=g", 1,
			`expected an option (doubt=, exec=, force=, if=, ifmissing=, inlines= or module=) before the end of the line, found "modul"; did you mean "module"?`},
		{`bogus=1;f=g`, 1,
			`expected an option (doubt=, exec=, force=, if=, ifmissing=, inlines= or module=) before the semicolon, found "bogus"`},
		{`f=g a;`, 1,
			`expected an option (doubt=, exec=, force=, if=, ifmissing=, inlines= or module=) before the semicolon, found "f"; a definition itself ends without a semicolon`},
		{`;f=g`, 1,
			`expected an option (doubt=, exec=, force=, if=, ifmissing=, inlines= or module=), found ";"`},
		{"=;f=g", 1,
			`expected an option (doubt=, exec=, force=, if=, ifmissing=, inlines= or module=), found "="`},
		{"force=yes;\n;f=g", 12,
			`expected an option (doubt=, exec=, force=, if=, ifmissing=, inlines= or module=), found ";"`},
		{`f=foo;x=*`, 1,
			`expected an option (doubt=, exec=, force=, if=, ifmissing=, inlines= or module=) before the semicolon, found "f"`},
		{`=g`, 1,
			`expected an event name, found "="`},
		{`1e=g`, 1,
			`expected an event name, found "1e"`},
		{`my*=g`, 3,
			`expected ":" or "=" after the event name, found "*"`},
		{`a-b=g`, 2,
			`expected ":" or "=" after the event name, found "-"`},
		{`a:=g`, 3,
			`expected an event name after the group, found "="`},
		{`a:b:c=g`, 4,
			`expected "=" after the event name, found ":"`},
		{`a: b=g`, 3,
			`expected the number of a line, found a space`},
		{`f=`, 3,
			`expected a function name or pattern, found the end`},
		{`f= g`, 3,
			`expected a function name or pattern, found a space`},
		{`f=[ab`, 3,
			`expected a class with its "]" (in a name "[" needs a backslash), found "[ab"`},
		{`f=[] g]`, 3,
			`expected a class with its "]" (in a name "[" needs a backslash), found "[]"`},
		{`f="g"`, 3,
			`expected a function name or pattern, found "\""`},
		{`f=operator==`, 11,
			`expected "@SRC", ":LINE", ";PATTERN", "+OFFSET", "%return", "%exit" or a space after the function (in a name any other sign needs a backslash), found "="`},
		{`f=g\`, 5,
			`expected a character after the backslash, found the end`},
		{`f=%`, 4,
			`expected the provider or name of a statically defined probe, or a pattern, found the end`},
		{`f=%sdt_x:`, 10,
			`expected the name of a statically defined probe after its provider, or a pattern, found the end`},
		{`f=%sdt_x:y%return`, 11,
			`expected a space after the statically defined probe, found "%return"`},
		{`f=g@`, 5,
			`expected the path or pattern of a source file, found the end`},
		{`f=g@ x`, 5,
			`expected the path or pattern of a source file, found a space`},
		{`f=g@a@b`, 6,
			`expected ":LINE", ";PATTERN", "+OFFSET", "%return", "%exit" or a space after the source file, found "@b"`},
		{`f=g+`, 5,
			`expected an offset in bytes (in a name "+" needs a backslash), found the end`},
		{`f=g+x`, 5,
			`expected an offset in bytes (in a name "+" needs a backslash), found "x"`},
		{`f=g+-1`, 5,
			`expected an offset in bytes (in a name "+" needs a backslash), found "-"`},
		{`f=g+010`, 5,
			`expected a decimal number without leading zeros, or one in hexadecimal with 0x, found "010"`},
		{`f=g+0x`, 5,
			`expected an offset in bytes (in a name "+" needs a backslash): a number of up to 64 bits, decimal or hexadecimal with 0x, found "0x"`},
		{`f=g+12k`, 5,
			`expected an offset in bytes (in a name "+" needs a backslash): a number of up to 64 bits, decimal or hexadecimal with 0x, found "12k"`},
		{`f=g+0x10000000000000000`, 5,
			`expected an offset in bytes (in a name "+" needs a backslash): a number of up to 64 bits, decimal or hexadecimal with 0x, found "0x10000000000000000"`},
		{`f=g+4@a.c`, 6,
			`expected a space after the offset, found "@a"`},
		{`f=g+4%return`, 6,
			`expected a space after the offset, found "%return"`},
		{`f=g%ret`, 4,
			`expected "@SRC", ":LINE", ";PATTERN", "+OFFSET", "%return", "%exit" or a space after the function (in a name any other sign needs a backslash), found "%ret"`},
		{`f=g%exit+4`, 9,
			`expected a space after "%exit", found "+"`},
		{`f=g%return+4`, 11,
			`expected a space after "%return", found "+"`},
		{`f=g%`, 4,
			`expected "@SRC", ":LINE", ";PATTERN", "+OFFSET", "%return", "%exit" or a space after the function (in a name any other sign needs a backslash), found "%"`},
		{`f=g ->a`, 5,
			`expected an argument ([NAME=]EXPRESSION[:TYPE]), found "->"`},
		{`f=g x=`, 7,
			`expected an expression after the argument's name, found the end`},
		{`f=g x= y`, 7,
			`expected an expression after the argument's name, found a space`},
		{`f=g x=y=z`, 8,
			`expected ":TYPE", "@user" or a space after the expression, found "="`},
		{`f=g 1a`, 5,
			`expected an argument ([NAME=]EXPRESSION[:TYPE]), found "1a"`},
		{`f=g x=1`, 7,
			`expected an expression after the argument's name, found "1"`},
		{`f=g x=$params`, 5,
			`expected no name for "$params", which stands for several arguments, found "x"`},
		{`f=g +8(%di`, 11, `expected an operator or ")", found the end`},
		{`f=g +8%di`, 5, `expected an argument ([NAME=]EXPRESSION[:TYPE]), found "+"`},
		{`f=g -8()`, 8, `expected an expression for an address, found ")"`},
		{`f=g x=(int)`, 12, `expected what is cast to int, found the end`},
		{`f=g x=(int )+`, 13, `expected what is cast to int, found "+"`},
		{`f=g *`, 6, `expected an operand after "*", found the end`},
		{`f=g a +b`, 7, `expected an argument ([NAME=]EXPRESSION[:TYPE]), found "+"`},
		{`f=g a+ b`, 7, `expected an operand after "+", found a space`},
		{`f=g (a`, 7, `expected an operator or ")", found the end`},
		{`f=g a=="b`, 8, `expected a text that ends with "\""`},
		{`f=g sizeof()`, 12, `expected a type, found ")"`},
		{`f=g container_of(a)`, 19, `expected an operator or ",", found ")"`},
		{`f=g container_of(a,struct x*,m)`, 20, `expected the type of a structure, found "struct x *"`},
		{`f=g container_of(a,struct x,)`, 29, `expected the name of a member, found ")"`},
		{`if=;f=g a`, 4, `expected a condition, found the end`},
		{`if=size >;f=g a`, 10, `expected an operand after ">", found the end`},
		{`if=size > 3 );f=g a`, 13, `expected an operator or the end of the condition, found ")"`},
		{`ifmissing=maybe;f=g a`, 11, `expected pass or drop after "ifmissing=", found "maybe"`},
		{`doubt=mark;f=g a`, 7, `expected missing or keep after "doubt=", found "mark"`},
		{`doubt=;f=g a`, 7, `expected missing or keep after "doubt=", found ""`},
		{`f=g a,b`, 6,
			`expected ":TYPE", "@user" or a space after the expression, found ","`},
		{`f=g a é`, 7,
			`expected an argument ([NAME=]EXPRESSION[:TYPE]), found "é"`},
		{`f=g a=b a=c`, 9,
			`expected each argument name once, found "a" again (first at column 5)`},
		{`f=g a:`, 7,
			`expected a type (u8 to u64, s8 to s64, x8 to x64, u, s, x, char, bool, string, ustring, hex, symbol or bBITS@OFFSET/SIZE), found the end`},
		{`f=g a: u8`, 7,
			`expected a type (u8 to u64, s8 to s64, x8 to x64, u, s, x, char, bool, string, ustring, hex, symbol or bBITS@OFFSET/SIZE), found a space`},
		{`f=g a:u31`, 7,
			`expected a type (u8 to u64, s8 to s64, x8 to x64, u, s, x, char, bool, string, ustring, hex, symbol or bBITS@OFFSET/SIZE), found "u31"`},
		{`f=g a:int`, 7,
			`expected a type (u8 to u64, s8 to s64, x8 to x64, u, s, x, char, bool, string, ustring, hex, symbol or bBITS@OFFSET/SIZE), found "int"`},
		{`f=g a:u32:s8`, 10,
			`expected "@user" or a space after the type, found ":"`},
		{`f=g a:u8x`, 7,
			`expected a type (u8 to u64, s8 to s64, x8 to x64, u, s, x, char, bool, string, ustring, hex, symbol or bBITS@OFFSET/SIZE), found "u8x"`},
		{`f=1234`, 3,
			`expected a function name or pattern, or an address in hexadecimal with 0x, found "1234"`},
		{`f=0x12+4`, 7,
			`expected a space after the address, found "+"`},
		{`a.c:0`, 5,
			`expected the number of a line from 1 on, found "0"`},
		{`a.c:4+1`, 6,
			`expected a space after the line, found "+"`},
		{`f=a.c:x`, 7,
			`expected the number of a line, found "x"`},
		{`f=g:-1`, 5,
			`expected the number of a line, found "-"`},
		{`f=g:99999999999`, 5,
			`expected the number of a line from 0 on, found "99999999999"`},
		{`f=g:3%return`, 6,
			`expected a space after the line, found "%return"`},
		{`f=g a->`, 8,
			`expected the name of a member, found the end`},
		{`f=g a.1`, 7,
			`expected the name of a member, found "1"`},
		{`f=g a[`, 7,
			`expected an index: a number or an expression, found the end`},
		{`f=g a[]`, 7,
			`expected an index: a number or an expression, found "]"`},
		{`f=g a[1`, 8,
			`expected "]" after the index, found the end`},
		{`f=g a[99999999999]`, 7,
			`expected an index of no more than 31 bits, found "99999999999"`},
		{`f=g %`, 6,
			`expected a register after "%", found the end`},
		{`f=g %ax->x`, 8,
			`expected no member or element of "%ax", whose type is not known, found "->"`},
		{`f=g @`, 6,
			`expected a symbol or an address after "@", found the end`},
		{`f=g @a+`, 8,
			`expected an offset in bytes, found the end`},
		{`f=g $arg0`, 6,
			`expected argN, retval, duration, params, vars, comm, caller, frame, stack, stackN, pid, tid, uid, gid, cpu, cgroup or time after "$", found "arg0"`},
		{`f=g $arg65`, 6,
			`expected argN, retval, duration, params, vars, comm, caller, frame, stack, stackN, pid, tid, uid, gid, cpu, cgroup or time after "$", found "arg65"`},
		{`f=g $stack99999`, 6,
			`expected argN, retval, duration, params, vars, comm, caller, frame, stack, stackN, pid, tid, uid, gid, cpu, cgroup or time after "$", found "stack99999"`},
		{`f=g $params:u8`, 12,
			`expected a space after "$params", found ":"`},
		{`f=g x=\y`, 8,
			`expected a number after the backslash, found "y"`},
		{`f=g a@usr`, 6,
			`expected ":TYPE", "@user" or a space after the expression, found "@usr"`},
		{`f=g a:b40@0/32`, 7,
			`expected bits that fit into a container of 8, 16, 32 or 64, found "b40@0/32"`},
		{`f=g a:b4@30/32`, 7,
			`expected bits that fit into a container of 8, 16, 32 or 64, found "b4@30/32"`},
		{`f=g a:b4@2/24`, 7,
			`expected bits that fit into a container of 8, 16, 32 or 64, found "b4@2/24"`},
		{`f=g a:b4@2`, 11,
			`expected "/" after the offset of a bit-field, in bits, found the end`},
		{`f=g a:u32[65]`, 11,
			`expected 1 to 64 elements, found "65"`},
		{`f=g a:u32[0]`, 11,
			`expected 1 to 64 elements, found "0"`},
		{`f=g a:string[2]`, 13,
			`expected no array of "string", found "["`},
		{`f=g a->x b->y x=c x=d`, 19,
			`expected each argument name once, found "x" again (first at column 15)`},
		{"f=g\x00", 4,
			`expected text, found the control character '\x00'`},
		{"f=g a\x7f", 6,
			`expected text, found the control character '\x7f'`},
	} {
		d, err := Parse(tt.text)
		checkError(t, tt.text, d, err, tt.column, tt.msg)
		// Whatever is wrong on a command line is wrong in a section name too.
		if d, err := ParseSection(tt.text); d != nil || err == nil {
			t.Errorf("ParseSection(%q) = %v, %v, want an error", tt.text, d, err)
		}
	}
}

func TestParseSectionError(t *testing.T) {
	for _, tt := range []struct {
		name   string
		column int
		msg    string
	}{
		{"", 1, `expected EVENT= before the function, as in "func=get_page page", found the end`},
		{"get_page page", 1, `expected EVENT= before the function, as in "func=get_page page", found "get_page"`},
		{"get_page a=page", 1, `expected EVENT= before the function, as in "func=get_page page", found "get_page"`},
		{"force=yes; get_page", 12, `expected EVENT= before the function, as in "func=get_page page", found "get_page"`},
		{"kprobe/foo", 1, `expected EVENT= before the function, as in "func=get_page page", found "kprobe"`},
		{"func =foo", 1, `expected EVENT= before the function, as in "func=get_page page", found "func"`},
	} {
		d, err := ParseSection(tt.name)
		checkError(t, tt.name, d, err, tt.column, tt.msg)
	}
	d, err := ParseSection("func=my_func_*_abcd arg1")
	if err != nil || d.Event != "func" {
		t.Errorf("a correct section name: %v, %v", d, err)
	}
}

func checkError(t *testing.T, text string, d *Definition, err error, column int, msg string) {
	t.Helper()
	var e *Error
	if d != nil || !errors.As(err, &e) {
		t.Errorf("%q parses to %v, %v, want an *Error", text, d, err)
		return
	}
	if e.Text != text || e.Column != column || e.Msg != msg {
		t.Errorf("%q\n got column %d: %s\nwant column %d: %s", text, e.Column, e.Msg, column, msg)
	}
}

func TestErrorFormat(t *testing.T) {
	for _, tt := range []struct{ text, line, long string }{
		{
			"f=g ->a",
			`column 5: expected an argument ([NAME=]EXPRESSION[:TYPE]), found "->": definition "f=g ->a"`,
			"f=g ->a\n    ^",
		},
		{
			"f=g\n\ta b,c\nd",
			`column 9: expected ":TYPE", "@user" or a space after the expression, found ",": definition "f=g\n\ta b,c\nd"`,
			"\ta b,c\n\t   ^",
		},
		{
			"f=caf\u00e9 1",
			"column 9: expected an argument ([NAME=]EXPRESSION[:TYPE]), found \"1\": definition \"f=caf\u00e9 1\"",
			"f=caf\u00e9 1\n       ^",
		},
		{
			"f=g a:",
			`column 7: expected a type (u8 to u64, s8 to s64, x8 to x64, u, s, x, char, bool, string, ustring, hex, symbol or bBITS@OFFSET/SIZE), found the end: definition "f=g a:"`,
			"f=g a:\n      ^",
		},
	} {
		_, err := Parse(tt.text)
		for format, want := range map[string]string{
			"%v":  tt.line,
			"%s":  tt.line,
			"%q":  fmt.Sprintf("%q", tt.line),
			"%+v": tt.line + "\n" + tt.long,
		} {
			if got := fmt.Sprintf(format, err); got != want {
				t.Errorf("%s:\n%s\nwant\n%s", format, got, want)
			}
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%q has more than one line", err)
		}
	}
}

func TestErrorf(t *testing.T) {
	d, err := Parse("f=g a b=nosuch")
	if err != nil {
		t.Fatal(err)
	}
	err = Errorf(d, d.Args[1].Expr.Pos, "no variable %q in %s: %w", "nosuch", "g", fs.ErrNotExist)
	want := `column 9: no variable "nosuch" in g: file does not exist: definition "f=g a b=nosuch"`
	if err.Error() != want {
		t.Errorf("got %s, want %s", err, want)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error("the wrapped error is lost")
	}
	for pos, column := range map[int]int{-1: 1, 0: 1, 14: 15, 99: 15} {
		var e *Error
		if !errors.As(Errorf(d, pos, "x"), &e) || e.Column != column {
			t.Errorf("position %d: got %+v, want column %d", pos, e, column)
		}
		if !strings.HasSuffix(caret.Mark(e.Text, e.Column), "^") {
			t.Errorf("position %d: no caret in %q", pos, caret.Mark(e.Text, e.Column))
		}
	}
}
