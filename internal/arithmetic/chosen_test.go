package arithmetic

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/eval"
)

// TestChosenWidth: a choice between two numbers, as GCC writes it by a branch, says nothing of the width of what they are computed with.
func TestChosenWidth(t *testing.T) {
	// breg4 0; lit31; shr; breg4 0; lit1; shr; breg5 0; bra 1; swap; drop; stack_value
	n := Note{Expr: []byte{0x74, 0, 0x4f, 0x25, 0x74, 0, 0x31, 0x25, 0x75, 0, 0x28, 1, 0, 0x16, 0x13, 0x9f}, Encoding: eval.Encoding{AddressSize: 8, OffsetSize: 4}}
	if n.special() {
		t.Error("a branch is taken for an operation that has a width")
	}
}
