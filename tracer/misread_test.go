package tracer_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/cpu"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/pack"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// misreadSource has inlined bodies that begin with vector instructions which uprobes run as other ones: with a probe there, and no
// check, the program ends with another status, with a fault, or with a trap.
const misreadSource = `
static int memory[4] = {5, 6, 7, 8};
#define BODY(name, instruction) static inline __attribute__((always_inline)) void name(void) { __asm__ volatile(instruction : : : "xmm0", "xmm2", "xmm3"); }
BODY(or_of, "vpor %%xmm1, %%xmm0, %%xmm2")
BODY(shuffle, "vpshufd $0, %%xmm2, %%xmm3")
BODY(compare, "vcmpps $0, %%xmm2, %%xmm2, %%xmm0")
BODY(fused, "vfnmadd132ss %%xmm2, %%xmm2, %%xmm0")
BODY(gather, "vpgatherdd %%xmm5, (%%rbx,%%xmm4,4), %%xmm0")
BODY(harmless, "vpshufb %%xmm4, %%xmm3, %%xmm3")

__attribute__((noinline)) int all(long a, long b)
{
	int r, s;
	__asm__ volatile("vmovq %0, %%xmm0; vmovq %1, %%xmm1; vpxor %%xmm4, %%xmm4, %%xmm4; vpcmpeqd %%xmm5, %%xmm5, %%xmm5" : : "r"(a), "r"(b), "b"(memory) : "xmm0", "xmm1", "xmm4", "xmm5");
	or_of();
	shuffle();
	compare();
	fused();
	gather();
	harmless();
	__asm__ volatile("vmovd %%xmm3, %0; vmovd %%xmm0, %1" : "=r"(r), "=r"(s));
	return r == 0x13131313 && s == 5;
}

int main(int argc, char **argv)
{
	for (int i = 0; i < 3; i++)
		if (!all(0x10 + argc - 1, 3))
			return 1;
	return 0;
}
`

// TestMisread: no probe is at an instruction that the kernel would run as another one, and a pack of the program says the same.
func TestMisread(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	if !cpu.X86.HasAVX2 || !cpu.X86.HasFMA {
		t.Skip("the processor has no AVX2 or FMA")
	}
	path, img := compiled(t, misreadSource, "-O2")
	var packed bytes.Buffer
	if _, err := pack.Write(context.Background(), img, pack.Options{}, &packed); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "program.pack")
	if err := os.WriteFile(file, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	told, err := dwarfloc.Open(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()
	names := []string{"or_of", "shuffle", "compare", "fused", "gather"}
	for _, x := range []*dwarfloc.Image{img, told} {
		for _, p := range plans(t, x, append(names, "harmless")...) {
			harmless := p.Definition.Point.Function == "harmless"
			if got := p.Sites[0].Refused; len(p.Sites) != 1 || errors.Is(got, dwarfloc.ErrMisread) == harmless {
				t.Errorf("%s of %s: %d sites, refused for %v", p.Definition, x.Path(), len(p.Sites), got)
			}
		}
	}
	var hits []string
	run(t, plans(t, img, append(names, "harmless")...), "", []string{path}, func(pid int, h *tracer.Hit) {
		if h.PID == pid {
			hits = append(hits, h.Plan.Definition.Point.Function)
		}
	})
	if want := []string{"harmless", "harmless", "harmless"}; !cmp.Equal(hits, want) { // run fails unless the program's status is 0
		t.Errorf("%q, want %q", hits, want)
	}
}
