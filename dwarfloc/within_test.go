package dwarfloc_test

import (
	"slices"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/glob"
	"github.com/bpfprologue/bpfprologue/internal/inside"
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
		ways, err := inside.Ways(img, t.Context(), found)
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

// TestDeclarationInBody: compiletime_assert declares a function in the midst of INIT_LIST_HEAD,
// whose statements are no others' for that. A turn of newary's loop runs each of its two bodies
// once.
func TestDeclarationInBody(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a kernel image")
	}
	img := testenv.Open(t, testenv.Vmlinux(t))
	pattern, err := glob.Compile("INIT_LIST_HEAD")
	if err != nil {
		t.Fatal(err)
	}
	found, err := sites.Select(t.Context(), img, sites.Selection{Functions: pattern})
	if err != nil {
		t.Fatal(err)
	}
	found = slices.DeleteFunc(found, func(s *dwarfloc.Site) bool {
		return s.Symbol != "newary" || len(s.Callers) != 1
	})
	ways, err := inside.Ways(img, t.Context(), found)
	if err != nil || len(found) == 0 {
		t.Fatalf("%d sites, %v", len(found), err)
	}
	for i, w := range ways {
		if len(w.In) != 1 || w.In[0].Again || w.Unknown != "" {
			t.Errorf("%v, line %d: %+v", found[i], found[i].CallLine, w)
		}
	}
}
