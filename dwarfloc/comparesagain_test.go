package dwarfloc

import (
	"slices"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
)

// TestComparesAgain: LLVM compares once more where the caller needs what the body's first test has found. That is no run, unless what is compared is another value, or the body goes on.
func TestComparesAgain(t *testing.T) {
	// mov (%rdi),%eax; 2: inner: test %eax,%eax; je 8; incl (%rsi); 8: incl (%rdx); 10: inner: test %eax,%eax; sete %cl; 15: mov %cl,(%rdx); ret
	const first, caller, again, end = "8b07" + "85c0" + "7402" + "ff06", "ff02", "85c0" + "0f94c1", "880a" + "c3"
	rows := []placed{{0, 20}, {2, 2}, {6, 3}, {8, 21}, {10, 2}, {15, 22}}
	for _, tt := range []struct {
		name, code string
		want       []uint64
	}{
		{"the same value", first + caller + again + end, []uint64{2}},
		{"another value", first + "8b02" + again + end, []uint64{2, 10}},                   // 8: mov (%rdx),%eax
		{"a body that goes on", first + caller + "85c0" + "c60601" + end, []uint64{2, 10}}, // 12: movb $1,(%rsi)
	} {
		img := inlinedImage(t, "clang version 22.0.0", tt.code, rows, 2, 8, 10, 15)
		got := waysIn(t, img, tt.name)
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: ways in at %d, want %d", tt.name, got, tt.want)
		}
	}
}

// waysIn returns where runs of the one instance of inner begin, in bytes from the text's start.
func waysIn(t *testing.T, img *Image, name string) (got []uint64) {
	t.Helper()
	ways, err := img.waysOfSites(t.Context(), sitesOf(t, img, "inner", 1))
	if err != nil || ways[0].Unknown != "" {
		t.Fatalf("%s: %+v, %v", name, ways, err)
	}
	for _, w := range ways[0].In {
		got = append(got, w.Probe-dwarftest.TextAddr)
	}
	return got
}
