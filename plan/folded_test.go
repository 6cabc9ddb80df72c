package plan_test

import (
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
)

// TestFolded: GCC makes one of two functions that do the same. Where its name stands, runs of both are hits.
func TestFolded(t *testing.T) {
	const source = `
struct reader { const char *at, *end; int line; };
int next(struct reader *r)
{
	if (r->at == r->end)
		return 0;
	r->line += *r->at == 10;
	return *r->at++;
}
int take(struct reader *r)
{
	if (r->at == r->end)
		return 0;
	r->line += *r->at == 10;
	return *r->at++;
}
int another(struct reader *r) __attribute__((alias("skip")));
int skip(struct reader *r)
{
	int n = 0;
	while (take(r) > 32)
		n++;
	return n;
}
static int low(const int *p, int n) { int s = 0; for (int i = 0; i < n; i++) s = s * 31 + p[i] % 7; return s; }
static int high(const int *p, int n) { int s = 0; for (int i = 0; i < n; i++) s = s * 31 + p[i] % 7; return s; }
__attribute__((noipa)) int sums(const int *p, int n) { return low(p, n) + 2 * low(p, n + 1) + 4 * high(p, n) + 8 * high(p, n + 1); }
int main(void)
{
	struct reader r = {"abc de\n", 0, 0};
	r.end = r.at + 7;
	return skip(&r) + next(&r) * 256 + another(&r) + sums(&r.line, 1);
}
`
	for _, tt := range []struct {
		options, shared string
		inlined         bool
	}{
		{"-O2", "next", true},      // a copy of the code has the other one's symbol,
		{"-Os", "next low", false}, // a jump, or the address itself
		{"-O2 -fno-ipa-icf", "", false},
		{"-Os -fno-ipa-icf", "", false},
	} {
		img := built(t, "gcc-12", tt.options, map[string]string{"a.c": source})
		packed := packedImage(t, img)
		for _, img := range []*dwarfloc.Image{img, packed} {
			inlined := false
			for _, name := range []string{"next", "take", "skip", "low", "high", "sums"} {
				if name == "take" && tt.shared != "" || name == "high" && strings.Contains(tt.shared, "low") {
					continue // it has no site
				}
				p := plantest.New(t, img, name+" $params", plan.Options{})
				for i := range p.Sites {
					s := &p.Sites[i]
					if want := strings.Contains(tt.shared, name); s.Way.Shared != want || want && !s.Way.Again {
						t.Errorf("%s: %v: shared %v, again %v", tt.options, s, s.Way.Shared, s.Way.Again)
					}
					inlined = inlined || s.Inlined() && s.Way.Shared
				}
			}
			if inlined != tt.inlined {
				t.Errorf("%s: inlined %v", tt.options, inlined)
			}
		}
	}
}

// TestForeignObject: after link-time optimization nothing is left of the other function. But a member function that is inlined where an object of another
// class is has not been called there.
func TestForeignObject(t *testing.T) {
	const source = `
struct Part { const int *at; long sum(const int *p, int n); };
struct Reader { Part part; long depth; long sum(const int *p, int n); long all(int n); };
struct Other { Part part; long depth; long sum(const int *p, int n); long all(int n); };
#define SUM long s = (long)this; for (int i = 0; i < n; i++) s = s * 31 + p[i] % 7; return s;
long Reader::sum(const int *p, int n) { SUM }
long Other::sum(const int *p, int n) { SUM }
long Part::sum(const int *p, int n) { SUM }
__attribute__((noipa)) long Reader::all(int n) { long r = sum(part.at, n); depth += r; return depth * 3; }
__attribute__((noipa)) long Other::all(int n) { long r = sum(part.at, n); depth -= r; r = part.sum(part.at, n - 1); return depth * 5 + r; }
`
	const rest = `
struct Part { const int *at; };
struct Reader { Part part; long depth; long all(int n); };
struct Other { Part part; long depth; long all(int n); };
int main(int argc, char **argv)
{
	static const int v[] = {1, 2, 3, 4};
	Other o = {{v}, 0};
	Reader r = {{v}, 0};
	return o.all(argc + 1) + (argc > 2 ? r.all(3) : 0);
}
`
	for _, tt := range []struct {
		options string
		shared  int
	}{{"", 3}, {" -fno-ipa-icf", 0}} {
		img := built(t, "g++-12", "-O2 -flto -fno-early-inlining"+tt.options, map[string]string{"a.cc": source, "b.cc": rest})
		shared, all := 0, 0
		p := plantest.New(t, img, "sum this", plan.Options{})
		for i := range p.Sites {
			s := &p.Sites[i]
			if all++; s.Way.Shared {
				shared++
			}
			if s.Way.Shared && s.Symbol != "_ZN5Other3allEi" {
				t.Errorf("%s: %v is said to share its code", tt.options, s)
			}
		}
		if shared != tt.shared || all != 4 {
			t.Errorf("%s: %d of %d sites share their code, not %d of 4", tt.options, shared, all, tt.shared)
		}
	}
}

// TestVirtual: virtual functions that do the same are one after link-time optimization, of which the tables of classes alone tell: two of one class are
// at two places of its table, and two of different classes at different ones, which can be compared where something describes the class.
func TestVirtual(t *testing.T) {
	const source = `
struct Node {
	virtual ~Node() {}
	virtual Node *asText() { return 0; }
	virtual Node *asBranch() { return 0; }
	virtual long weight(long n) { return n * 3; }
	long own = 5;
};
struct Second { virtual long more(long n) { return n ^ own; } long own = 7; };
struct Text : Node, Second { Node *asText() override { return this; } long more(long n) override { return n + Second::own * 2; } };
struct Branch : Node { Node *asBranch() override { return this; } };
__attribute__((noipa)) long walk(Node **n, int all, Second *s)
{
	long sum = 0;
	for (int i = 0; i < all; i++)
		sum += (n[i]->asText() ? 1 : 0) + (n[i]->asBranch() ? 16 : 0) + n[i]->weight(i);
	return sum + s->more(sum);
}
int main(int argc, char **argv)
{
	Node *all[] = {new Text, new Branch, new Node};
	return walk(all, argc > 5 ? 2 : 3, argc > 6 ? new Second : static_cast<Text *>(all[0])) & 63;
}
`
	for _, tt := range []struct {
		options string
		shared  int
	}{{"-O2 -flto", 2}, {"-O2 -flto -static", 2}, {"-O2 -flto -no-pie", 2}, {"-O2 -flto -fno-rtti", 1}, {"-O2 -flto -fno-ipa-icf", 0}} {
		img := built(t, "g++-12", tt.options, map[string]string{"a.cc": source})
		packed := packedImage(t, img)
		for _, img := range []*dwarfloc.Image{img, packed} {
			shared := 0
			for _, name := range []string{"Node::asText", "Node::asBranch", "Text::asText", "Branch::asBranch", "Node::weight", "Text::more", "Second::more", "walk"} {
				def, err := probe.Parse(name + " $params")
				if err != nil {
					t.Fatal(err)
				}
				p, err := plan.New(t.Context(), img, def, plan.Options{})
				if err != nil {
					continue // it has no site
				}
				for i := range p.Sites {
					s := &p.Sites[i]
					if !s.Way.Shared {
						continue
					}
					if shared++; !s.Way.Again || strings.Contains("Node::weight Text::more Second::more walk", name) {
						t.Errorf("%s: %s: %v shares its code", tt.options, name, s)
					}
				}
			}
			if shared != tt.shared {
				t.Errorf("%s: %d sites share their code, not %d", tt.options, shared, tt.shared)
			}
		}
	}
}
