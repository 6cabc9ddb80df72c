package plan_test

import (
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestFoldedByLinker: a linker makes one of two functions that are equal, of one file or of two. A run there is of either.
func TestFoldedByLinker(t *testing.T) {
	sources := map[string]string{"a.c": `
#define NOINLINE __attribute__((noinline))
static inline int twice(int *p, int k) { *p -= k; return *p * k * 2; }
static NOINLINE int wide(int *p, int n) { int s = 0; for (int i = 0; i < n; i++) { p[i] += s; s += p[i] * 3 + i; } return s; }
static NOINLINE int high(int *h, int n) { int s = 0; for (int i = 0; i < n; i++) { h[i] += s; s += h[i] * 3 + i; } return s; }
static NOINLINE int deep(int *d, int n) { int s = 1; for (int i = 0; i < n; i++) { d[i] += s; s += d[i] * 5 + i; } return s; }
int another(int *p, int n) __attribute__((alias("other")));
NOINLINE int other(int *p, int n) { return deep(p, n) - n; }
NOINLINE int area(int *p, int n) { return twice(p, n) * 7 + n; }
NOINLINE int volume(int *p, int n);
int main(int argc, char **argv)
{
	int p[9] = {argc};
	return wide(p, argc + 3) + high(p, argc + 4) + deep(p, argc + 2) + other(p, argc) + another(p, argc + 1) + area(p, argc) + volume(p, argc);
}
`, "b.c": `
static inline int twice(int *p, int k) { *p -= k; return *p * k * 2; }
__attribute__((noinline)) int volume(int *p, int n) { return twice(p, n) * 7 + n; }
`}
	for _, tt := range []struct{ compiler, linker, options, shared string }{
		{"gcc-12", "ld.gold", "-O2 -ffunction-sections -fno-ipa-icf -fno-asynchronous-unwind-tables -fuse-ld=gold -Wl,--icf=all", "wide high area volume twice"},
		{"clang-19", "ld.lld-19", "-O2 -ffunction-sections -flto=thin -fuse-ld=lld -Wl,--icf=all", "wide high area volume twice"},
		{"clang-14", "ld.lld-14", "-O2 -ffunction-sections -fuse-ld=lld -Wl,--icf=all", "wide high area volume twice"},
		{"clang-19", "ld.lld-19", "-O2 -ffunction-sections -fuse-ld=lld -Wl,--icf=all", "wide high area volume twice"},
		{"clang-19", "ld.lld-19", "-O2 -ffunction-sections -fuse-ld=lld", ""},
		{"gcc-12", "ld.gold", "-O2 -fno-ipa-icf -fuse-ld=gold", ""},
	} {
		testenv.Tool(t, tt.linker)
		img := built(t, tt.compiler, tt.options, sources)
		for _, img := range []*dwarfloc.Image{img, packedImage(t, img)} {
			seen := 0
			p := plantest.New(t, img, "*", plan.Options{})
			for i := range p.Sites {
				s := &p.Sites[i]
				if want := strings.Contains(tt.shared, s.Function); s.Way.Shared != want || want && !s.Way.Again {
					t.Errorf("%s %s: %v: shared %v, again %v", tt.compiler, tt.options, s, s.Way.Shared, s.Way.Again)
				} else if want {
					seen++
				}
			}
			if tt.shared != "" && seen < 3 {
				t.Errorf("%s %s: %d sites are shared", tt.compiler, tt.options, seen)
			}
			if p := plantest.New(t, built(t, tt.compiler, tt.options, sources), "area", plan.Options{}); p.Sites[0].Way.Shared != (tt.shared != "") {
				t.Errorf("%s %s: %v alone: shared %v", tt.compiler, tt.options, &p.Sites[0], p.Sites[0].Way.Shared)
			}
		}
	}
}
