package elfnote

import (
	"encoding/binary"
	"strings"
	"testing"
)

func note(name string, kind uint32, desc int) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, uint32(len(name)+1))
	b = le.AppendUint32(b, uint32(desc))
	b = le.AppendUint32(b, kind)
	b = append(b, name...)
	b = append(b, make([]byte, 4-len(name)%4)...)
	return append(b, []byte(strings.Repeat("\xab", (desc+3)&^3))...)
}

// TestBuildID: an ID has at most 64 bytes, whatever a note has.
func TestBuildID(t *testing.T) {
	for _, tt := range []struct {
		notes []byte
		want  int // bytes
	}{
		{nil, 0}, {note("GNU", 3, 20), 20}, {note("GNU", 3, 1), 1}, {note("GNU", 3, 64), 64}, {note("GNU", 3, 65), 0}, {note("GNU", 3, 30000), 0},
		{append(note("GNU", 3, 30000), note("GNU", 3, 8)...), 8}, {note("GNU", 1, 16), 0}, {note("ABC", 3, 16), 0}, {note("GNU", 3, 20)[:20], 0},
		{append(note("GNU", 5, 12), note("GNU", 3, 16)...), 16},
	} {
		if got := BuildID(tt.notes, binary.LittleEndian); got != strings.Repeat("ab", tt.want) {
			t.Errorf("%d bytes of notes: %q, want %d bytes", len(tt.notes), got, tt.want)
		}
	}
}

// TestBuildSalt: it is the text of the kernel's own note.
func TestBuildSalt(t *testing.T) {
	salt := note("Linux", 0x100, 16)
	copy(salt[len(salt)-16:], "6.1.0-56-amd64\x00\x00")
	for _, tt := range []struct {
		notes []byte
		want  string
	}{
		{nil, ""}, {salt, "6.1.0-56-amd64"}, {append(note("Linux", 0x101, 4), salt...), "6.1.0-56-amd64"}, {note("Linux", 0x100, 1), ""},
		{note("GNU", 0x100, 4), ""}, {salt[:len(salt)-4], ""},
	} {
		if got := BuildSalt(tt.notes, binary.LittleEndian); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
