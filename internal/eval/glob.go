package eval

import (
	"encoding/binary"

	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Glob returns an ops.Glob. A string at an address has at most so many bytes, or any number if that is 0,
// and of longer ones than 63 bytes the first 63 are compared. In the pattern * is any text, ? any character, and a backslash makes the next
// character stand for itself.
func Glob(at *loc.Expr, most int, pattern string) *loc.Expr {
	e := &loc.Expr{Op: ops.Glob, A: at, K: uint64(most)}
	// The pattern is in constants: few expressions have one, and all would be larger.
	for i := (len(pattern) - 1) / 8 * 8; i >= 0 && pattern != ""; i -= 8 {
		var d [8]byte
		copy(d[:], pattern[i:])
		e.B = &loc.Expr{Op: ops.Const, K: binary.LittleEndian.Uint64(d[:]), A: e.B}
	}
	return e
}
