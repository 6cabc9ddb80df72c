package export_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/cilium/ebpf/asm"
)

// encoded returns instructions in the kernel's format.
func encoded(t *testing.T, insns asm.Instructions) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := insns.Marshal(&b, binary.LittleEndian); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
