package stacks

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/internal/mapped"
)

// TestParseMapping: lines of /proc/PID/maps, of which only those of instructions count.
func TestParseMapping(t *testing.T) {
	for line, want := range map[string]mapped.Mapping{
		"00400000-00401000 r-xp 00001000 fd:00 1234                       /bin/a b": {Start: 0x400000, End: 0x401000, Offset: 0x1000, Inode: 1234, Path: "/bin/a b"},
		"7f00-7f10 r-xp 00000000 00:00 0":                                           {Start: 0x7f00, End: 0x7f10, Offset: 0, Inode: 0, Path: ""},
		"7f00-7f10 r-xp 00000000 00:00 0                          [vdso]":           {Start: 0x7f00, End: 0x7f10, Offset: 0, Inode: 0, Path: "[vdso]"},
		`7f00-7f10 r-xp 00000000 00:01 7 /tmp/a\012b (deleted)`:                     {Start: 0x7f00, End: 0x7f10, Offset: 0, Inode: 7, Path: "/tmp/a\nb (deleted)"},
	} {
		if got, ok := parseMapping(line); !ok || got != want {
			t.Errorf("%s: %+v, %v", line, got, ok)
		}
	}
	for _, line := range []string{"", "x", "00400000-00401000 r--p 00001000 fd:00 1234 /bin/a", "g-h r-xp 0 0 0", "2-1 r-xp 0 0:0 0", "1-2 r"} {
		if got, ok := parseMapping(line); ok {
			t.Errorf("%q: %+v", line, got)
		}
	}
}

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
