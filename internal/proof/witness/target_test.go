package witness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
)

// targets is a program where functions are given to one that is inlined. GCC writes no location for the address of a function of another unit.
const targets = `struct s { long a, b; volatile long *other; };
volatile long sink;
void free_one(struct s *), free_other(struct s *), free_third(struct s *);
extern void (*chosen[2])(struct s *);
__attribute__((noinline, noclone)) void warn(long n) { asm volatile("" ::: "memory"); sink += n; }
static inline __attribute__((always_inline)) void check(long n) { if (n < 0) warn(n); }
static inline __attribute__((always_inline)) void put(struct s *p, void (*release)(struct s *)) { check(p->a); if (--p->a == 0) release(p); }
static inline __attribute__((always_inline)) void unused(struct s *p, void (*release)(struct s *)) { sink += (long)(release == 0); warn(p->a); }
static inline __attribute__((always_inline)) void either(struct s *p, void (*release)(struct s *), long n) {
	if (n >= 0)
		release(p);
	else
		warn(n);
}
static inline __attribute__((always_inline)) long pick(volatile long *q, struct s *p, long n) {
	if (n >= 0)
		return *q;
	return *p->other;
}
static inline __attribute__((always_inline)) void last(struct s *p, void (*release)(struct s *)) { if (p->a > 100) warn(p->a); release(p); }
%s
void after(struct s *p);
extern long away[4];
__attribute__((noinline, noclone)) void lost(struct s *p) { put(p, after); sink++; }
__attribute__((noinline, noclone)) void lost_unused(struct s *p) { unused(p, after); sink++; }
__attribute__((noinline, noclone)) void lost_either(struct s *p, long n) { if (n < -5) either(p, after, n); sink++; }
__attribute__((noinline, noclone)) void lost_pick(struct s *p, long n) { if (n < -5) sink += pick(&away[1], p, n); }
__attribute__((noinline, noclone)) void lost_last(struct s *p) { last(p, after); }
__attribute__((noinline, noclone)) void indirect(struct s *p) { put(p, chosen[sink & 1]); sink++; }
__attribute__((noinline, noclone)) void free_one(struct s *p) { asm volatile("" ::: "memory"); p->b++; }
__attribute__((noinline, noclone)) void free_other(struct s *p) { asm volatile("" ::: "memory"); p->b--; }
__attribute__((noinline, noclone)) void free_third(struct s *p) { asm volatile("" ::: "memory"); p->b = 0; }
void (*chosen[2])(struct s *) = {free_one, free_other};
int main(void) { return 0; }
`

// TestTarget: the only function that a body calls by itself is what it was given, where it is so in the bodies that debug information knows.
func TestTarget(t *testing.T) {
	var callers strings.Builder
	for i := range 24 {
		release := []string{"free_one", "free_other", "free_third"}[i%3]
		fmt.Fprintf(&callers, "__attribute__((noinline, noclone)) void c%[1]d(struct s *p, long n, long *q) { put(p, %[2]s); unused(p, warn); if (n > 5) either(p, %[2]s, n); if (n > 5) sink += pick(q + %[1]d, p, n); if (p->a < 40) last(p, %[2]s); sink++; }\n", i, release)
	}
	for _, options := range []string{"-O2", "-Os", "-O2 -no-pie -fno-pie", "-O2 -mindirect-branch=thunk"} {
		t.Run(options, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "targets")
			for name, text := range map[string]string{"one.c": fmt.Sprintf(targets, callers.String()), "other.c": "long away[4]; void after(long *p) { ++*p; }\n"} {
				if err := os.WriteFile(filepath.Join(filepath.Dir(path), name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			c := exec.Command(testenv.Tool(t, "gcc-12"), append(strings.Fields(options), "-g", asKernel, "-o", path, "one.c", "other.c")...)
			c.Dir = filepath.Dir(path)
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			img := testenv.Open(t, path)
			at, err := inside.File(img).SymbolAddresses("after", "away")
			if err != nil {
				t.Fatal(err)
			}
			p := plantest.New(t, img, "put release", plan.Options{})
			seen := map[string]bool{}
			for i := range p.Sites {
				s, v := &p.Sites[i], p.Sites[i].Args[0].Variable
				switch seen[s.Symbol] = true; {
				case s.Symbol == "lost" && (!v.Located() || v.Loc.Rule != rule.Call || v.Loc.Expr.K != at["after"]):
					t.Errorf("%v: %v, want %#x", s, v, at["after"])
				case s.Symbol == "indirect" && v.Located() && v.Loc.Rule == rule.Call:
					t.Errorf("%v: %v, and it is chosen at run time", s, v)
				}
			}
			if !seen["lost"] || !seen["indirect"] {
				t.Errorf("sites in %v", seen)
			}
			for function, want := range map[string]uint64{"unused release": at["after"], "either release": at["after"], "last release": at["after"], "pick q": at["away"] + 8} {
				p := plantest.New(t, img, function, plan.Options{})
				name, _, _ := strings.Cut(function, " ")
				for i := range p.Sites {
					if s, v := &p.Sites[i], p.Sites[i].Args[0].Variable; s.Symbol == "lost_"+name && v.Located() && (v.Loc.Expr.Op != ops.Addr || v.Loc.Expr.K != want) {
						t.Errorf("%v: %v, want %#x or none", s, v, want)
					}
				}
			}
		})
	}
}
