// Package loc says where values are, symbolically.
//
// A [Location] says where a variable is when a probe fires: in a register, in memory at an
// address computed from registers, as a constant, or split into pieces. It names registers,
// offsets and addresses, and is never evaluated here: package prologue writes BPF
// instructions that do, and a debugger could evaluate it in another way. If there is no
// location, a [Reason] from a closed list says why. A [Rule] says how the location was
// chosen among those in the debug information.
//
//	v, err := site.Lookup("page") // site is a *dwarfloc.Site
//	if v.Located() {
//		fmt.Println(v.Loc.Text(img.Arch())) // %rdi, [%rsp+8], 42, ...
//	} else {
//		fmt.Println(v.Reason) // optimized-out
//	}
//
// An [Expr] is a computation over 64-bit values, which gives a location's address or value.
// Nothing here depends on ELF, DWARF's encoding or BPF.
package loc
