package plan_test

import (
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestStoredWithin: GCC keeps a variable in a register in a loop, and stores it to its slot behind that, for what gets its address. The store can come behind the
// marker of the body that is passed the address, as its scheduler likes: the test moves it there. A reference stands for what is there; an address is right all the same,
// and what is read through it is not.
func TestStoredWithin(t *testing.T) {
	const reference = `
struct lists {
	int *size; char *dirty; int cleaned;
	__attribute__((noinline)) void clean(const int &idx) { cleaned += idx; dirty[idx] = 0; }
	int *lookup(const int &idx) { if (dirty[idx]) clean(idx); return &size[idx]; }
};
__attribute__((noinline)) int scan(lists &all, const int *c, int n)
{
	int best = c[0] >> 1;
	for (int i = 1; i < n; i++)
		if (all.size[c[i] >> 1] < all.size[best])
			best = c[i] >> 1;
	int *found = all.lookup(best);
	int sum = 0;
	for (int i = 0; i < n; i++)
		sum += found[0] + best;
	return sum;
}
int main()
{
	int size[] = {5, 3, 9, 1}, c[] = {0, 2, 4, 6};
	char dirty[4] = {1, 0, 1, 1};
	lists all = {size, dirty, 0};
	int s = 0;
	for (int n = 1; n < 5; n++)
		s += scan(all, c, n);
	return s == 99;
}
`
	pointer := strings.NewReplacer("(const int &idx)", "(const int *at)", "cleaned += idx; dirty[idx]", "cleaned += *at; dirty[*at]", "dirty[idx]", "dirty[*at]",
		"clean(idx)", "clean(at)", "size[idx]", "size[*at]", "lookup(best)", "lookup(&best)").Replace(reference)
	t.Run("reference", func(t *testing.T) { storedWithin(t, reference, "lookup idx", 1) })
	t.Run("pointer", func(t *testing.T) { storedWithin(t, pointer, "lookup at *at", 2) })
}

// storedWithin looks at the last argument of so many.
func storedWithin(t *testing.T, source, definition string, args int) {
	text := assembled(t, "g++-12", "a.cpp", source)
	const store = "\tmovl\t%ebx, 12(%rsp)\n"
	before, behind, ok := strings.Cut(text, store)
	next := strings.Index(behind, "\tcmpb\t")
	if !ok || next < 0 || strings.Contains(behind, store) {
		t.Skip("the compiler stores otherwise")
	}
	for _, tt := range []struct {
		name, text string
		doubtful   int
	}{{"as it is", text, 0}, {"moved", before + behind[:next] + store + behind[next:], 1}} {
		p := plantest.New(t, built(t, "g++-12", "", map[string]string{"a.s": tt.text}), definition, plan.Options{})
		doubtful := 0
		for i := range p.Sites {
			a := p.Sites[i].Args
			for _, address := range a[:args-1] {
				if v := address.Variable; !v.Located() || v.Loc.Doubt != reasons.None {
					t.Errorf("%s: %v: %v", tt.name, &p.Sites[i], v)
				}
			}
			if v := a[args-1].Variable; v.Loc.Doubt == reasons.Contradictory {
				doubtful++
			} else if !v.Located() {
				t.Errorf("%s: %v: %v", tt.name, &p.Sites[i], v)
			}
		}
		if len(p.Sites) != 2 || doubtful != tt.doubtful {
			t.Errorf("%s: %d of %d are doubtful, not %d", tt.name, doubtful, len(p.Sites), tt.doubtful)
		}
	}
}
