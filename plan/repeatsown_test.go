package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestRepeatsOwn: GCC has copied a body and the caller's "if (!to->reach) t.right = 0;" behind it into two paths, and merged what the test leads to with the other path, behind all statements there: that of the
// test is the last one on both, as in oniguruma's concat_opt_exact. A run has been on the one path, and a probe in front of the statements of the other is hit once more. In turns of a loop, copied or not, it is not.
func TestRepeatsOwn(t *testing.T) {
	const join = `
struct anc { int left, right; };
struct str { struct str *next; struct anc anc; int len, reach, text[24]; };
static inline __attribute__((always_inline)) void join(struct anc *to, struct anc *left, struct anc *right, int left_len, int right_len)
{
	to->left = left->left;
	if (left_len == 0)
		to->left |= right->left;
	to->right = right->right;
	if (right_len == 0)
		to->right |= left->right;
	else
		to->right |= left->right & 2;
}
`
	const merged = join + `
int concat(struct str *to, struct str *add)
{
	int i = to->len, k, r = 0;
	struct anc t;
	for (k = 0; k < add->len; k++) {
		if (i >= 24) {
			r = 1;
			break;
		}
		to->text[i++] = add->text[k];
	}
	to->len = i;
	to->reach = k == add->len ? add->reach : 0;
	join(&t, &to->anc, &add->anc, 1, 1);
	if (!to->reach)
		t.right = 0;
	to->anc = t;
	return r;
}
`
	const turns = join + `
void turns(struct str *to, struct str *add)
{
	struct anc t;
	for (; add; add = add->next) {
		join(&t, &to->anc, &add->anc, 1, 1);
		if (!to->reach)
			t.right = 0;
		to->anc = t;
	}
}
void three(struct str *to, struct str *add)
{
	struct anc t;
	for (int i = 0; i < 3; i++) {
		join(&t, &to->anc, &add[i].anc, 1, 1);
		if (!to->reach)
			t.right = 0;
		to->anc = t;
	}
}
`
	hasWays(t, plantest.New(t, built(t, "gcc-12", "-O2 -shared -fPIC", map[string]string{"a.c": merged}), "join", plan.Options{}), 2, 1)
	hasWays(t, plantest.New(t, built(t, "gcc-12", "-O3 -shared -fPIC", map[string]string{"a.c": turns}), "join", plan.Options{}), 5, 0)
}
