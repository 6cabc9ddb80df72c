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
