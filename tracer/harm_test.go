package tracer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/cpu"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/refusals"
	"github.com/bpfprologue/bpfprologue/pack"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// harmSource has inlined bodies that begin with vector instructions which uprobes run as other ones: with a probe there, and no
// check, the program ends with another status, with a fault, or with a trap.
const harmSource = `
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

// TestHarm: no probe is at an instruction that the kernel would run as another one, and a pack of the program says the same.
func TestHarm(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	if !cpu.X86.HasAVX2 || !cpu.X86.HasFMA {
		t.Skip("the processor has no AVX2 or FMA")
	}
	path, img := compiled(t, harmSource, "-O2")
	ofPack := packOf(t, img)
	names := []string{"or_of", "shuffle", "compare", "fused", "gather"}
	for _, x := range []*dwarfloc.Image{img, ofPack} {
		for _, p := range plans(t, x, append(names, "harmless")...) {
			harmless := p.Definition.Point.Function == "harmless"
			if got := p.Sites[0].Refused; len(p.Sites) != 1 || errors.Is(got, refusals.ErrHarmful) == harmless {
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

// packOf is a pack of an image.
func packOf(t *testing.T, img *dwarfloc.Image) *dwarfloc.Image {
	t.Helper()
	var packed bytes.Buffer
	if _, err := pack.Write(context.Background(), img, pack.Options{}, &packed); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "program.pack")
	if err := os.WriteFile(file, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	ofPack, err := dwarfloc.Open(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ofPack.Close() })
	return ofPack
}

// zoneSource has a leaf function that keeps its variables below the stack pointer, and an inlined body that begins with a NOP of five
// bytes, which Linux 6.18 makes a call of after the first hit.
const zoneSource = `
static inline __attribute__((always_inline)) void body(long n) { __asm__ volatile(".byte 0x0f, 0x1f, 0x44, 0, 0; test %0, %0" : : "r"(n)); }
static inline __attribute__((always_inline)) void copied(char *to, char *from, long n) { __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory"); }
static inline __attribute__((always_inline)) void pushed(void) { __asm__ volatile("pushfq; popfq" : : : "cc"); }
static inline __attribute__((always_inline)) void upper(long n) { __asm__ volatile("vzeroupper; nopl (%%rax)" : : "r"(n)); }

__attribute__((noinline)) int zone(long a)
{
	volatile long local[8];
	for (int i = 0; i < 8; i++)
		local[i] = a + i;
	body(a);
	int wrong = 0;
	for (int i = 0; i < 8; i++)
		wrong += local[i] != a + i;
	return wrong;
}

static char memory[4096], from[4096] = {7, 7};
__attribute__((noinline)) int copy(char *to, char *from, long unused, long n)
{
	copied(to, from, n);
	return to[1] != 7;
}

__attribute__((noinline)) int others(long a)
{
	pushed();
	upper(a);
	return a > 100;
}

int main(void)
{
	for (int i = 0; i < 100; i++)
		if (zone(i) || others(i) || copy(memory, from, 0, sizeof from))
			return 1;
	return 0;
}
`

// TestHarmMoves: where the next instruction sees the same runs and values, the probe goes there, and the program computes the same.
func TestHarmMoves(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	if !cpu.X86.HasAVX2 {
		t.Skip("the processor has no AVX2")
	}
	path, img := compiled(t, zoneSource, "-O2")
	// Where a definition names an address there is nothing to move to. The code of "zone" and of "copy", from their beginning.
	for function, text := range map[string]string{"zone": "\x0f\x1f\x44\x00\x00\x48\x85", "copy": "\xf3\xa4"} {
		at := plans(t, img, "inlines=no;"+function)[0].Sites[0].Addr
		code, err := inside.File(img).Bytes(at, map[string]uint64{"zone": 64, "copy": 16}[function])
		if err != nil {
			t.Fatal(err)
		}
		offset := bytes.Index(code, []byte(text))
		if _, err := plansOf(img, plan.Options{}, fmt.Sprintf("%s+%d", function, offset)); offset < 0 || !errors.Is(err, refusals.ErrHarmful) {
			t.Errorf("%s+%d: %v", function, offset, err)
		}
	}
	p := plans(t, img, "body n", "upper n", "pushed", "zone a")
	for i, moved := range []bool{false, true, true, false} {
		if s := &p[i].Sites[0]; s.MovedFrom != 0 != moved || s.Refused != nil {
			t.Errorf("%s: moved from %#x, refused for %v", p[i].Definition, s.MovedFrom, s.Refused)
		}
	}
	count := make(map[string]int)
	run(t, p, "", []string{path}, func(pid int, h *tracer.Hit) {
		if h.PID == pid {
			count[h.Plan.Definition.Point.Function]++
		}
	})
	if want := map[string]int{"body": 100, "upper": 100, "pushed": 100, "zone": 100}; !cmp.Equal(count, want) {
		t.Errorf("hits %v, want %v", count, want)
	}
}
