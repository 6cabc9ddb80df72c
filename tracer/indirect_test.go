package tracer_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
)

// work is called through a pointer, by itself, and by another function in place of its own end: then the return address is that of a call of
// the other one, which passed something else.
const indirectSource = `
__attribute__((noinline)) void used(int x) { asm volatile("" : : "r"(x) : "memory"); }
static int work(int x, int y)
{
	used(x);
	used(x);
	asm volatile("nop");
	used(3);
	return x;
}
static int through(int x, int y) { used(7); return work(x + 1, 1000); }
int (*table[2])(int, int) = {work, through};
int main(int argc, char **argv)
{
	int sum = 0;
	for (int i = 0; i < 4; i++) {
		int (*f)(int, int) = table[i % 2];
		asm volatile("" : "+r"(f));
		sum += f(i, 10 + i);
		used(sum);
		sum += f == work;
		asm volatile("" : : "r"(i), "r"(f));
	}
	return sum == 12345;
}
`

// TestIndirectCallers: what an indirect call passed is known where the caller's frame says that it called the function, and missing where it
// called another one.
func TestIndirectCallers(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	for _, compiler := range []string{"gcc-12", "clang-14"} {
		for _, options := range [][]string{{"-O2", "-fno-inline"}, {"-O2", "-fno-inline", "-no-pie", "-fno-pie"}} {
			if compiler == "gcc-12" {
				options = append(options, "-fno-ipa-ra") // the register would keep it
			}
			path, img := build(t, compiler, "source.c", indirectSource, options...)
			p := plans(t, img, "source.c:7 x y")
			var got []string
			for _, v := range traced(t, p, "", path) {
				got = append(got, v[strings.LastIndexByte(v, ' ')+1:])
			}
			if want := []string{"x=0", "y=10", "x=2", "x=2", "y=12", "x=4"}; !cmp.Equal(got, want) {
				t.Errorf("%s %v: %q, want %q", compiler, options, got, want)
			}
		}
	}
}

// TestIndirectJump: clang keeps what is called in a register that functions need not preserve. One that is called goes on in another function by
// that register, and so it names that: what was passed is not known.
func TestIndirectJump(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	const source = `
typedef void (*fn)(long);
volatile fn second, first;
volatile long sink;
__attribute__((noinline)) static void f(long x)
{
	sink = x;
	asm volatile("xor %%edi, %%edi" : : : "rdi");
	sink = 1;
}
__attribute__((noinline)) static void g(long y) { second(y + 1); }
__attribute__((noinline)) void caller(long n) { first(n * 0 + 5); sink = 2; }
int main(void)
{
	second = f;
	first = g;
	caller(1);
	first = f;
	caller(1);
	return 0;
}
`
	for _, compiler := range []string{"clang-14", "clang-19", "gcc-12"} {
		path, img := build(t, compiler, "source.c", source, "-O2")
		got := traced(t, plans(t, img, "source.c:9 x"), "", path)
		for i := range got {
			got[i] = got[i][strings.LastIndexByte(got[i], ' ')+1:]
		}
		if all := strings.Join(got, " "); all != "" && all != "x=5" && all != "x=6 x=5" {
			t.Errorf("%s: %q", compiler, got)
		}
	}
}
