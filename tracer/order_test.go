package tracer_test

import (
	"slices"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// TestOrder: runs that begin at one instruction are seen in the order of their statements, whichever programs fetch what they were passed.
func TestOrder(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, img := build(t, "gcc-12", "order.c", `
static inline unsigned char peek(const unsigned char *b, int pos, int d) { return b[pos - d]; }
__attribute__((noipa)) int look(const unsigned char *b, int pos, int r)
{
	const unsigned char before = peek(b, pos, 1);
	const unsigned char here = peek(b, pos, 0);
	const unsigned char match = peek(b, pos, r + 2);
	return before * 3 + here * 5 + match;
}
int main(void)
{
	int n = 0;
	for (int i = 8; i < 10; i++)
		n += look((const unsigned char *)"a long text of bytes", i, i - 6);
	return n == 99;
}
`, "-O2")
	var got []string
	p := plans(t, img, "peek d")
	run(t, p, "", []string{path}, func(pid int, h *tracer.Hit) {
		if h.PID == pid {
			got = append(got, h.Values[0].String())
		}
	})
	if want := []string{"1", "0", "4", "1", "0", "5"}; !slices.Equal(got, want) || p[0].Sites[0].Addr != p[0].Sites[2].Addr {
		t.Errorf("%q, not %q, at %v", got, want, p[0].Sites)
	}
}
