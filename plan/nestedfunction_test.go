package plan_test

import (
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestNestedFunction: variables of the function around a nested one are in its frame, to which a static link leads, where they are in memory of it at all of its calls, or where
// its code copies them. GCC notes what those were before they were copied: n, which is counted up, and k.
func TestNestedFunction(t *testing.T) {
	const source = `
volatile int sink;
int outer(int n, int k, char *s)
{
	int total = 0;
	long twice = 2 * n;
	__attribute__((noinline)) int inner(int by)
	{
		total += by * k;
		sink = s[0] + n;
		return total + twice;
	}
	n++;
	int r = 0;
	for (int i = 0; i < n; i++)
		r += inner(i);
	return r;
}
`
	testenv.Tool(t, "gcc-12")
	for options, sure := range map[string]map[string]bool{
		"-O0 -shared -fPIC": {"n": true, "k": true, "total": true, "twice": true},
		"-Og -shared -fPIC": {"n": true, "k": true, "total": true, "twice": true},
	} {
		img := built(t, "gcc-12", options, map[string]string{"a.c": source})
		for name, want := range sure {
			p := plantest.New(t, img, "inner "+name, plan.Options{})
			for i := range p.Sites {
				if v := p.Sites[i].Args[0].Variable; v.Located() != want {
					t.Errorf("%s: %s at %v: %v", options, name, &p.Sites[i], v)
				}
			}
		}
	}
}

// TestStaticLink: where a nested function moves its static link to another register, GCC names that one alone (DW_AT_static_link), and a probe at the function's beginning is before it
// is set. What the nested function does not use is not known to be in the structure to which the link leads.
func TestStaticLink(t *testing.T) {
	const source = `
void note(long);
__attribute__((noinline)) int outer(int n, int k, long unused)
{
	int total = 0;
	__attribute__((noinline)) int inner(int by)
	{
		total += by * k;
		note(n);
		return total;
	}
	__attribute__((noinline)) void other(void) { unused++; note(unused); }
	n++;
	int r = 0;
	other();
	for (int i = 0; i < n; i++)
		r += inner(i);
	return r;
}
`
	for _, compiler := range []string{"gcc-11", "gcc-12"} {
		testenv.Tool(t, compiler)
		img := built(t, compiler, "-Og -shared -fPIC", map[string]string{"a.c": source})
		for name, want := range map[string]string{"n": "[u64[%r10+", "k": "[u64[%r10+", "total": "[u64[%r10+", "unused": ""} {
			p := plantest.New(t, img, "inner "+name, plan.Options{})
			for i := range p.Sites {
				v, got := p.Sites[i].Args[0].Variable, ""
				if v.Located() {
					got = v.Loc.Text(img.Arch())
				}
				if !strings.HasPrefix(got, want) || want == "" && got != "" {
					t.Errorf("%s: %s at %v: %q (%v), want %s", compiler, name, &p.Sites[i], got, v.Reason, want)
				}
			}
		}
	}
}

// TestNestedStatement: what a statement of the function around a nested one stores in its structure is no copy of a parameter, though it is stored from its register at the beginning too, and the nested
// function uses it. That on the stack begins where the frame does, and its address is in the structure as well.
func TestNestedStatement(t *testing.T) {
	const source = `
void note(long);
struct big { long x, y, z; };
#define IN __attribute__((noinline)) int inner(int by) { b += by; sink += n; return b; }
volatile int sink;
__attribute__((noinline)) int first(int a, int n)
{
	int b = a;
	IN
	note(a);
	int r = inner(1);
	note(a);
	return r + inner(2) + a;
}
__attribute__((noinline)) int second(int a, int b, int n)
{
	b = a;
	IN
	note(a);
	int r = inner(1);
	note(a);
	return r + inner(2) + a;
}
#define THIRD __attribute__((noinline)) int third(int a, int n) { int b = a; IN note(a); int r = inner(1); note(a); return r + inner(2) + a; }
THIRD
__attribute__((noinline)) int fourth(struct big s, int a, int n)
{
	__attribute__((noinline)) int inner(int by) { s.x += by; n++; sink += n; return s.y; }
	note(a);
	int r = inner(1);
	note(a);
	return r + inner(2) + a + n;
}
`
	for _, compiler := range []string{"gcc-11", "gcc-12"} {
		testenv.Tool(t, compiler)
		for _, options := range []string{"-Og", "-O1"} {
			img := built(t, compiler, options+" -shared -fPIC", map[string]string{"a.c": source})
			for name, want := range map[string]int{"a": 0, "n": 3} {
				p, found := plantest.New(t, img, "inner "+name, plan.Options{}), 0
				for i := range p.Sites {
					if p.Sites[i].Args[0].Variable.Located() {
						found++
					}
				}
				if len(p.Sites) != 4 || found != want {
					t.Errorf("%s %s: %s is located at %d of %d sites, want %d", compiler, options, name, found, len(p.Sites), want)
				}
			}
		}
	}
}

// TestLinkLeftOut: GCC leaves out what stores the address of the frame for the static link alone, which leads nowhere then.
func TestLinkLeftOut(t *testing.T) {
	const source = `
int note(const char *, ...);
static volatile long sink;
__attribute__((noinline,noclone)) int outer(int a, int b, int n)
{
	b = a;
	__attribute__((noinline,noclone)) int inner(int by) { b += by; sink += n; return b + by; }
	note("a=%d n=%d", a, n);
	int r = inner(1);
	note("a=%d n=%d k", a, n);
	r += inner(2);
	return r + a;
}
`
	testenv.Tool(t, "gcc-12")
	img := built(t, "gcc-12", "-Os -shared -fPIC", map[string]string{"a.c": source})
	p := plantest.New(t, img, "inner n", plan.Options{})
	for i := range p.Sites {
		if v := p.Sites[i].Args[0].Variable; v.Located() {
			t.Errorf("%v: n in %s", &p.Sites[i], v.Loc.Text(img.Arch()))
		}
	}
	if len(p.Sites) != 1 {
		t.Errorf("%d sites", len(p.Sites))
	}
}
