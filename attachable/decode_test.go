package attachable

import (
	"encoding/hex"
	"testing"
)

// TestSizes: instructions that x86asm does not decode, with the sizes that objdump
// gives them.
func TestSizes(t *testing.T) {
	for code, want := range map[string]int{
		"0f01cf":             3, // encls
		"0f01ee":             3, // rdpkru
		"0f01d9":             3, // vmmcall
		"f30f01d9":           4, // vmgexit
		"0f01e8":             3, // setssbsy's group, serialize
		"0faef1":             3, // umwait's group
		"480fc72f":           4, // xsaves64 (%rdi)
		"480fc76f40":         5, // xsaves64 0x40(%rdi)
		"480fc7ac2400010000": 9, // xsaves64 0x100(%rsp)
		"0f0b":               2, // ud2, which it does
	} {
		b, err := hex.DecodeString(code + "909090909090909090909090")
		if err != nil {
			t.Fatal(err)
		}
		if size, _, branches, ok := nextX86(b); size != want || branches || !ok {
			t.Errorf("%s has %d bytes (%v), want %d", code, size, ok, want)
		}
	}
}
