// Package eval evaluates DWARF expressions symbolically.
//
// An [Evaluator] turns a DWARF expression into a loc.Location. It runs DWARF's stack machine
// on expressions instead of numbers, and asks its [Context] for what the expression only
// refers to: the frame base, the canonical frame address, base types, addresses.
//
//	ev := eval.Evaluator{Arch: arch.ByName("amd64"), Encoding: eval.Encoding{AddressSize: 8, OffsetSize: 4}}
//	var l loc.Location
//	reason, err := ev.Evaluate([]byte{0x77, 0x08}, &l) // DW_OP_breg7 8
//	fmt.Println(l.Text(ev.Arch))                       // [%rsp+8]
//
// [Decode] reads single operations, to print or inspect them. [Builder] builds expressions,
// extracts parts of objects ([Builder.Part], [Builder.Bits]) and joins pieces. Package
// prologue uses it too, with Simplify set.
//
// The package depends on neither ELF nor BPF. Sources: DWARF 5 sections 2.5 and 2.6, and
// GCC's include/dwarf2.def and gcc/dwarf2out.cc for the GNU extensions.
package eval
