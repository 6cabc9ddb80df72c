package insn

// Uprobe is what the kernel does with an instruction that has a uprobe.
type Uprobe uint8

const (
	// UprobeSteps means that a copy of the instruction is single-stepped elsewhere.
	UprobeSteps Uprobe = iota
	// UprobeSkips means that the instruction does nothing, and the kernel goes on after it.
	UprobeSkips
	// UprobeEmulates means that the kernel does what the instruction would do.
	UprobeEmulates
	// UprobeCalls is UprobeSteps or UprobeSkips in most kernels. Some make a call of the NOP, which writes below the stack pointer.
	UprobeCalls
	// UprobeRepeats is UprobeSteps, with a hit for each element that a repeated string instruction moves.
	UprobeRepeats
	// UprobeRefuses means that the kernel accepts no probe.
	UprobeRefuses
	// UprobeHarms means that the kernel accepts the probe, and the program then computes something else, or ends.
	UprobeHarms
)

// uprobeOf asks an architecture's table of fixed-size instructions, which has none that a probe harms.
func (a *Arch) uprobeOf(code []byte) (Uprobe, string) {
	if a.CannotStep(code) {
		return UprobeRefuses, ""
	}
	return UprobeSteps, ""
}
