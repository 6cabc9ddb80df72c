package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestTurnsBack: GCC begins each turn of a body's own loop with copies of registers, at a place that is not the body's. A probe there fires on each turn.
func TestTurnsBack(t *testing.T) {
	const source = `
#define INLINE static inline __attribute__((always_inline))
INLINE void sort(char **word, char **other, int *score, int m, int n)
{

	while (m < n) {
		int j = m;
		while (j > 0) {
			if (score[j - 1] < score[j]) {
				int s = score[j - 1];
				char *w = word[j - 1];
				score[j - 1] = score[j];
				word[j - 1] = word[j];
				score[j] = s;
				word[j] = w;
				if (other) {
					w = other[j - 1];
					other[j - 1] = other[j];
					other[j] = w;
				}
				j--;
			} else
				break;
		}
		m++;
	}
}
volatile int sink;
__attribute__((noipa)) int work(int *p, char **q) { sink = p[0] + !q[0]; return p[1]; }
__attribute__((noipa)) int suggest(int *score, char **word, char **other)
{
	int r = work(score, word);
	sort(word, other, score, 1, 50);
	return r + work(score, other);
}
int scores[50];
char *words[50], *others[50];
int main(int argc, char **argv) { scores[3] = argc; return suggest(scores, words, others) & 1; }
`
	for _, cc := range []string{"gcc-11", "gcc-12"} {
		for _, o := range []string{"-O2", "-Os"} {
			p := plantest.New(t, built(t, cc, o+" -gno-statement-frontiers", map[string]string{"a.c": source}), "sort", plan.Options{})
			for i := range p.Sites {
				if s := &p.Sites[i]; !s.Way.Again {
					t.Errorf("%s %s: %v is not said to fire again", cc, o, s)
				}
			}
		}
	}
}
