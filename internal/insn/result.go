package insn

// Results finds calls, and whether the code after them uses the result in the first result
// register.
type Results struct {
	// Calls calls visit for each place in code, which begins at the address addr, that may
	// be a direct call: with the offset of what follows it and the address of the function.
	// On amd64 and i386 these are all bytes E8, also those inside other instructions.
	Calls func(code []byte, addr uint64, visit func(after int, target uint64))
	// Uses reports whether code reads the result before it writes the register. It follows
	// the code to the first jump, call or return.
	Uses func(code []byte) bool
}

// mostAfterCall is how many instructions after a call are looked at.
const mostAfterCall = 24
