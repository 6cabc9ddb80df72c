package ktable

import (
	"debug/elf"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/image"
)

// TestCalls: an arm64 kernel that has ftrace's data in front of its functions, one of which begins with BTI, one with the
// first word for the call.
func TestCalls(t *testing.T) {
	const at = uint64(0x600000)
	const nop, bti = 0xd503201f, 0xd503245f
	text := dwarftest.Text()
	words := []uint32{nop, nop, bti, nop, nop, nop, nop, nop, nop, nop}
	for i, w := range words {
		binary.LittleEndian.PutUint32(text.Data[4*i:], w)
	}
	table := dwarftest.Cat(dwarftest.LE64(dwarftest.TextAddr), dwarftest.LE64(dwarftest.TextAddr+20))
	d := dwarftest.ELF(text, dwarftest.Section{Name: "table", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC, Addr: at, Data: table})
	const machine = 18 // in the ELF header
	binary.LittleEndian.PutUint16(d[machine:], uint16(elf.EM_AARCH64))
	f, err := image.FromBytes("test", d, nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Find(f)
	if err != nil {
		t.Fatal(err)
	}
	m.at = map[string]uint64{Mcount.from: at, Mcount.to: at + uint64(len(table))}
	for _, tt := range []struct {
		ops  bool
		want []uint64
	}{
		{false, []uint64{dwarftest.TextAddr, dwarftest.TextAddr + 20}},
		{true, []uint64{dwarftest.TextAddr + 12, dwarftest.TextAddr + 28}},
	} {
		if tt.ops {
			m.at[callOps] = at
		}
		if got, err := m.Calls(); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("with data in front of functions %v: %#x, %v; want %#x", tt.ops, got, err, tt.want)
		}
	}
}
