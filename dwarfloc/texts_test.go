package dwarfloc_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
)

// elsewhereNamed is a program whose functions have their names in another unit than their code, with link-time optimization.
const elsewhereNamed = `
volatile int sink;
static inline __attribute__((always_inline)) void first(int n)
{
	if (n > 3)
		sink = n;
}
static inline __attribute__((always_inline)) void second(int n)
{
	first(n + 1);
	sink += n;
}
__attribute__((noinline)) static int third(int n)
{
	second(n * 3);
	return n + sink;
}
int main(int argc, char **argv)
{
	second(argc);
	return third(argc + 5);
}
`

// TestTextsInOrder: which function's text a row of the line table is in does not depend on which functions were asked about before.
func TestTextsInOrder(t *testing.T) {
	path := compile(t, "gcc-12", elsewhereNamed, "-g", "-O2", "-flto")
	alone, together := dwarfloc.Beginnings(t, path, true), dwarfloc.Beginnings(t, path, false)
	if len(alone) == 0 {
		t.Fatal("nothing was asked")
	}
	for q, a := range alone {
		if b := together[q]; a != b {
			t.Errorf("%+v: %+v alone, %+v after others", q, a, b)
		}
	}
}
