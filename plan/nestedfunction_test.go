package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestNestedFunction: variables of the function around a nested one are in its frame, to which a static link leads, where they are in memory of it at all of its calls. GCC notes
// what the others were before they were moved there: n, which is counted up.
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
		"-Og -shared -fPIC": {"n": false, "total": true, "twice": true},
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
