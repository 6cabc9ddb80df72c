package insn

import (
	"testing"
)

// FuzzDecode: an instruction is in the bytes that it was decoded from, and what is known of it is known
// again.
func FuzzDecode(f *testing.F) {
	for _, code := range []string{
		"\x55\x48\x89\xe5", "\x0f\x1f\x44\x00\x00", "\xff\x25\x00\x00\x00\x00", "\xe8\xfb\xff\xff\xff\xc3", "\x62\xf1\x7c\x48\x28\x00",
		"\xf3\x0f\x1e\xfa", "\xc5\xf8\x77", "\xfd\x7b\xbf\xa9", "\xc0\x03\x5f\xd6", "\x1f\x20\x03\xd5", "\x00\x00\x00\x94",
		"\x79\x29\x17\x88", "\x88\x17\x29\x79", "\xeb\x6f\xf0\x30\x00\x24", "\xd2\x07\xf0\xa8\x20\x00", "\x17\xe7\xe3\x00", "\x0c\xf1\x9f\x97", "\xf0\x80\xbd\xe8",
		"\x9f\xf8\xff\x43", "\x80\x01\x00\x4c", "\x64\x94\x61\x38", "\xcd\x00\x00\x26", "\x8c\x01\xdf\x00",
	} {
		f.Add([]byte(code), uint64(0x401000))
	}
	f.Fuzz(func(t *testing.T, code []byte, addr uint64) {
		for name, made := range all {
			a := made()
			in, ok := a.Next(code)
			if ok && (in.Size <= 0 || in.Size > len(code) || in.Size > 15) {
				t.Fatalf("%s: % x: %d bytes", name, code, in.Size)
			}
			if again, ok2 := a.Next(code); again != in || ok2 != ok {
				t.Fatalf("%s: % x: %+v, then %+v", name, code, in, again)
			}
			if ok && in.Size <= len(code) {
				tr := a.Begin()
				a.Follow(tr, code, addr)
				if in.Lost {
					a.Leads(tr, code, addr)
				}
				if changes := a.Updates(code); changes != 0 && in.Branches {
					t.Fatalf("%s: % x: a branch changes %#x", name, code, changes)
				}
			}
			if a.Global != nil {
				a.Global(code, addr)
			}
			a.Writes(code)
			a.Shape(code)
			if at, ok := a.Slots.StoredLast(code, Slot{Base: a.Slots.Frame, Off: -8, Size: 8}); ok && (at < 0 || at > len(code)) {
				t.Fatalf("%s: % x: stored at %d", name, code, at)
			}
		}
	})
}
