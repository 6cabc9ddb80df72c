package probe

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
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
			`expected a path behind "exec=", found the end of the option`},
		{"exec= \nf=g", 7,
			`expected a path behind "exec=", found the end of the option`},
		{`module=;f=g`, 8,
			`expected the name or path of a module behind "module=", found the end of the option`},
		{`exec=/a;exec=/b;f=g`, 9,
			`expected each option once, found "exec" again`},
		{`exec=/a;module=b;f=g`, 9,
			`expected exec or module, found both`},
		{`inlines=maybe;f=g`, 9,
			`expected yes or no behind "inlines=", found "maybe"`},
		{`force=;f=g`, 7,
			`expected yes or no behind "force=", found the end of the option`},
		{"force=Yes\nf=g", 7,
			`expected yes or no behind "force=", found "Yes"`},
		{`exce=/bin/ls;f=g`, 1,
			`expected an option (exec=, force=, inlines= or module=) before the semicolon, found "exce"; did you mean "exec"?`},
		{"exce=/bin/ls\nf=g", 1,
			`expected an option (exec=, force=, inlines= or module=) before the end of the line, found "exce"; did you mean "exec"?`},
		{"modul=ext4\nf=g", 1,
			`expected an option (exec=, force=, inlines= or module=) before the end of the line, found "modul"; did you mean "module"?`},
		{`bogus=1;f=g`, 1,
			`expected an option (exec=, force=, inlines= or module=) before the semicolon, found "bogus"`},
		{`f=g a;`, 1,
			`expected an option (exec=, force=, inlines= or module=) before the semicolon, found "f"; a definition itself ends without a semicolon`},
		{`;f=g`, 1,
			`expected an option (exec=, force=, inlines= or module=), found ";"`},
		{"force=yes;\n;f=g", 12,
			`expected an option (exec=, force=, inlines= or module=), found ";"`},
		{`foo;ret*`, 1,
			`expected an option (exec=, force=, inlines= or module=) before the semicolon, found "foo": a lazy pattern (FUNC;PATTERN or FILE;PATTERN) is not supported yet`},
		{`f=foo;x=*`, 1,
			`expected an option (exec=, force=, inlines= or module=) before the semicolon, found "f"`},
		{`foo@a.c;ret*`, 1,
			`expected an option (exec=, force=, inlines= or module=) before the semicolon, found "foo@a.c": a lazy pattern (FUNC;PATTERN or FILE;PATTERN) is not supported yet`},
		{`=g`, 1,
			`expected an event name, found "="`},
		{`1e=g`, 1,
			`expected an event name, found "1e"`},
		{`my*=g`, 3,
			`expected ":" or "=" behind the event name, found "*"`},
		{`a-b=g`, 2,
			`expected ":" or "=" behind the event name, found "-"`},
		{`a:=g`, 3,
			`expected an event name behind the group, found "="`},
		{`a:b:c=g`, 4,
			`expected "=" behind the event name, found ":"`},
		{`a: b=g`, 2,
			`expected "@SRC", "+OFFSET", "%return" or a space behind the function, found ":": a line (FUNC:LINE or FILE:LINE) is not supported yet`},
		{`f=`, 3,
			`expected a function name or pattern, found the end`},
		{`f= g`, 3,
			`expected a function name or pattern, found a space`},
		{`f=!g`, 3,
			`expected a function name or pattern, found "!"`},
		{`f=/bin/ls`, 3,
			`expected a function name or pattern, found "/"`},
		{`f=g-h`, 4,
			`expected "@SRC", "+OFFSET", "%return" or a space behind the function, found "-"`},
		{`f=ns::g`, 5,
			`expected "@SRC", "+OFFSET", "%return" or a space behind the function, found "::": a qualified name is not supported yet`},
		{`f=[ab`, 3,
			`expected a class with its "]", found "[ab"`},
		{`f=[] g]`, 3,
			`expected a class with its "]", found "[]"`},
		{`f=g\`, 5,
			`expected a character behind the backslash, found the end`},
		{`f=g\ x`, 5,
			`expected a character behind the backslash, found a space`},
		{`f=g]`, 4,
			`expected "@SRC", "+OFFSET", "%return" or a space behind the function, found "]"`},
		{`f=0x1234`, 3,
			`expected a function name or pattern, found "0x1234": an address is not supported yet`},
		{`f=%sdt_x:y`, 3,
			`expected a function name or pattern, found "%sdt_x": a statically defined event is not supported yet`},
		{`f=g:10`, 4,
			`expected "@SRC", "+OFFSET", "%return" or a space behind the function, found ":": a line (FUNC:LINE or FILE:LINE) is not supported yet`},
		{`mm/swap.c:10`, 3,
			`expected "@SRC", "+OFFSET", "%return" or a space behind the function, found "/": a line (FUNC:LINE or FILE:LINE) is not supported yet`},
		{`swap.c:10`, 7,
			`expected "@SRC", "+OFFSET", "%return" or a space behind the function, found ":": a line (FUNC:LINE or FILE:LINE) is not supported yet`},
		{`f=g@`, 5,
			`expected the path or pattern of a source file, found the end`},
		{`f=g@ x`, 5,
			`expected the path or pattern of a source file, found a space`},
		{`f=g@a@b`, 6,
			`expected "+OFFSET", "%return" or a space behind the source file, found "@b"`},
		{`f=g@a.c:10`, 8,
			`expected "+OFFSET", "%return" or a space behind the source file, found ":": a line (FUNC:LINE or FILE:LINE) is not supported yet`},
		{`f=g+`, 5,
			`expected an offset in bytes, found the end`},
		{`f=g+x`, 5,
			`expected an offset in bytes, found "x"`},
		{`f=g+-1`, 5,
			`expected an offset in bytes, found "-"`},
		{`f=g+010`, 5,
			`expected a decimal offset without leading zeros, or one in hexadecimal with 0x, found "010"`},
		{`f=g+0x`, 5,
			`expected an offset in bytes, decimal or hexadecimal with 0x, found "0x"`},
		{`f=g+12k`, 5,
			`expected an offset in bytes, decimal or hexadecimal with 0x, found "12k"`},
		{`f=g+0x10000000000000000`, 5,
			`expected an offset of no more than 0xffffffffffffffff, found "0x10000000000000000"`},
		{`f=g+4@a.c`, 6,
			`expected a space behind the offset, found "@a"`},
		{`f=g+4%return`, 6,
			`expected a space behind the offset, found "%return"`},
		{`f=g%ret`, 4,
			`expected "@SRC", "+OFFSET", "%return" or a space behind the function, found "%ret"`},
		{`f=g%return+4`, 11,
			`expected a space behind "%return", found "+"`},
		{`f=g%`, 4,
			`expected "@SRC", "+OFFSET", "%return" or a space behind the function, found "%"`},
		{`f=g ->a`, 5,
			`expected an argument ([NAME=]VARIABLE[:TYPE]), found "->"`},
		{`f=g a->b`, 6,
			`expected ":TYPE" or a space behind the variable, found "->": a member (VARIABLE->MEMBER) is not supported yet`},
		{`f=g a.b`, 6,
			`expected ":TYPE" or a space behind the variable, found ".": a member (VARIABLE.MEMBER) is not supported yet`},
		{`f=g x=a[3]`, 8,
			`expected ":TYPE" or a space behind the variable, found "[": an array element (VARIABLE[INDEX]) is not supported yet`},
		{`f=g a@user`, 6,
			`expected ":TYPE" or a space behind the variable, found "@user": user memory (VARIABLE@user) is not supported yet`},
		{`f=g x=`, 7,
			`expected a variable behind the argument's name, found the end`},
		{`f=g x= y`, 7,
			`expected a variable behind the argument's name, found a space`},
		{`f=g x==y`, 7,
			`expected a variable behind the argument's name, found "="`},
		{`f=g x=y=z`, 8,
			`expected ":TYPE" or a space behind the variable, found "="`},
		{`f=g 1a`, 5,
			`expected an argument ([NAME=]VARIABLE[:TYPE]), found "1a"`},
		{`f=g x=1`, 7,
			`expected a variable behind the argument's name, found "1"`},
		{`f=g $retval`, 5,
			`expected an argument ([NAME=]VARIABLE[:TYPE]), found "$retval": a special variable ($retval, $params, $vars and others) is not supported yet`},
		{`f=g x=$params`, 7,
			`expected a variable behind the argument's name, found "$params": a special variable ($retval, $params, $vars and others) is not supported yet`},
		{`f=g %ax`, 5,
			`expected an argument ([NAME=]VARIABLE[:TYPE]), found "%ax": a register (%REG) is not supported yet`},
		{`f=g @jiffies`, 5,
			`expected an argument ([NAME=]VARIABLE[:TYPE]), found "@jiffies": a symbol or an address (@SYMBOL) is not supported yet`},
		{`f=g x=\4`, 7,
			`expected a variable behind the argument's name, found "\\": an immediate value (\VALUE) is not supported yet`},
		{`f=g +8(%di)`, 5,
			`expected an argument ([NAME=]VARIABLE[:TYPE]), found "+": memory at an offset (+OFFSET(...)) is not supported yet`},
		{`f=g -8(%di)`, 5,
			`expected an argument ([NAME=]VARIABLE[:TYPE]), found "-": memory at an offset (+OFFSET(...)) is not supported yet`},
		{`f=g x=(int)a`, 7,
			`expected a variable behind the argument's name, found "(": a type cast is not supported yet`},
		{`f=g *a`, 5,
			`expected an argument ([NAME=]VARIABLE[:TYPE]), found "*"`},
		{`f=g a,b`, 6,
			`expected ":TYPE" or a space behind the variable, found ","`},
		{`f=g a é`, 7,
			`expected an argument ([NAME=]VARIABLE[:TYPE]), found "é"`},
		{`f=g a a`, 7,
			`expected each argument name once, found "a" again (first at column 5)`},
		{`f=g a b a=c`, 9,
			`expected each argument name once, found "a" again (first at column 5)`},
		{`f=g a:`, 7,
			`expected a type (u8, u16, u32, u64, s8 to s64 or x8 to x64), found the end`},
		{`f=g a: u8`, 7,
			`expected a type (u8, u16, u32, u64, s8 to s64 or x8 to x64), found a space`},
		{`f=g a:u31`, 7,
			`expected a type (u8, u16, u32, u64, s8 to s64 or x8 to x64), found "u31"`},
		{`f=g a:u`, 7,
			`expected a type (u8, u16, u32, u64, s8 to s64 or x8 to x64), found "u"`},
		{`f=g a:int`, 7,
			`expected a type (u8, u16, u32, u64, s8 to s64 or x8 to x64), found "int"`},
		{`f=g a:string`, 7,
			`expected a type (u8, u16, u32, u64, s8 to s64 or x8 to x64), found "string": this type is not supported yet`},
		{`f=g a:char`, 7,
			`expected a type (u8, u16, u32, u64, s8 to s64 or x8 to x64), found "char": this type is not supported yet`},
		{`f=g a:b4@2/32`, 7,
			`expected a type (u8, u16, u32, u64, s8 to s64 or x8 to x64), found "b4": a bit-field (bBITS@OFFSET/SIZE) is not supported yet`},
		{`f=g a:u32[4]`, 10,
			`expected a space behind the type, found "[": an array is not supported yet`},
		{`f=g a:u32:s8`, 10,
			`expected a space behind the type, found ":"`},
		{`f=g a:u8x`, 7,
			`expected a type (u8, u16, u32, u64, s8 to s64 or x8 to x64), found "u8x"`},
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
			`column 5: expected an argument ([NAME=]VARIABLE[:TYPE]), found "->": definition "f=g ->a"`,
			"f=g ->a\n    ^",
		},
		{
			"f=g\n\ta b.c\nd",
			`column 9: expected ":TYPE" or a space behind the variable, found ".": a member (VARIABLE.MEMBER) is not supported yet: definition "f=g\n\ta b.c\nd"`,
			"\ta b.c\n\t   ^",
		},
		{
			"f=caf\u00e9 1",
			"column 9: expected an argument ([NAME=]VARIABLE[:TYPE]), found \"1\": definition \"f=caf\u00e9 1\"",
			"f=caf\u00e9 1\n       ^",
		},
		{
			"f=g a:",
			`column 7: expected a type (u8, u16, u32, u64, s8 to s64 or x8 to x64), found the end: definition "f=g a:"`,
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
		if !strings.HasSuffix(e.Caret(), "^") {
			t.Errorf("position %d: no caret in %q", pos, e.Caret())
		}
	}
}
