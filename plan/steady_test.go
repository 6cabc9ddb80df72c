package plan_test

import "testing"

// TestSteady: GCC without views leaves one note where several statements begin. Other bodies of the function show whether those assign the parameter.
func TestSteady(t *testing.T) {
	const source = `
#define inline inline __attribute__((always_inline))
static inline void nothing(volatile long *p) { (void)p; }
static inline void set(long nr, volatile long *p)
{
	nothing(p);
	*p = nr;
	p[1] = nr;
}
static inline void set_next(long nr, volatile long *p)
{
	nr += 1;
	*p = nr;
	p[1] = nr;
}
static inline void put(long nr, volatile long *p)
{
	nothing(p);
	*p = nr;
	p[2] = nr;
}
static inline void put_by(long nr, volatile long *p) { put(nr, p); p[3] = nr; }
static inline void put_next(long nr, volatile long *p)
{
	nr += 1;
	*p = nr;
	p[3] = nr;
}
static inline void put_next_by(long nr, volatile long *p) { put_next(nr, p); p[1] = nr; }
#define BOTH(nr, p) do { nothing(p); nr += 1; *p = nr; } while (0)
static inline void both(long nr, volatile long *p)
{
	BOTH(nr, p);
	p[1] = nr;
}
static inline void alone(long nr, volatile long *p)
{
	nothing(p);
	*p = nr;
	p[3] = nr;
}
__attribute__((noipa)) long use(long n) { return n; }
__attribute__((noipa)) void f(long n, volatile long *p) { set(n, p); set_next(n, p + 1); alone(5, p); use(n); }
__attribute__((noipa)) void g(volatile long *p, long n) { use(n); set(n, p); set_next(n, p + 1); use(n); }
__attribute__((noipa)) void k(volatile long *p, long n) { n = use(n); set(n, p); use(n); }
__attribute__((noipa)) void h(volatile long *p) { set(5, p); set_next(5, p + 1); }
__attribute__((noipa)) void i(volatile long *p) { put_by(17, p); put_next_by(17, p); both(3, p); }
__attribute__((noipa)) void j(volatile long *p) { put_by(40, p); put_next_by(40, p); put(9, p + 1); both(4, p); }
int main(void) { long a[8] = {0}; f(3, a); g(a, 4); k(a, 6); h(a); i(a); j(a); return a[0] & 1; }
`
	for _, compiler := range []string{"gcc-11", "gcc-12"} {
		img := built(t, compiler, "-O2 -gno-variable-location-views", map[string]string{"a.c": source})
		isSure(t, compiler, img, "set nr", 4, true)
		isSure(t, compiler, img, "set_next nr", 3, false)
		isSure(t, compiler, img, "put nr", 3, true)
		isSure(t, compiler, img, "put_next nr", 2, false)
		isSure(t, compiler, img, "both nr", 2, false)
		isSure(t, compiler, img, "alone nr", 1, false)
	}
}
