package mapped

import "testing"

// TestParseMapping: lines of /proc/PID/maps, of which only those of instructions count.
func TestParseMapping(t *testing.T) {
	for line, want := range map[string]Mapping{
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
