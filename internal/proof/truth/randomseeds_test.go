package truth

import (
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestRandomSeeds: generated programs in which values were wrong.
func TestRandomSeeds(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	for _, tt := range []struct {
		what, compiler, options string
		seed                    uint64
	}{
		{"parameters behind one that is not passed", "clang-14", "-O2 -no-pie", 97013},
		{"arithmetic with a slot that is stored behind the probe", "gcc-11", "-O2 -no-pie", 97034},
		{"the remainder of a byte, compared", "gcc-11", "-O2 -no-pie", 97115},
		{"a byte's upper bits, compared", "gcc-12", "-O3 -pie -fPIE", 97132},
		{"a shift of a short in a register with more bits", "gcc-12", "-O2 -no-pie", 510003},
		{"what a body makes of a number that is lost", "gcc-12", "-O2 -no-pie", 95085},
		{"what a body makes of a number that is lost", "gcc-12", "-O2 -no-pie -gno-variable-location-views", 95085},
		{"what a body makes of any truth value", "gcc-16", "-O2 -no-pie", 420018},
		{"the number of one of two paths that meet, where the other one comes from the body", "gcc-11", "-O3 -pie -fPIE", 420005},
		{"what a statement makes of the register of the only note, before the body begins", "gcc-11", "-Os -no-pie", 430006},
		{"what a body makes of a truth value that its clone is not passed", "gcc-12", "-Os -no-pie", 510003},
	} {
		b := Build{Language: C, Compiler: tt.compiler, Options: strings.Fields(tt.options)}
		if missing := b.Missing(); missing != "" {
			testenv.Missing(t, "%s is not installed: run \"make deps\"", missing)
			continue
		}
		err := RunRandom(t.Context(), t.TempDir(), []Build{b}, []uint64{tt.seed}, func(b *Build, seed uint64, r *Result, err error) {
			if err != nil {
				t.Fatal(err)
			}
			for i := range r.Wrong {
				t.Errorf("%s: %v, seed %d: %v", tt.what, b, seed, &r.Wrong[i])
			}
			if r.Compared < 500 {
				t.Errorf("%v, seed %d: %d values were compared", b, seed, r.Compared)
			}
		})
		if err != nil {
			t.Error(err)
		}
	}
}
