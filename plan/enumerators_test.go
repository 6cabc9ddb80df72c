package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestEnumerators: GCC gives a value from 128 to 255 one byte, and those below 0 a form with a sign.
func TestEnumerators(t *testing.T) {
	const source = `
enum op { A, B = 127, C = 128, D = 163, E = 40000, F = 0x80000001 };
enum way { DOWN = -5, UP = 200, FAR = -200, FARTHER = 0xfff0 };
__attribute__((noinline)) long f(enum op o, enum way w) { __asm__ volatile(""); return o + w; }
int main(int c, char **v) { return f(D, UP) + f(C, DOWN); }
`
	for _, compiler := range []string{"gcc-11", "gcc-12", "clang-14", "clang-16", "clang-22"} {
		for _, options := range []string{"-O0", "-O2 -gdwarf-4"} {
			p := plantest.New(t, built(t, compiler, options, map[string]string{"a.c": source}), "f o w", plan.Options{})
			for i, names := range []map[int64]string{
				{0: "A", 127: "B", 128: "C", 163: "D", 40000: "E", 0x80000001: "F", -128: "", -93: ""},
				{-5: "DOWN", 200: "UP", -200: "FAR", 0xfff0: "FARTHER", -56: "", -16: ""},
			} {
				for value, want := range names {
					if name, err := p.Sites[0].Args[i].Variable.Type.Enumerator(value); name != want || err != nil {
						t.Errorf("%s %s: %d is %q, %v, want %q", compiler, options, value, name, err, want)
					}
				}
			}
		}
	}
}
