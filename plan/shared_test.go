package plan_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/plan"
)

// built compiles sources by name, and opens the program.
func built(t *testing.T, compiler string, options string, sources map[string]string) *dwarfloc.Image {
	t.Helper()
	dir := t.TempDir()
	args := append([]string{"-g", "-w", "-o", "program"}, strings.Fields(options)...)
	for name, text := range sources {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, ".h") {
			args = append(args, name)
		}
	}
	c := exec.Command(testenv.Tool(t, compiler), args...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return testenv.Open(t, filepath.Join(dir, "program"))
}

// TestSharedTail: GCC lets runs of a function go on in the code behind another run of it, at the address at which that one has no code: neither is each
// hit there a run of it, nor is what that one was passed known.
func TestSharedTail(t *testing.T) {
	const source = `
struct result { int status; long off; int more; };
static inline struct result make(int status, long off)
{
	struct result r;
	r.status = status;
	r.off = off;
	return r;
}
__attribute__((noipa)) long scan(const char *s, long n) { return s[0] == 'x' ? n - 2 : 0; }
static struct result parse(const char *s, long n, int opt)
{
	if (n == 0)
		return make(opt & 4 ? 0 : 16, 0);
	long e = scan(s, n);
	struct result r = make(e ? 5 : 0, e);
	if (r.status == 0) {
		if (s[n - 1] == '<')
			return make(5, n - 1);
	} else if (r.off > 0 && r.off == n - 1)
		r.off--;
	return r;
}
__attribute__((noipa)) struct result load(const char *s, long n, int opt, int more)
{
	struct result r = parse(s, n, opt);
	r.more = more;
	return r;
}
int main(void) { return load("", 0, 4, 1).off + load("abc<", 4, 0, 1).off; }
`
	p := plantest.New(t, built(t, "gcc-12", "-O2", map[string]string{"a.c": source}), "make off", plan.Options{})
	found := false
	for i := range p.Sites {
		s := &p.Sites[i]
		if v := s.Args[0].Variable; s.Symbol == "load" && v.Loc.Expr != nil && v.Loc.Text(p.Image.Arch()) == "0" {
			if found = true; v.Loc.Doubt == reasons.None || !s.Way.Again {
				t.Errorf("%v: %v, doubt %v, again %v", s, v, v.Loc.Doubt, s.Way.Again)
			}
		}
	}
	if !found {
		t.Errorf("%v", p.Sites)
	}
}

// TestOnlyNote: where GCC does not track assignments, the only note of a variable is its register in the whole body, though it is of what a statement assigns.
func TestOnlyNote(t *testing.T) {
	const source = `
struct section { unsigned long offset; int number; };
struct state { int *table; };
__attribute__((noipa)) int put(int *table, unsigned long v, int n, int info, const char *name) { return v + n + !table; }
static int set(struct state *s, const char *name, struct section *sec, unsigned long offs)
{
	int n = sec ? sec->number : offs ? 7 : 0;
	if (sec && offs == -1)
		offs = sec->offset;
	return put(s->table, offs, n, name ? 16 : 0, name);
}
__attribute__((noipa)) int local(struct state *s, struct section *sec, unsigned long o) { return set(s, "l", sec, o); }
__attribute__((noipa)) int fixed(struct state *s, struct section *sec) { return set(s, "f", sec, -1); }
int main(void)
{
	struct section x = {10, 1};
	struct state s = {0};
	return local(&s, &x, -1) + local(&s, &x, 5) + fixed(&s, &x) + fixed(&s, 0);
}
`
	p := plantest.New(t, built(t, "gcc-12", "-O2 -fno-var-tracking-assignments", map[string]string{"a.c": source}), "set offs", plan.Options{})
	found := false
	for i := range p.Sites {
		if s, v := &p.Sites[i], p.Sites[i].Args[0].Variable; s.Symbol == "local" && v.Loc.Expr != nil {
			if found = true; v.Loc.Doubt == reasons.None {
				t.Errorf("%v: %v", s, v)
			}
		}
	}
	if !found {
		t.Errorf("%v", p.Sites)
	}
}

// TestStoredLate: a slot can be stored many bytes after the probe.
func TestStoredLate(t *testing.T) {
	const source = `
__attribute__((noipa)) int get(long p0, long p1, long p2, long p3, long p4, long p5) { return p0 - p1 - p2 - p3 - p4 - p5; }
static inline int sum(long p0, long p1, long p2, long p3, long p4, long p5, long p6, long p7, long p8, long p9)
{
	int n = get(p0, p1, p2, p3, p4, p5);
	return n + p0 * 3 + p1 * 5 + p2 * 7 + p3 * 9 + p4 * 11 + p5 * 13 + p6 * 15 + p7 * 17 + p8 * 19 + p9 * 21;
}
struct in { char pad[4096]; long v[10]; };
__attribute__((noipa)) int all(const struct in *p, int n)
{
	int t = 0;
	for (int i = 0; i < n; i++, p++)
		t += sum(p->v[0], p->v[1], p->v[2], p->v[3], p->v[4], p->v[5], p->v[6], p->v[7], p->v[8], p->v[9]);
	return t;
}
int main(void) { static struct in in[3]; return all(in, 3); }
`
	p := plantest.New(t, built(t, "gcc-12", "-Os", map[string]string{"a.c": source}), "sum p6", plan.Options{})
	if len(p.Sites) != 1 || p.Sites[0].Args[0].Variable.Reason.Code != reasons.NotStoredYet {
		t.Errorf("%v: %v", p.Sites, p.Sites[0].Args[0].Variable)
	}
}

// TestSeveralUnits: a linker keeps one of the equal functions of several units, and the debug information of each: what is inlined into it is one site.
func TestSeveralUnits(t *testing.T) {
	img := built(t, "g++-12", "-O2", map[string]string{
		"h.h": `struct Arr { char *m, b[8]; Arr() : m(b) {} ~Arr() { if (m != b) delete[] m; } };
struct Pr { Arr a; virtual void f(); __attribute__((noinline)) virtual ~Pr() {} };
`,
		"a.cpp": "#include \"h.h\"\nvoid Pr::f() { a.m = new char[20]; }\nPr *two() { return new Pr; }\nvoid end(Pr *p) { delete p; }\n",
		"b.cpp": "#include \"h.h\"\nPr *two(); void end(Pr *);\nint main() { for (int i = 0; i < 3; i++) { Pr p; p.f(); } Pr *q = two(); end(q); }\n",
	})
	p := plantest.New(t, img, "Arr::~Arr", plan.Options{})
	at := make(map[uint64]int)
	for i := range p.Sites {
		if at[p.Sites[i].Addr]++; at[p.Sites[i].Addr] > 1 {
			t.Errorf("%v: again", &p.Sites[i])
		}
	}
	if len(at) == 0 {
		t.Error("no site")
	}
}

// TestSplitMember: the rest of a function of C++ that GCC has split, whose name is mangled, is no entry of it.
func TestSplitMember(t *testing.T) {
	const source = `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct B { int cap, n; char *mem; };
struct P { FILE *fp; struct B b; };
static char *push(struct B *b, int k)
{
	if (b->n + k > b->cap) {
		char *m = (char *)malloc((b->n + k) * 2);
		memcpy(m, b->mem, b->n); free(b->mem); b->mem = m; b->cap = (b->n + k) * 2;
	}
	char *r = b->mem + b->n;
	b->n += k;
	return r;
}
void put(struct P *p, char c)
{
	if (p->fp) {
		fputc(c, p->fp);
	} else {
		char *q = push(&p->b, 1) - 1;
		q[0] = c;
		q[1] = 0;
	}
}
void word(struct P *p, const char *s) { put(p, '<'); puts(s); put(p, '>'); }
void line(struct P *p, int d) { put(p, '\n'); if (d) put(p, '\t'); }
int main() { struct P p = { 0, { 4, 1, (char *)malloc(4) } }; word(&p, "a"); line(&p, 1); return 0; }
`
	img := built(t, "g++-12", "-O2", map[string]string{"a.cpp": source})
	for k, img := range []*dwarfloc.Image{img, packedImage(t, img)} {
		parts := func(def string) (out []plan.Site) {
			p := plantest.New(t, img, def, plan.Options{})
			return slices.DeleteFunc(p.Sites, func(s plan.Site) bool { return !strings.Contains(s.Symbol, ".part.") || s.Kind != dwarfloc.SiteEntry })
		}
		if p := parts("put"); len(p) != 0 {
			t.Errorf("no run begins at %v", p)
		}
		ends := plantest.New(t, img, "put%exit", plan.Options{})
		if !slices.ContainsFunc(ends.Sites, func(s plan.Site) bool { return strings.Contains(s.Symbol, ".part.") && s.Way.Again }) {
			t.Errorf("none of %v says that a run may end elsewhere", ends.Sites)
		}
		alone := parts("inlines=no; put")
		if len(alone) != 1 || !alone[0].Way.Again {
			t.Fatalf("%v are not the one part, or entries", alone)
		}
		if k > 0 {
			continue // a pack does not find clones by their symbols
		}
		if p := parts(alone[0].Symbol); len(p) != 1 || !p[0].Way.Again {
			t.Errorf("%s: %v are not the one part, or entries", alone[0].Symbol, p)
		}
	}
}

// hitOnce fails if a run of one call, which is known by its line, has several hits that are not said to be without a run.
func hitOnce(t *testing.T, build string, p *plan.Plan, callLine func(inlined *plan.Site) int) {
	t.Helper()
	sites := make(map[int]int)
	for i := range p.Sites {
		if s := &p.Sites[i]; s.Inlined() && !s.Way.Again {
			sites[callLine(s)]++
		}
	}
	for line, n := range sites {
		if n > 1 {
			t.Errorf("%s: a run of the call at line %d has %d hits", build, line, n)
		}
	}
}

// hasWays fails if a plan has another number of probes, or of such that may fire without a run.
func hasWays(t *testing.T, p *plan.Plan, probes, marked int) {
	t.Helper()
	got := 0
	for i := range p.Sites {
		if p.Sites[i].Way.Again {
			got++
		}
	}
	if len(p.Sites) != probes || got != marked {
		t.Errorf("%d probes, of which %d may fire again, not %d and %d: %v", len(p.Sites), got, probes, marked, p.Sites)
	}
}

// isSure fails if a definition has another number of sites, or its first argument is not located at one of them, or is sure where it should not be, or the other way round.
func isSure(t *testing.T, build string, img *dwarfloc.Image, definition string, sites int, sure bool) {
	t.Helper()
	p := plantest.New(t, img, definition, plan.Options{})
	if len(p.Sites) != sites {
		t.Errorf("%s: %s: %d sites", build, definition, len(p.Sites))
	}
	for i := range p.Sites {
		if v := p.Sites[i].Args[0].Variable; !v.Located() || (v.Loc.Doubt == reasons.None) != sure {
			t.Errorf("%s: %s at %v: %v, and the doubt is %v", build, definition, &p.Sites[i], v, v.Loc.Doubt)
		}
	}
}

// locatedInMain calls f for each probe of a definition in main at which its first argument is located.
func locatedInMain(t *testing.T, img *dwarfloc.Image, definition string, f func(s *plan.Site, v *dwarfloc.Variable)) {
	t.Helper()
	p := plantest.New(t, img, definition, plan.Options{})
	for i := range p.Sites {
		s := &p.Sites[i]
		if v := s.Args[0].Variable; s.Symbol == "main" && v.Located() {
			f(s, v)
		}
	}
}

// hasDoubt fails if a definition has another number of sites than one, or its first argument is not located there, or has another doubt.
func hasDoubt(t *testing.T, build string, img *dwarfloc.Image, definition string, want loc.ReasonCode) {
	t.Helper()
	p := plantest.New(t, img, definition, plan.Options{})
	if len(p.Sites) != 1 {
		t.Fatalf("%s: probes of %s: %v", build, definition, p.Sites)
	}
	if a := p.Sites[0].Args[0].Variable; !a.Located() || a.Loc.Doubt != want {
		t.Errorf("%s: %s is doubtful for %q, and not %q: %v", build, definition, a.Loc.Doubt, want, a)
	}
}

// contradictory is the doubt of a value that may be another one than the debug information says, if it is.
func contradictory(is bool) loc.ReasonCode {
	if is {
		return reasons.Contradictory
	}
	return reasons.None
}

// assembled returns what a compiler makes of a source, as text, with more options.
func assembled(t *testing.T, compiler, name, source string, options ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(testenv.Tool(t, compiler), append([]string{"-g", "-O2", "-S", "-o", "a.s", name}, options...)...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "a.s"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
