// Package loc says where values are, symbolically.
//
// A [Location] is where a variable is when a probe fires: in a register, in memory at an
// address that is computed from registers, a constant, put together from pieces. It names
// registers, offsets and addresses, and is never evaluated: package prologue writes BPF
// instructions that do, and a debugger could do something else. If there is no location,
// a [Reason] says why, from a closed list. A [Rule] says how the location was chosen among
// those that the debug information has.
//
//	v, err := site.Lookup("page") // of package dwarfloc
//	if v.Located() {
//		fmt.Println(v.Loc.Text(img.Arch())) // %rdi, [%rsp+8], 42, ...
//	} else {
//		fmt.Println(v.Reason) // optimized-out
//	}
//
// An [Expr] is a computation over 64-bit values: what a location's address or value is made
// of. Nothing here knows ELF, DWARF's encoding or BPF.
package loc
