package caller

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// TestBranchesOf: a scan of each byte finds every branch where its operation begins, and does not decode at prefixes.
func TestBranchesOf(t *testing.T) {
	begins := branchesOf(insn.For("amd64"))
	for _, first := range []byte{0xe9, 0xeb, 0x74, 0x0f, 0xff, 0xe2} {
		if !begins[first] {
			t.Errorf("%#02x begins no branch", first)
		}
	}
	for _, prefix := range []byte{0x40, 0x48, 0x66, 0x2e, 0x3e, 0xf2, 0xf3, 0x90, 0x89} {
		if begins[prefix] {
			t.Errorf("%#02x begins a branch", prefix)
		}
	}
	if begins := branchesOf(insn.For("arm64")); !begins[0] || !begins[0x14] {
		t.Error("not every word of arm64 is looked at")
	}
}
