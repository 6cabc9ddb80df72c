package dwarfloc_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/glob"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/sites"
)

// TestFunctionsOfOneLine: functions that a macro declares at one line, as the kernel's
// SYSCALL_DEFINE does, are not parts of one another.
func TestFunctionsOfOneLine(t *testing.T) {
	const source = `
long sink;
#define INLINE static inline __attribute__((always_inline))
#define CALL(name) INLINE long do_##name(long); INLINE long se_##name(long a) { return do_##name(a + 1); } \
	__attribute__((noinline)) long x64_##name(long *a) { return se_##name(*a); } INLINE long do_##name(long a)
CALL(seek) { return sink += a; }
int main(void) { long a = 3; return x64_seek(&a); }
`
	path := compile(t, "gcc-12", source, "-g", "-O2")
	img := testenv.Open(t, path)
	for _, name := range []string{"se_seek", "do_seek"} {
		pattern, err := glob.Compile(name)
		if err != nil {
			t.Fatal(err)
		}
		found, err := sites.Select(t.Context(), img, sites.Selection{Functions: pattern})
		if err != nil {
			t.Fatal(err)
		}
		ways, err := img.Ways(t.Context(), found)
		if err != nil || len(ways) == 0 {
			t.Fatalf("%s: %d sites, %v", name, len(ways), err)
		}
		for i, w := range ways {
			if found[i].Kind != dwarfloc.SiteInline || w.Within || len(w.In) != 1 || w.Unknown != "" {
				t.Errorf("%v: %+v", found[i], w)
			}
		}
	}
}
