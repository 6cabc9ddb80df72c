package stacks

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReadSymbols: lines of /proc/kallsyms, in any order; data and hidden addresses do not count.
func TestReadSymbols(t *testing.T) {
	got := readSymbols(strings.NewReader("ffffffff81000010 t b\nffffffff81000000 T a\nffffffffc0000000 t f [ext4]\n0000000000000000 T hidden\nffffffff82000000 D data\nx T y\n"))
	want := []kernelSymbol{{0xffffffff81000000, "a", ""}, {0xffffffff81000010, "b", ""}, {0xffffffffc0000000, "f", "ext4"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(kernelSymbol{})); diff != "" {
		t.Error(diff)
	}
	n := &Names{symbols: want, asked: true}
	for addr, text := range map[uint64]string{
		0xffffffff81000005: "a+0x5 [kernel]", 0xffffffffc0000001: "f+0x1 [ext4]", 0x1000: "0x1000 [kernel]",
	} {
		if got := n.kernelFrames(addr, true)[0].String(); got != text {
			t.Errorf("%#x: %s, want %s", addr, got, text)
		}
	}
}
