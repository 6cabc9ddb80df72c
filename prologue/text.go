package prologue

import "github.com/cilium/ebpf/asm"

// Text prints one of a prologue's instructions as String does.
func Text(ins *asm.Instruction) string { return text(ins) }
