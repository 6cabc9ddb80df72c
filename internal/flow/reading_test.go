package flow

import (
	"slices"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// TestReading: where instructions begin, through data, padding and what does not decode.
func TestReading(t *testing.T) {
	const (
		neg  = "f7df"              // neg %edi
		mov  = "b805000000"        // mov $5, %eax
		ret  = "c3"                //
		nop  = "0f1f440000"        // nopl 0x0(%rax,%rax,1)
		bad  = "06"                // push %es, which 64 bits do not have
		skip = "eb04" + "48b8b8b8" // jmp over four bytes that would be the start of a longer instruction
	)
	for _, tt := range []struct {
		name string
		code string
		arch string
		at   int
		want Boundary
		from int // before
		to   int // after
	}{
		{"the beginning", neg + mov + ret, "amd64", 0, Begins, 0, 0},
		{"inside the first", neg + mov + ret, "amd64", 1, Inside, 0, 2},
		{"the second", neg + mov + ret, "amd64", 2, Begins, 2, 2},
		{"inside the second", neg + mov + ret, "amd64", 5, Inside, 2, 7},
		{"the last", neg + mov + ret, "amd64", 7, Begins, 7, 7},
		{"after data", skip + mov + ret, "amd64", 6, Begins, 6, 6},
		{"inside after data", skip + mov + ret, "amd64", 8, Inside, 6, 11},
		{"padding", ret + nop + mov + ret, "amd64", 1, Begins, 1, 1},
		{"inside padding", ret + nop + mov + ret, "amd64", 3, Inside, 1, 6},
		{"after padding, reached by nothing", ret + nop + mov + ret, "amd64", 6, Begins, 6, 6},
		{"what does not decode", neg + bad + mov, "amd64", 2, Unknown, 2, 2},
		{"after what does not decode", neg + bad + mov, "amd64", 3, Unknown, 2, 3},
		{"before what does not decode", neg + bad + mov, "amd64", 1, Inside, 0, 2},
		{"cut short", neg + "b805", "amd64", 3, Unknown, 2, 3},
		// je over the prefix of lock cmpxchg %edx, (%rdi)
		{"a prefix", "7401" + "f00fb117" + ret, "amd64", 2, Begins, 2, 2},
		{"after a prefix that is jumped over", "7401" + "f00fb117" + ret, "amd64", 3, Inside, 2, 6},
		{"arm64", "40000034" + "c0035fd6", "arm64", 4, Begins, 4, 4},
		{"inside, arm64", "40000034" + "c0035fd6", "arm64", 6, Inside, 4, 8},
		{"arm64, a branch that is not known", "a13f0174" + "c0035fd6", "arm64", 4, Unknown, 0, 4},
	} {
		r := Read(insn.For(tt.arch), dwarftest.Hex(t, tt.code))
		r.From(0)
		if b, from, to := r.At(tt.at); b != tt.want || from != tt.from || to != tt.to {
			t.Errorf("%s: %d, %d to %d, want %d, %d to %d", tt.name, b, from, to, tt.want, tt.from, tt.to)
		}
	}
}

// TestReturnInstructions: all are found, also those that only an indirect jump reaches.
func TestReturnInstructions(t *testing.T) {
	for _, tt := range []struct {
		code    string
		arch    string
		want    []int
		strange int
	}{
		{"7401" + "c3" + "90" + "c3", "amd64", []int{2, 4}, -1},
		{"ffe0" + "90" + "c20800" + "90" + "c3", "amd64", []int{3, 7}, -1}, // jmp *%rax; ret $8
		{"0f0b" + "e900000000", "amd64", nil, -1},
		{"c3" + "06" + "c3", "amd64", []int{0}, 1},
		{"a0001fd6" + "c0035fd6", "arm64", []int{4}, -1}, // br x5
	} {
		r := Read(insn.For(tt.arch), dwarftest.Hex(t, tt.code))
		r.From(0)
		if at, strange := r.Returns(); !slices.Equal(at, tt.want) || strange != tt.strange {
			t.Errorf("%s: returns at %v, strange at %d, want %v, %d", tt.code, at, strange, tt.want, tt.strange)
		}
	}
}
