package probed

import "github.com/bpfprologue/bpfprologue/internal/insn"

// A goroutine's stack is small. A function of Go begins with a comparison of the stack pointer, or of where its frame will end, with the
// end of the stack (cmd/internal/obj/x86/obj6.go), and makes it larger if that is near. What then is left below the frame is never
// less than StackGuard - StackSmall, 800 bytes, of which functions that do not compare may use all (cmd/link/internal/ld/stackcheck.go).

// goGuard is where the end of the stack is, from the goroutine: in R14, or for functions in assembler in RCX.
const goGuard = 0x10

// ChecksGoStack reports whether a function's code for amd64 begins with that comparison.
func ChecksGoStack(code []byte) bool {
	const most = 6 // instructions: two get the goroutine, three compute the end of a large frame
	for range most {
		x, ok := insn.DecodeX86(code)
		if !ok {
			return false
		}
		base, disp := x.Address(code[:x.Size])
		// RSP or R12, or before Go 1.17 RAX.
		what := x.Reg()
		if !x.VEX && x.OpcodeSize == 1 && x.Opcode[0] == 0x3b && disp == goGuard && (base == 14 && what == x86SP || base == 1 && (what == x86SP || what == 0)) {
			return true
		}
		code = code[x.Size:]
	}
	return false
}
