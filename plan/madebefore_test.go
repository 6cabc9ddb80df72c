package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestMadeBefore: LLVM 17 and later take what two calls begin with out of both sides of the caller's test, as a body of its own, and leave what uses that behind the test: its comparison in that body and its
// branch in those of the calls, as in bc's load_code, or all the rest in those. One run is all three. A second run that uses what was loaded for the first one begins where it does so.
func TestMadeBefore(t *testing.T) {
	const source = `
int failed, level;
unsigned at;
char room[64];
short numbers[4];
__attribute__((noinline)) void more(unsigned n) { asm volatile("" : : "r"(n) : "memory"); }
static void add(unsigned char byte)
{
	if (failed)
		return;
	unsigned n = at++;
	if (n >= 60)
		more(n);
	room[n & 63] = byte;
}
__attribute__((noinline)) void digits(const char *s)
{
	for (; *s; s++) {
		if (*s >= 'A')
			add(*s + 10 - 'A');
		else
			add(*s - '0');
	}
}
static int pick(int x)
{
	if (level)
		return x * 3;
	return x ^ 5;
}
__attribute__((noinline)) int one(int a, int b, int c)
{
	if (a > 4)
		return pick(b + 2) + a;
	else
		return a - pick(c * 9);
}
static void put(short *to, int x)
{
	if (x > level)
		return;
	*to = x;
}
__attribute__((noinline)) void two(int a, int b, int c, int d)
{
	if (a > 4) put(numbers, b); else put(numbers + 1, c);
	if (d > 4) put(numbers + 2, b + 1); else put(numbers + 3, c + 1);
}
int main(int argc, char **argv)
{
	digits("12AB3");
	two(argc, 2, 3, 5);
	return room[argc] & one(argc, 4, 5);
}
`
	for _, cc := range []string{"clang-19", "clang-22"} {
		img := built(t, cc, "-O2", map[string]string{"a.c": source})
		for function, ways := range map[string]int{"add": 1, "pick": 1, "put": 3} {
			hasWays(t, plantest.New(t, img, function, plan.Options{}), ways, 0)
		}
	}
}
