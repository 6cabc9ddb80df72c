package probed

import (
	"encoding/hex"
	"testing"
)

// TestChecksGoStack has beginnings of functions that Go compiled, and of others.
func TestChecksGoStack(t *testing.T) {
	for _, tt := range []struct {
		name, code string
		checks     bool
	}{
		{"a small frame", "493b66100f86a4000000554889e5", true},
		{"a frame of 288 bytes", "4c8da42460ffffff4d3b66100f8600010000", true},
		{"a huge frame", "4989e44981ec0000100072084d3b66100f8600000000", true},
		{"in assembler", "64488b0c25f8ffffff483b6110761a", true},
		{"none: NOSPLIT", "554889e54883ec10", false},
		{"a large frame before Go 1.17", "64488b0c25f8ffffff488d842478ffffff483b4110", true},
		{"another comparison", "493b46100f86a40000", false},
		{"of another member", "493b66180f86a40000", false},
		{"of another register", "483b6310", false},
		{"what does not decode", "06493b6610", false},
		{"too late", "909090909090493b6610", false},
		{"nothing", "", false},
	} {
		code, err := hex.DecodeString(tt.code)
		if err != nil {
			t.Fatal(err)
		}
		if got := ChecksGoStack(code); got != tt.checks {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.checks)
		}
	}
}
