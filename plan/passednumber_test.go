package plan_test

import (
	"strings"
	"testing"
)

// TestPassedNumber: with LLVM, and without markers of statements, a number may be what a statement makes of one. Where a caller's variable has the same number in all bodies of a call, and
// not always one, the call passes that.
func TestPassedNumber(t *testing.T) {
	const source = `
#define inline inline __attribute__((always_inline))
static inline void put(long n, volatile long *p) { *p = n; p[2] = n; }
static inline void put_by(long n, volatile long *p) { put(n, p); p[3] = n; }
static inline void put_next(long n, volatile long *p) { n += 1; *p = n; p[3] = n; }
static inline void put_next_by(long n, volatile long *p) { put_next(n, p); p[1] = n; }
static inline void one(long n, volatile long *p) { *p = n; p[2] = n; }
static inline void one_by(long n, volatile long *p) { one(n, p); p[3] = n; }
static inline void at_most(long n, volatile long *p) { if (n > 20) n = 20; *p = n; p[3] = n; }
static inline void at_most_by(long n, volatile long *p) { at_most(n, p); p[1] = n; }
static inline void put_wide(unsigned n, volatile long *p) { *p = n; p[2] = n; }
static inline void put_byte(unsigned char n, volatile long *p) { put_wide(n, p); p[3] = n; }
__attribute__((noipa, noinline)) void f(volatile long *p) { put_byte(200, p); put_by(17, p); put_next_by(17, p); one_by(17, p); at_most_by(17, p); }
__attribute__((noipa, noinline)) void g(volatile long *p) { put_byte(17, p); put_by(40, p); put_next_by(40, p); one_by(17, p); at_most_by(40, p); }
__attribute__((noipa, noinline)) void h(volatile long *p) { put_byte(144, p); put_by(50, p); put_next_by(51, p); one_by(17, p); at_most_by(5, p); }
int main(void) { long a[8] = {0}; f(a); g(a); h(a); return a[0] & 1; }
`
	for _, build := range []string{
		"gcc-11 -O2 -gno-statement-frontiers", "gcc-12 -O2 -gno-statement-frontiers", "gcc-12 -O2 -gno-statement-frontiers -gno-variable-location-views",
		"gcc-11 -O2 -gno-statement-frontiers -flto", "gcc-12 -O2 -gno-statement-frontiers -flto", "clang-14 -O2", "clang-22 -O2",
	} {
		compiler, options, _ := strings.Cut(build, " ")
		img := built(t, compiler, options, map[string]string{"a.c": source})
		isSure(t, build, img, "put n", 3, true)
		isSure(t, build, img, "put_wide n", 3, true)
		isSure(t, build, img, "put_next n", 3, false)
		isSure(t, build, img, "one n", 3, false)
		isSure(t, build, img, "at_most n", 3, false)
	}
}
