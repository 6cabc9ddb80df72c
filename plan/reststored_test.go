package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestRestStored: GCC's second scheduling pass moves the store of a structure's last member behind the first instructions of the body that it is passed to. That the code has the address
// of another variable in the frame does not show that the member was stored by it.
func TestRestStored(t *testing.T) {
	const source = `
struct spec { int width, precision; char type, sign; };
struct digits { unsigned value; int count; _Bool upper; };
__attribute__((noipa)) char *text(struct digits *d, char *out) { out[0] = '0' + d->value % 10; out[1] = d->upper; return out + d->count; }
__attribute__((noipa)) char *padded(char *out, const struct spec *s, unsigned prefix, struct digits d) { out[0] = prefix; return out + d.count + s->width; }
__attribute__((noipa)) char *prefixed(unsigned *prefix, unsigned with) { *prefix |= with; return 0; }
static inline int counted(unsigned n) { return ((__builtin_clz(n | 1) ^ 31) >> 2) + 1; }
static inline char *put(char *out, int count, unsigned prefix, const struct spec *s, struct digits d)
{
	if ((s->width | (s->precision + 1)) == 0) {
		if (prefix)
			for (unsigned p = prefix & 0xffffff; p; p >>= 8)
				*out++ = p;
		return text(&d, out);
	}
	return padded(out, s, prefix, d);
}
__attribute__((noipa)) char *hex(char *out, unsigned value, const struct spec *s)
{
	unsigned prefix = s->sign;
	_Bool upper = s->type == 4;
	if (s->sign < 0)
		prefixed(&prefix, upper ? 0x5830 : 0x7830);
	int count = counted(value);
	return put(out, count, prefix, s, (struct digits){value, count, upper});
}
int main(void)
{
	char out[64];
	struct spec s = {0, -1, 4, 0};
	for (volatile int i = 1; i < 9; i++)
		hex(out, i << 2 * i, &s);
	return 0;
}
`
	for option, doubt := range map[string]loc.ReasonCode{"-O1": reasons.None, "-O2": reasons.Contradictory, "-Os": reasons.Contradictory} {
		p := plantest.New(t, built(t, "gcc-12", option, map[string]string{"a.c": source}), "put d", plan.Options{})
		if len(p.Sites) != 1 {
			t.Fatalf("%s: %d sites", option, len(p.Sites))
		}
		if v := p.Sites[0].Args[0].Variable; !v.Located() || v.Loc.Doubt != doubt {
			t.Errorf("%s: %v, because %s", option, v, v.Because)
		}
	}
}
