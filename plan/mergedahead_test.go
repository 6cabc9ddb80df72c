package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestMergedAhead: LLVM 19 takes what two calls begin with out of both sides of a test, as a body of its own, and puts what that and another side pass before the test for that side, with the
// body's position, as in jansson's lex_scan_string. No run begins there; where the body begins before the test, one does.
func TestMergedAhead(t *testing.T) {
	const source = `
struct state { int line, column, kind; const char *text, *at; char kept[64]; int n; };
__attribute__((noinline)) int next(struct state *s, int *error) { int c = *s->at ? (unsigned char)*s->at++ : -1; s->column++; *error = 0; return c; }
__attribute__((noinline)) void save(struct state *s, char c) { s->kept[s->n++ & 63] = c; }
__attribute__((noinline)) void back(struct state *s) { s->at--; s->n--; }
volatile int seen;
static inline __attribute__((always_inline)) int get(struct state *s, int *error)
{
	int c = next(s, error);
	if (c != -1 && c != -2)
		save(s, c);
	return c;
}
__attribute__((noinline)) int scan(struct state *s, int *error)
{
	int c;
	s->kind = -1;
	c = get(s, error);
	while (c != '"') {
		if (c == -2)
			goto out;
		else if (c == -1) {
			seen = 1;
			goto out;
		} else if (0 <= c && c <= 0x1f) {
			back(s);
			seen = c;
			goto out;
		} else if (c == '\\') {
			c = get(s, error);
			if (c == 'u') {
				c = get(s, error);
				if (c == 'x')
					seen = 3;
			} else if (c == '"' || c == '\\')
				c = get(s, error);
			else {
				seen = 2;
				goto out;
			}
		} else
			c = get(s, error);
	}
	s->kind = 1;
out:
	return s->n;
}
int main(void)
{
	static struct state s;
	static const char *const texts[] = { "ab\"", "a\\\"b\\u1x\"", "a\tb", "ab" };
	int error, n = 0;
	for (int k = 0; k < 4; k++) {
		s.at = texts[k];
		n += scan(&s, &error);
	}
	return 0;
}
`
	for _, tt := range []struct {
		compiler, options string
		sites, again      int
	}{
		{"clang-19", "-O1", 4, 0}, {"clang-19", "-O2", 4, 0}, {"clang-19", "-Os", 6, 1},
	} {
		img := built(t, tt.compiler, tt.options, map[string]string{"a.c": source})
		sites, again := waysOf(plantest.New(t, img, "get", plan.Options{}))
		if sites != tt.sites || again != tt.again {
			t.Errorf("%s %s: %d sites, %d of which may be hit without a run, not %d and %d", tt.compiler, tt.options, sites, again, tt.sites, tt.again)
		}
	}
}

// TestTwinFirst: GCC loads before the caller's tests what all calls of a function need, as what is left of one of them, of which link-time optimization has dropped the markers, and merges its
// rest with that of others, as in cmark's outc. What is hit there need not be a run.
func TestTwinFirst(t *testing.T) {
	const (
		library = `
struct buffer { void *mem; char *at; int asize, size; };
struct renderer { struct buffer *out, *buffer, *prefix; int column, width; };
__attribute__((noinline)) void encode(int c, struct buffer *b) { b->at[b->size++ & 63] = c; }
__attribute__((noinline)) void append(struct buffer *b, const char *s) { while (*s) b->at[b->size++ & 63] = *s++; }
void point(struct renderer *r, int c) { encode(c, r->buffer); r->column += 1; }
void ascii(struct renderer *r, const char *s) { int n = r->buffer->size; append(r->buffer, s); r->column += r->buffer->size - n; }
`
		caller = `
struct renderer;
void point(struct renderer *r, int c);
void ascii(struct renderer *r, const char *s);
static void out(struct renderer *r, int escape, int c)
{
	if (escape == 0) {
		point(r, c);
		return;
	}
	switch (c) {
	case '{': case '}': case '#': case '%': case '&':
		ascii(r, "\\");
		point(r, c);
		break;
	case '$': case '_':
		if (escape == 1)
			ascii(r, "\\");
		point(r, c);
		break;
	case '-':
		if (escape == 1)
			ascii(r, "-{}");
		else
			ascii(r, "-");
		break;
	case '~':
		if (escape == 1)
			ascii(r, "tilde");
		else
			point(r, c);
		break;
	case '^': ascii(r, "\\^{}"); break;
	case '\\':
		if (escape == 2)
			ascii(r, "/");
		else
			ascii(r, "\\backslash");
		break;
	case '|': ascii(r, "bar"); break;
	case '<': ascii(r, "less"); break;
	case '[': ascii(r, "{"); point(r, c); ascii(r, "}"); break;
	case '"': ascii(r, "quot"); break;
	default: point(r, c);
	}
}
void (*outs[2])(struct renderer *, int, int) = { out, out };
`
		rest = `
struct buffer { void *mem; char *at; int asize, size; };
struct renderer { struct buffer *out, *buffer, *prefix; int column, width; };
extern void (*outs[2])(struct renderer *, int, int);
int main(int argc, char **argv)
{
	static char at[64];
	static struct buffer b = { 0, at };
	static struct renderer r = { &b, &b };
	for (const char *s = "a{b}-_^|["; *s; s++)
		outs[argc & 1](&r, *s & 1, *s);
	return r.column > 1000;
}
`
	)
	for _, compiler := range []string{"gcc-11", "gcc-12"} {
		for _, options := range []string{"-O2 -flto", "-O3 -flto"} {
			img := built(t, compiler, options, map[string]string{"a.c": library, "b.c": caller, "c.c": rest})
			p := plantest.New(t, img, "point", plan.Options{})
			if sites, again := waysOf(p); sites != 6 || again != 2 || !p.Sites[0].Way.Again {
				t.Errorf("%s %s: %d sites, %d of which may be hit without a run, not 6 and 2", compiler, options, sites, again)
			}
		}
	}
}

// waysOf returns how many sites a plan has, and how many of them may be hit without a run.
func waysOf(p *plan.Plan) (sites, again int) {
	for i := range p.Sites {
		if p.Sites[i].Way.Again {
			again++
		}
	}
	return len(p.Sites), again
}
