package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestOnceMore: LLVM gives a size that the caller computes of what a body has loaded for its first test the body's position, behind it and behind paths where the test's result is known, as in
// mbedtls_mpi_lset's memset. Each run hits both; where there is no such piece, nothing is in doubt.
func TestOnceMore(t *testing.T) {
	const source = `
#include <stdlib.h>
#include <string.h>
typedef unsigned long limb;
struct number { int sign; size_t n; limb *p; };
__attribute__((noinline)) static void zero(limb *p, size_t n) { memset(p, 0, n * sizeof *p); asm volatile("" : : : "memory"); }
int grow(struct number *x, size_t n)
{
	limb *p;
	if (n > 10000)
		return -16;
	if (x->n < n) {
		if ((p = calloc(n, sizeof *p)) == 0)
			return -16;
		if (x->p != 0) {
			memcpy(p, x->p, x->n * sizeof *p);
			zero(x->p, x->n);
			free(x->p);
		}
		x->n = n;
		x->p = p;
	}
	return 0;
}
int set(struct number *x, long z)
{
	int ret;
	if ((ret = grow(x, 1)) != 0)
		return ret;
	memset(x->p, 0, x->n * sizeof *x->p);
	x->p[0] = z < 0 ? -z : z;
	x->sign = z < 0 ? -1 : 1;
	return ret;
}
int product(struct number *x, const struct number *a, const struct number *b)
{
	int ret;
	size_t i, j;
	for (i = a->n; i > 0 && !a->p[i - 1]; i--) {}
	for (j = b->n; j > 0 && !b->p[j - 1]; j--) {}
	if ((ret = grow(x, i + j)) != 0)
		return ret;
	if ((ret = set(x, 0)) != 0)
		return ret;
	for (; j > 0; j--)
		x->p[j - 1] += a->p[0] * b->p[j - 1];
	return 0;
}
int main(void)
{
	struct number a = {1}, b = {1}, x = {1};
	set(&a, 3);
	set(&b, 5);
	for (int k = 0; k < 4; k++)
		product(&x, &a, &b);
	return x.p[0] != 15;
}
`
	for _, tt := range []struct {
		compiler, options string
		sites, again      int
	}{
		{"clang-14", "-O1", 6, 0}, {"clang-14", "-O2", 7, 1}, {"clang-14", "-O3", 7, 1}, {"clang-15", "-O2", 7, 1}, {"clang-16", "-O2", 6, 0}, {"clang-16", "-O3", 6, 0},
	} {
		img := built(t, tt.compiler, tt.options, map[string]string{"a.c": source})
		sites, again := waysOf(plantest.New(t, img, "grow", plan.Options{}))
		if sites != tt.sites || again != tt.again {
			t.Errorf("%s %s: %d sites, %d of which may be hit without a run, not %d and %d", tt.compiler, tt.options, sites, again, tt.sites, tt.again)
		}
	}
}
