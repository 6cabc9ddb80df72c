// Package probe reads and prints probe definitions: what to probe and what to
// fetch there, as it stands in the section name of a BPF program or on a
// command line. It reads text and nothing else; whether a function or a
// variable exists is for others to find out, and Errorf lets them point at the
// place in the text.
//
//	d, err := probe.ParseSection("func=my_func_*_abcd arg1")
//	d.Event          // "func"
//	d.Point.Function // "my_func_*_abcd"
//	d.Args[0].Name   // "arg1"
//
// # Grammar
//
// The grammar is that of perf-probe(1), with options in front as perf's BPF
// loader had them:
//
//	definition = { option (";" | line end) } [ [GROUP ":"] EVENT "=" ] point { argument }
//	option     = "exec=" PATH | "module=" NAME | "inlines=" ("yes" | "no") | "force=" ("yes" | "no")
//	point      = FUNC [ "@" SRC ] [ "+" OFFSET | "%return" ]
//	argument   = [ NAME "=" ] VARIABLE [ ":" TYPE ]
//
// White space (spaces, tabs, line ends) separates arguments, and is free around
// options, their names and their values, but not elsewhere. So a path may
// contain spaces, but no semicolon. Each option may be given once, exec and
// module not together; without them inlines is yes and force is no.
//
// GROUP, EVENT, NAME and VARIABLE are C identifiers. FUNC and SRC are names or
// patterns as package glob matches them, with "*", "?", "[...]" and "\". FUNC
// consists of letters, digits, "_", "." and "$"; SRC of anything but white space
// and "@", "+", "%" and ":". Other characters need a backslash, except in a class,
// and white space and semicolons have no place in either. That the ends of
// ranges are in order is checked by package glob, not here.
//
// OFFSET is a number of bytes, decimal or, with 0x, hexadecimal. TYPE is one of
// u8 u16 u32 u64 s8 s16 s32 s64 x8 x16 x32 x64.
//
// # Not supported yet
//
// These forms of perf's are recognized, and rejected with an error that names
// them: lines (FUNC:LINE, FILE:LINE), lazy patterns, addresses, statically
// defined events (%sdt_...); registers (%ax), @symbols, \immediates, $retval and
// the other special variables, member access (->, ., [n]), @user; and the types
// char, bool, string, ustring, symbol, symstr, bit-fields (b4@2/32) and arrays
// (u32[4]).
package probe
