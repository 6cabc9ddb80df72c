package dwarfloc_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestAdvanced: GCC notes "n + 2" behind the loop as the register with n plus 3, by what n was before its last turn, which had the same register.
func TestAdvanced(t *testing.T) {
	const source = `
volatile unsigned long sink;
char *out;
static inline __attribute__((always_inline)) void put(unsigned long size, int digits)
{
	*out++ = '0';
	sink += digits;
}
__attribute__((noipa)) void show(unsigned long v)
{
	int n = 0;
	do
		n++;
	while ((v >>= 4) != 0);
	put((unsigned)n + 2, n);
}
int main(int argc, char **argv)
{
	out = argv[0];
	show(argc);
}
`
	img := testenv.Open(t, compile(t, "gcc", source, "-O2", "-g", "-w"))
	sites, err := img.Sites(t.Context(), dwarfloc.Name("put"))
	if err != nil || len(sites) != 1 {
		t.Fatalf("%d sites, %v", len(sites), err)
	}
	size, err := sites[0].Lookup("size")
	if err != nil || size.Located() && size.Loc.Doubt != reasons.Contradictory && size.Loc.Text(img.Arch()) != "%rax+2" {
		t.Errorf("size is at %s, doubt %v, %v", size.Loc.Text(img.Arch()), size.Loc.Doubt, err)
	}
	digits, err := sites[0].Lookup("digits")
	if err != nil || digits.Loc.Text(img.Arch()) != "%rax" || digits.Loc.Doubt != reasons.None {
		t.Errorf("digits is at %s, doubt %v, %v", digits.Loc.Text(img.Arch()), digits.Loc.Doubt, err)
	}
}
