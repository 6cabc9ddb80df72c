package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/reasons"
)

// TestMadeInside: clang 14 gives the load of "c = tolower(c)" no line, so that the body begins behind it, and has a note of what was loaded alone.
func TestMadeInside(t *testing.T) {
	const source = `
#include <ctype.h>
#include <string.h>
static int vowel(int c) { c = tolower(c); return strchr("aeiou", c) != 0; }
static int count(const char *s, int n, int (*f)(int)) { int r = 0; while (n-- > 0 && *s) r += f(*s++); return r; }
int main(void) { return count("Hello Out There", 12, vowel); }
`
	hasDoubt(t, "clang-14", built(t, "clang-14", "-O1", map[string]string{"a.c": source}), "vowel c", reasons.Reassigned)
}
