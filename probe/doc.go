// Package probe parses and prints probe definitions: what to probe and what to fetch there, as
// written in the section name of a BPF program or on a command line. It handles text and
// nothing else. Packages that find out whether a function or a variable exists use Errorf to
// point at the place in the text.
//
//	d, err := probe.ParseSection("func=my_func_*_abcd arg1")
//	d.Event          // "func"
//	d.Point.Function // "my_func_*_abcd"
//	d.Args[0].Name   // "arg1"
//
// # Grammar
//
// The grammar is that of perf-probe(1), after options as perf's BPF loader had them, and with expressions of C:
//
//	definition = { option ( ";" | NEWLINE ) } [ [ GROUP ":" ] EVENT "=" ] point { argument }
//	option     = "exec=" PATH | "module=" PATH | "inlines=" ( "yes" | "no" ) | "force=" ( "yes" | "no" )
//	           | "if=" expression | "ifmissing=" ( "drop" | "pass" ) | "doubt=" ( "missing" | "keep" )
//	point      = FUNC [ "@" SRC ] [ ":" LINE | ";" PATTERN | "+" OFFSET | "%return" | "%exit" ]
//	           | SRC ":" LINE | SRC ";" PATTERN | ADDRESS | "%" [ "sdt_" ] [ PROVIDER ":" ] PROBE
//	argument   = [ NAME "=" ] expression [ ":" TYPE ] [ "@user" ] | ( "$params" | "$vars" ) [ "@user" ]
//	expression = operand { OPERATOR operand }
//	operand    = { "-" | "~" | "!" | "*" | "&" | "(" CTYPE ")" } primary
//	primary    = object { "->" MEMBER | "." MEMBER | "[" expression "]" } [ "[" expression ".." expression "]" ]
//	           | "%" REGISTER | "@" SYMBOL [ ( "+" | "-" ) OFFSET ] | "@" ADDRESS | "\" NUMBER
//	           | ( "+" | "-" ) [ "u" ] OFFSET "(" expression ")" | "sizeof(" CTYPE ")" | NUMBER | REAL | CHARACTER | TEXT
//	           | "$comm" | "$caller" | "$frame" | "$stack" | "$stack" N
//	           | "$pid" | "$tid" | "$uid" | "$gid" | "$cpu" | "$cgroup" | "$time" | "$duration"
//	object     = VARIABLE | "$arg" N | "$retval" | "(" expression ")" | "container_of(" expression "," CTYPE "," MEMBER ")"
//
// White space (spaces, tabs, line ends) separates arguments. It is allowed around options,
// their names and their values, in parentheses and brackets, and in a condition, and nowhere else.
// So a path may contain spaces, but no semicolon. Each option may be given once, and exec excludes
// module. By default inlines is yes, force is no, ifmissing is drop and doubt is missing.
//
// A statically defined probe (sys/sdt.h) is written as perf does, %sdt_PROVIDER:PROBE, also without the "%" or the "sdt_"; one without PROVIDER is
// that of any.
//
// GROUP, EVENT, NAME, VARIABLE and MEMBER are C identifiers. FUNC, SRC, PROVIDER and PROBE are names or
// patterns of package glob, with "*", "?", "[...]" and "\"; FUNC may be several with "|" between
// them, of which the first one that the image has is meant. In FUNC white space and the
// characters "@", "+", "%", ":", ";", "=" and the double quote need a backslash, except the two
// colons of "app::f", and in a class, and in SRC all of these but the last two:
// "operator\ new\[]", "{closure#0}", "main.(\*P).Meth". Package glob, not this one, checks that the
// ends of ranges are in order.
//
// As in perf, a point begins with a source file if that has a period or a slash, and a
// line or a pattern after it. A LINE after a function counts from the function's first line,
// which is 0; one after a file, from 1. PATTERN is a lazy pattern: it matches source lines
// without their white space. White space in it needs a backslash, and so does the "=" of a
// pattern that looks like a definition after an option ("i\=0"). ADDRESS is link-time, with
// 0x.
//
// Numbers are decimal or, with 0x, hexadecimal; in an expression one with a unit after it, ns, us, ms or s, is a time in nanoseconds: 250us,
// 1.5ms. OFFSET is in bytes. TYPE is one of u8
// u16 u32 u64, s8 to s64, x8 to x64 (shown in hexadecimal), u s x (of the size that the
// debug information gives), char, bool, string, ustring (in user memory), hex (bytes), symbol or
// symstr, bBITS@OFFSET/SIZE (a bit-field), or an array of one of these except strings and u s
// x: u32[4]. With "@user" memory that pointers lead to is read from user space.
//
// OPERATOR is one of C's, with C's precedence: * / % + - << >> < <= > >= == != & ^ | && ||, and ~, which
// compares with a pattern in a TEXT and binds as == does. CTYPE is a type as C writes it: "struct sock *". A NUMBER
// with which an argument begins needs parentheses. Members and elements are those of something
// with a type: of "($pid)" there are none. Nothing follows the last elements of a range.
//
// An argument without NAME gets the name of its variable, or of the last member on its path,
// and a number after it if another argument has that name.
package probe
