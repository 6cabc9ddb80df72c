package body_test

import (
	"debug/elf"
	"encoding/binary"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/image"
)

// TestStepped: of arm64 code, the access that wrote a register last, if one did.
func TestStepped(t *testing.T) {
	text := dwarftest.Text()
	words := []uint32{
		0xb8404405, // ldr w5, [x0], #4
		0x52800001, // mov w1, #0
		0xf8418c22, // ldr x2, [x1, #24]!
		0xb4000082, // cbz x2, ...
		0xaa0003e3, // mov x3, x0
		0x94000000, // bl
		0xd503201f, // nop
	}
	for i, w := range words {
		binary.LittleEndian.PutUint32(text.Data[4*i:], w)
	}
	d := dwarftest.ELF(text)
	const machine = 18 // in the ELF header
	binary.LittleEndian.PutUint16(d[machine:], uint16(elf.EM_AARCH64))
	f, err := image.FromBytes("test", d, nil)
	if err != nil {
		t.Fatal(err)
	}
	img := body.New(f, dw.New(dw.Sections{}, nil))
	for _, tt := range []struct {
		register, after uint64
		want            int64
	}{
		{0, 0, 0}, {0, 1, 4}, {0, 3, 4}, {1, 2, 0}, {1, 3, 24}, {1, 4, 24}, {0, 5, 4}, {3, 5, 0}, {2, 4, 0}, {0, 6, 0},
	} {
		if got := img.Stepped(tt.register, dwarftest.TextAddr+4*tt.after); got != tt.want {
			t.Errorf("x%d after %d instructions: %d, want %d", tt.register, tt.after, got, tt.want)
		}
	}
}
