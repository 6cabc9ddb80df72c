package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestMemberUnset: at a line, a member that is in the frame may have a store that nobody reads, and that is gone.
func TestMemberUnset(t *testing.T) {
	const source = `struct nums { int a, b, c; int list[4]; };
int printf(const char *, ...);
int whole(const struct nums *);
int f(int n)
{
	struct nums nums;
	nums.a = n;
	nums.list[2] = 1;
	nums.c = 1;
	printf("%d", n);
	nums.c = nums.list[2] = n;
	whole(&nums);
	return 0;
}
int g(int n)
{
	struct nums nums;
	nums.a = n;
	nums.b = 2;
	nums.c = 1;
	whole(&nums);
	printf("%d", nums.a);
	return nums.c;
}
`
	const rest = `
volatile int sink;
int whole(const void *p) { sink = *(const int *)p; return 1; }
int f(int), g(int);
int main(void) { return f(sink + 3) + g(sink + 4) == 99; }
`
	for _, compiler := range []string{"gcc-12", "clang-14", "clang-19"} {
		for _, option := range []string{"-O0", "-O1", "-O2"} {
			img := built(t, compiler, option, map[string]string{"a.c": source, "b.c": rest})
			for _, tt := range []struct {
				definition string
				doubtful   bool // if the stores are gone, and the notes name the memory
			}{
				{"f:6 nums.a", false}, {"f:6 nums.c", true}, {"f:6 nums.list[2]", true},
				{"g:6 nums.a", false}, {"g:6 nums.c", false},
			} {
				p := plantest.New(t, img, tt.definition, plan.Options{})
				for i := range p.Sites {
					s := &p.Sites[i]
					v := s.Args[0].Variable
					if !v.Located() {
						continue
					}
					if doubtful := v.Loc.Doubt != reasons.None; doubtful != (tt.doubtful && compiler == "clang-14" && option == "-O2") {
						t.Errorf("%s %s: %s: %v: doubtful %v", compiler, option, tt.definition, v.Loc.Text(img.Arch()), doubtful)
					}
				}
			}
		}
	}
}
