package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestJoined: GCC merges the ends of branches, and notes at the common end what one of them passes. Statements of another one can be gone: then
// its runs begin there too.
func TestJoined(t *testing.T) {
	const source = `
struct text { unsigned char *at; int size, used; };
__attribute__((noinline)) void grow(struct text *t, int n) { if (n > t->size) { t->at = __builtin_realloc(t->at, n * 2 + 8); t->size = n * 2 + 8; } }
static inline void reserve(struct text *t, int n) { int all = t->used + n; if (all >= t->size) grow(t, all); }
static inline void put(struct text *t, const unsigned char *data, int len)
{
	if (len <= 0)
		return;
	reserve(t, len);
	__builtin_memmove(t->at + t->used, data, len);
	t->used += len;
	t->at[t->used] = 0;
}
__attribute__((noinline)) void encode(int c, struct text *t)
{
	unsigned char code[4];
	int len = 0;
	if (c < 0x80) {
		code[0] = c;
		len = 1;
	} else if (c < 0x800) {
		code[0] = 0xC0 + (c >> 6);
		code[1] = 0x80 + (c & 0x3F);
		len = 2;
	} else if (c == 0xFFFF) {
		code[0] = 0xFF;
		len = 1;
	} else if (c == 0xFFFE) {
		code[0] = 0xFE;
		len = 1;
	} else if (c < 0x10000) {
		code[0] = 0xE0 + (c >> 12);
		code[1] = 0x80 + ((c >> 6) & 0x3F);
		code[2] = 0x80 + (c & 0x3F);
		len = 3;
	} else
		return;
	put(t, code, len);
}
int main(void) { struct text t = {__builtin_malloc(8), 8, 0}; encode(0x20, &t); encode(0x700, &t); return t.used; }
`
	sure, doubtful := 0, 0
	p := plantest.New(t, built(t, "gcc-12", "-Os", map[string]string{"a.c": source}), "put len", plan.Options{})
	for i := range p.Sites {
		s := &p.Sites[i]
		switch v := s.Args[0].Variable; {
		case v.Loc.Doubt == reasons.Contradictory:
			doubtful++
		case v.Located():
			if sure++; s.Way.Again {
				t.Errorf("%v is reached by other paths too: %v", s, v)
			}
		}
	}
	if sure == 0 || doubtful == 0 {
		t.Errorf("%d are sure, %d doubtful", sure, doubtful)
	}
}
