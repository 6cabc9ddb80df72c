package probed

import (
	"encoding/hex"
	"testing"
)

// TestUprobeARM64: what was seen with a probe in Linux 6.1 for arm64 (TestUprobeTable of internal/proof/guest has more).
func TestUprobeARM64(t *testing.T) {
	for _, tt := range []struct {
		name, code string
		does       Uprobe
		kprobe     bool // it harms there too
	}{
		{"ldr s0, a literal", "4000001c", UprobeHarms, true},
		{"ldr d14, a literal", "6e00005c", UprobeHarms, true},
		{"ldr q28, a literal", "9c00009c", UprobeHarms, true},
		{"ldr x0, a literal", "40000058", UprobeRefuses, false},
		{"ldrsw x0, a literal", "40000098", UprobeRefuses, false},
		{"prfm, a literal", "400000d8", UprobeRefuses, false},
		{"ldr d0, [x0]", "000040fd", UprobeSteps, false},
		{"brk #5, a uprobe", "a00020d4", UprobeHarms, false},
		{"brk #4, a kprobe", "800020d4", UprobeRefuses, false},
		{"svc #0", "010000d4", UprobeRefuses, false},
		{"ldxr w0, [x3]", "607c5f88", UprobeRefuses, false},
		{"nop", "1f2003d5", UprobeSteps, false},
		{"yield", "3f2003d5", UprobeRefuses, false},
		{"paciasp", "3f2303d5", UprobeSteps, false},
		{"b", "02000014", UprobeEmulates, false},
		{"adr", "40000010", UprobeEmulates, false},
		{"ret", "c0035fd6", UprobeEmulates, false},
		{"stp x29, x30, [sp, #-16]!", "fd7bbfa9", UprobeSteps, false},
		{"a part of one", "1f20", UprobeRefuses, false},
	} {
		code, err := hex.DecodeString(tt.code)
		if err != nil {
			t.Fatal(err)
		}
		rules := For("arm64")
		if got, why := rules.Uprobe(code); got != tt.does || (got == UprobeHarms) != (why != "") {
			t.Errorf("%s: %d for %q, want %d", tt.name, got, why, tt.does)
		}
		if got := rules.Kprobe(code) != ""; got != tt.kprobe {
			t.Errorf("%s: a kprobe harms: %v", tt.name, got)
		}
	}
}
