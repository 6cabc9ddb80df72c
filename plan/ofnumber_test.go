package plan_test

import (
	"regexp"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestOfNumber: GCC 12 at -O3 loses each assignment in "len = 0; for (...) if (n > len) len = n;" in lzip's encoder, which is too large for a test, and notes 0 as what is passed to a
// body that begins with "symbol -= 2". Here that note is put in the place of the right one.
func TestOfNumber(t *testing.T) {
	const source = `
struct coder { unsigned low, range; int one, two, bits[64]; };
__attribute__((noipa)) void bit(struct coder *c, int b) { c->range += b; }
__attribute__((noipa)) int next(struct coder *c) { return c->low++ & 15; }
static inline void length(struct coder *c, int n)
{
	int b = (n -= 2) >= 8;
	bit(c, b);
	if (!b)
		bit(c, c->bits[n & 63] + n);
	else
		bit(c, n);
}
__attribute__((noipa)) void first(struct coder *c)
{
	int n = next(c);
	length(c, n);
	bit(c, n);
}
__attribute__((noipa)) void second(struct coder *c)
{
	length(c, 5);
}
int main(void)
{
	struct coder c = {0};
	first(&c);
	second(&c);
	return c.range & 1;
}
`
	text := assembled(t, "gcc-12", "a.c", source)
	// The entry of a list that is a register, and covers no code.
	note := regexp.MustCompile(`(\.uleb128 (\.LVL\d+)-\.LVL\d+\n\s*\.uleb128 (\.LVL\d+)-\.LVL\d+\n\s*\.uleb128) 0x1\n\s*\.byte\s+0x5[0-9a-f]\n`)
	wrong := note.ReplaceAllFunc([]byte(text), func(b []byte) []byte {
		m := note.FindSubmatch(b)
		if string(m[2]) != string(m[3]) {
			return b
		}
		return append(m[1], " 0x2\n\t.byte\t0x30\n\t.byte\t0x9f\n"...)
	})
	for _, tt := range []struct {
		name, text string
		doubtful   bool
	}{{"the right note", text, false}, {"the number", string(wrong), true}} {
		p := plantest.New(t, built(t, "gcc-12", "", map[string]string{"a.s": tt.text}), "length n", plan.Options{})
		for i := range p.Sites {
			a, want := p.Sites[i].Args[0].Variable, reasons.None
			if tt.doubtful && p.Sites[i].Symbol == "first" {
				want = reasons.Contradictory
			}
			if !a.Located() || a.Loc.Doubt != want {
				t.Errorf("%s: %v: doubtful for %q, and not %q: %v", tt.name, &p.Sites[i], a.Loc.Doubt, want, a)
			}
		}
		if len(p.Sites) != 2 {
			t.Errorf("%s: probes: %v", tt.name, p.Sites)
		}
	}
}
