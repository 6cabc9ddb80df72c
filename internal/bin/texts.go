package bin

import (
	"bytes"
	"sync"
	"unsafe"
)

// Texts makes strings of a file's sections. A name can be as long as the file, and be used by all that
// is in it: so each long one is made once, and what ends in the same place is a part of it. All long
// strings together take no more memory than the sections. The sections must stay where they are.
type Texts struct {
	mu   sync.Mutex
	long map[uintptr]string // by the address where they end
}

// longText is how many bytes a string has at least that is kept: most are shorter.
const longText = 256

// At returns the string at an offset in a section. ok is false if it is outside the section or has no
// end.
func (t *Texts) At(section []byte, off uint64) (s string, ok bool) {
	d, ok := CStringAt(section, off)
	if !ok {
		return "", false
	}
	return t.make(section[:off], d), true
}

// Make returns a string of some bytes of a section.
func (t *Texts) Make(d []byte) string { return t.make(nil, d) }

// make returns a string of d. before is what its section has before it.
func (t *Texts) make(before, d []byte) string {
	if len(d) < longText {
		return string(d)
	}
	end := uintptr(unsafe.Pointer(unsafe.SliceData(d))) + uintptr(len(d))
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.long[end]
	if len(s) < len(d) {
		begin := bytes.LastIndexByte(before, 0) + 1 // another string may begin earlier
		s = string(before[begin:]) + string(d)
		if t.long == nil {
			t.long = make(map[uintptr]string)
		}
		t.long[end] = s
	}
	return s[len(s)-len(d):]
}
