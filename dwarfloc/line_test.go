package dwarfloc

import (
	"testing"
)

// TestPrologueEnd: sites of unoptimised functions are after the instructions that
// store the parameters (addresses from the disassembly), also when some parameters
// come on the stack, and when slots are relative to the stack pointer.
func TestPrologueEnd(t *testing.T) {
	for _, tt := range []struct {
		image, function string
		start, want     uint64
	}{
		{"basic-gcc12-O0-dwarf5.elf", "my_func_one_abcd", 0xffffffff81000024, 0xffffffff8100002c},
		{"basic-gcc12-O0-dwarf5.elf", "call_my_funcs", 0xffffffff810000c3, 0xffffffff810000f0},
		{"basic-clang14-O0-dwarf5.elf", "my_func_one_abcd", 0xffffffff81000000, 0xffffffff81000005},
		{"basic-clang14-O0-dwarf5.elf", "call_my_funcs", 0xffffffff810000a0, 0xffffffff810000cc},
		{"basic-gcc12-O0-dwarf5.elf", "toy_log", 0xffffffff81000f09, 0xffffffff81000f2e},
		{"basic-gcc12-O0-dwarf5.elf", "queue_span", 0xffffffff8100079d, 0xffffffff810007c0},
		{"basic-clang14-O0-dwarf5.elf", "toy_log", 0xffffffff81000f20, 0xffffffff81000f4d},
		{"basic-clang14-O2-dwarf5.elf", "call_my_funcs", 0xffffffff81000040, 0xffffffff81000040},
		{"basic-gcc12-O2-dwarf5.elf", "call_my_funcs", 0xffffffff810000a0, 0xffffffff810000a0},
	} {
		img := openFixture(t, tt.image)
		found := false
		sites, err := img.Sites(t.Context(), Name(tt.function))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sites {
			if s.Kind != SiteEntry {
				continue
			}
			found = true
			if s.spot.Start() != tt.start || s.Addr != tt.want || s.AfterPrologue != (tt.start != tt.want) {
				t.Errorf("%s: %s starts at %#x, site at %#x, after the prologue: %v; want %#x and %#x",
					tt.image, s, s.spot.Start(), s.Addr, s.AfterPrologue, tt.start, tt.want)
			}
		}
		if !found {
			t.Errorf("%s: no entry site of %s", tt.image, tt.function)
		}
	}
}
