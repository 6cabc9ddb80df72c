// Package loc says where values are, symbolically.
//
// A [Location] is where a variable is when a probe fires: in a register, in memory at an
// address that is computed from registers, a constant, put together from pieces. It names
// registers, offsets and addresses, and is never evaluated: package prologue writes BPF
// instructions that do, and a debugger could do something else. If there is no location,
// a [Reason] says why, from a closed list. A [Rule] says how the location was chosen.
//
// An [Evaluator] turns a DWARF expression into a location. It runs DWARF's stack machine
// on expressions, and asks its [Context] for what the expression does not hold: the frame
// base, the canonical frame address, base types, addresses.
//
//	ev := loc.Evaluator{Arch: arch.ByName("amd64"), Encoding: loc.Encoding{AddressSize: 8, OffsetSize: 4}}
//	l, reason, err := ev.Evaluate([]byte{0x77, 0x08}) // DW_OP_breg7 8
//	fmt.Println(l.Text(ev.Arch))                      // [%rsp+8]
//
// [Decode] reads single operations for those who want to print or to inspect them.
// [Builder] makes expressions, takes objects apart ([Builder.Part], [Builder.Bits]) and puts
// pieces together; package prologue uses the same code with Simplify set.
//
// The package knows neither ELF nor BPF. Documents: DWARF 5 sections 2.5 and 2.6, and the
// GNU extensions as GCC's include/dwarf2.def and gcc/dwarf2out.cc have them.
package loc
