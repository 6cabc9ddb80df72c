package bin

import (
	"bytes"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Texts makes strings of a file's sections. A name can be as long as the file, and be used by all that
// is in it: so each long one is made once, and what ends in the same place is a part of it. All long
// strings together take no more memory than the sections. The sections must stay where they are.
type Texts struct {
	mu     sync.Mutex
	long   map[uintptr]string // by the address where they end
	recent atomic.Pointer[recentlyMade]
}

// recentTexts is how many strings at an offset are remembered: neighbours in a file have the same names again and again. Of a kernel's
// 4.8 million that a pack takes, four of five are.
const recentTexts = 1 << recentBits

const recentBits = 12

// recentlyMade are strings that were asked for twice, in slots by their addresses: what is asked for once is not remembered, as when names are looked through.
type recentlyMade struct {
	asked [recentTexts]atomic.Uintptr // the address of the last one
	texts [recentTexts]atomic.Pointer[recentText]
}

// recentText is the string at an address.
type recentText struct {
	at   uintptr
	text string
}

// longText is how many bytes a string has at least that is kept: most are shorter.
const longText = 256

// At returns the string at an offset in a section. ok is false if it is outside the section or has no
// end.
func (t *Texts) At(section []byte, off uint64) (s string, ok bool) {
	if off >= uint64(len(section)) {
		return "", false
	}
	at := uintptr(unsafe.Pointer(&section[off]))
	recent, slot := t.slot(at)
	if r := recent.texts[slot].Load(); r != nil && r.at == at && uint64(len(r.text)) < uint64(len(section))-off {
		return r.text, true
	}
	d, ok := CStringAt(section, off)
	if !ok {
		return "", false
	}
	s = t.make(section[:off], d)
	if recent.asked[slot].Swap(at) == at {
		recent.texts[slot].Store(&recentText{at, s})
	}
	return s, true
}

// slot is where the string at an address is remembered.
func (t *Texts) slot(at uintptr) (*recentlyMade, uint64) {
	all := t.recent.Load()
	if all == nil {
		t.recent.CompareAndSwap(nil, new(recentlyMade))
		all = t.recent.Load()
	}
	return all, uint64(at) * 0x9e3779b97f4a7c15 >> (64 - recentBits)
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
