package plan_test

import "testing"

// TestUnsetReference: clang drops the caller's store of a number whose reference is passed to a body that sets it, as in fmt's grisu_gen_digits, and keeps in a register what another one changes. Where
// the caller's store is left, or its address was given to others before, what is there is what is passed.
func TestUnsetReference(t *testing.T) {
	const source = `
static volatile long sink;
extern "C" long ext(void *);
#define INLINE static inline __attribute__((always_inline))
INLINE long digits(long v, int &exp)
{
	if (v > 100) { exp = 3; sink = v; }
	else exp = (int)v + 2;
	return exp;
}
INLINE long grows(long v, int &by) { by += v; return by; }
INLINE long reads(long v, int &is) { sink = v; return ext(&is); }
INLINE long known(long v, int &was) { was += v; return was; }
long get(long v) { int exp = 0; long r = digits(v, exp); ext(&exp); return r + exp; }
long grow(long v) { int by = ext(0); long r = grows(v, by); ext(&by); return r + by; }
long read(long v) { int is = v + 7; return reads(v, is) + is; }
long know(long v) { int was; ext(&was); long r = known(v, was); ext(&was); return r + was; }
`
	for _, options := range []string{"-O2 -shared -fPIC", "-Os -shared -fPIC"} {
		img := built(t, "clang++-14", options, map[string]string{"a.cc": source})
		isSure(t, options, img, "digits exp", 1, false)
		isSure(t, options, img, "grows by", 1, false)
		isSure(t, options, img, "reads is", 1, true)
		isSure(t, options, img, "known was", 1, true)
	}
}
