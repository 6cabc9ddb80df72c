package bin_test

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/bpfprologue/bpfprologue/internal/bin"
)

// TestTexts: long strings share their bytes, wherever they begin, and are what they are.
func TestTexts(t *testing.T) {
	var texts bin.Texts
	long := strings.Repeat("abc", 1000)
	section := []byte("\x00" + long + "\x00short\x00" + long + "\x00")
	end := func(s string) *byte { return unsafe.StringData(s[len(s)-1:]) }
	first, ok := texts.At(section, 1001)
	if !ok || first != long[1000:] {
		t.Fatalf("got %d bytes, %v", len(first), ok)
	}
	for _, off := range []uint64{1, 2, 1500} {
		if s, ok := texts.At(section, off); !ok || s != long[off-1:] || end(s) != end(first) {
			t.Errorf("at %d: %d bytes, %v", off, len(s), ok)
		}
	}
	if s, ok := texts.At(section, uint64(len(long))+2); !ok || s != "short" {
		t.Errorf("got %q, %v", s, ok)
	}
	if s, ok := texts.At(section, uint64(len(long))+8); !ok || s != long || end(s) == end(first) {
		t.Errorf("another place: %d bytes, %v", len(s), ok)
	}
	if s := texts.Make(section[1 : 1+len(long)]); s != long || end(s) != end(first) {
		t.Errorf("by its bytes: %d bytes", len(s))
	}
	if _, ok := texts.At(section[:100], 1); ok {
		t.Error("a string without an end")
	}
}
