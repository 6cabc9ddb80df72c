package tracer_test

import (
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// A program of 32 bits that needs no library: none may be installed for i386. Pointers and registers have four
// bytes, arguments are on the stack, and int $0x80 ends it.
const source386 = `
struct pair { int a; const char *text; long long wide; unsigned char small; };
static volatile int sink;

static inline __attribute__((always_inline)) void inlined(int n, const struct pair *p)
{
	sink = n * p->a;
	if (n > 100)
		sink = 2;
}

__attribute__((noinline)) long long take(int i, unsigned u, long long w, const struct pair *p, signed char c)
{
	inlined(i + 3, p);
	return w + i + (int)u + c + p->small;
}

static struct pair pair = { -40, "thirty-two", -8303603439LL, 250 };

void _start(void)
{
	sink = pair.text[0]; /* its page is resident then */
	long long r = take(-4000000, 4026531880u, 0x123456789abcdefLL, &pair, -7);
	sink = (int)r;
	__asm__ volatile("int $0x80" : : "a"(1), "b"(0));
}
`

// TestI386: programs of 32 bits on an amd64 kernel, whose registers are those of amd64.
func TestI386(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	if runtime.GOARCH != "amd64" {
		t.Skip("i386 programs run on amd64")
	}
	for _, level := range []string{"-O0", "-O1", "-O2", "-Os"} {
		t.Run(level, func(t *testing.T) {
			path, img := compiled(t, source386, "-m32", level, "-static", "-nostdlib", "-ffreestanding", "-fno-pic", "-fno-stack-protector")
			p, err := plansOf(img, plan.Options{Target: inFile(t, img).Target()},
				"take i u w c p->a p->text:string p->wide p->small",
				"inlined n p->a p->text:string p->wide",
				"take%return low=$retval:s32",
			)
			if err != nil {
				t.Fatal(err)
			}
			got := make(map[string]string)
			run(t, p, "", []string{path}, func(pid int, h *tracer.Hit) {
				for i := range h.Values {
					if h.PID == pid {
						got[h.Plan.Sites[h.Site].Function+" "+h.Values[i].Name] = h.Values[i].String()
					}
				}
			})
			want := map[string]string{
				"take i": "-4000000", "take u": "4026531880", "take w": "81985529216486895", "take c": "-7",
				"take a": "-40", "take text": `"thirty-two"`, "take wide": "-8303603439", "take small": "250",
				"inlined n": "-3999997", "inlined a": "-40", "inlined text": `"thirty-two"`, "inlined wide": "-8303603439",
				"take low": "2037302794",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
