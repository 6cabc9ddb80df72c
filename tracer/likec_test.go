package tracer_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/tracer"
)

const likeC = `
#include <stdio.h>
struct n { int x; unsigned u : 5; signed s : 7; unsigned wide : 32; struct n *next; short arr[4]; unsigned char b; _Bool t; const char *text; };
enum color { RED, GREEN = 5, BLUE = 70000 };
enum sign { MINUS = -3, PLUS = 3 };
volatile long sink;
struct n nodes[4];
__attribute__((noinline, noclone)) void f(signed char a, unsigned char b, short c, unsigned short d, int e, unsigned g, long h, unsigned long k, struct n *p, enum color col, enum sign sgn)
{ sink += a + b + c + d + e + g + h + k + (p != 0) + col + sgn; }
`

// expressions makes C's expressions without undefined behaviour but overflow, which -fwrapv defines.
type expressions struct{ *rand.Rand }

func (r expressions) pick(of ...string) string { return of[r.IntN(len(of))] }

func (r expressions) leaf() string {
	switch r.IntN(9) {
	case 0, 1, 2:
		return r.pick("a", "b", "c", "d", "e", "g", "h", "k", "col", "sgn")
	case 3, 4:
		return r.pick("p->x", "p->u", "p->s", "p->wide", "p->arr[2]", "p->arr[e & 3]", "p->b", "p->t", "p->next->x", "p->next->arr[1]", "(*p).x", "*&p->x", "*p->arr")
	case 5:
		return r.pick("0", "1", "2", "7", "255", "4096", "0x7fffffff", "0x80000000", "0xffffffff", "4294967295", "0x123456789a", "2147483648", "'x'")
	case 6:
		return r.pick("GREEN", "BLUE", "MINUS", "sizeof(struct n)", "sizeof(unsigned short)", "p->text[1]", "((struct n *)p->next)->u")
	case 7:
		return "(" + r.pick("unsigned char", "signed char", "short", "unsigned short", "int", "unsigned int", "long", "unsigned long", "_Bool", "enum sign", "enum color") + ")" + r.pick("e", "g", "h", "k", "(h * 3)", "-d", "p->s")
	}
	return r.pick("(long)(p - nodes)", "(long)(p->next - p)", "(p == p->next)", "(p < p->next)", "(long)((char *)(p + 1) - (char *)p)", "(&p->x == (int *)p)", "!p")
}

func (r expressions) text(depth int) string {
	if depth == 0 {
		return r.leaf()
	}
	x := r.text(r.IntN(depth))
	y := r.text(r.IntN(depth))
	switch r.IntN(12) {
	case 0:
		return r.pick("-", "~", "!") + "(" + x + ")"
	case 1:
		return "(" + x + ")" + r.pick("<<", ">>") + "((" + y + ")&31)"
	case 2:
		return "(" + x + ")" + r.pick("/", "%") + r.pick("7", "3", "1000", "(b|1)", "0x80000001", "(h|1)")
	case 3, 4:
		return "(" + x + ")" + r.pick("&&", "||") + "(" + y + ")"
	case 5, 6, 7:
		return "(" + x + ")" + r.pick("==", "!=", "<", "<=", ">", ">=") + "(" + y + ")"
	}
	return "(" + x + ")" + r.pick("+", "-", "*", "&", "|", "^") + "(" + y + ")"
}

// TestLikeC: expressions have the values that a compiler gives them, as arguments and as conditions.
func TestLikeC(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	const perPlan, numPlans, numConditions = 30, 6, 40
	seed := uint64(1)
	if s := os.Getenv("TRUTH_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	r := expressions{rand.New(rand.NewPCG(seed, 5))}
	var all []string
	for len(all) < perPlan*numPlans {
		all = append(all, r.text(3))
	}
	source := likeC + "int main(void) {\n\tfor (int i = 0; i < 4; i++) nodes[i] = (struct n){1000 - 900 * i, i * 9, -i * 20, 0xfffffff0u + i, &nodes[(i + 3) % 4], {i, -5, 30000, i - 2}, 200 + i, i & 1, \"text\"};\n"
	source += `	for (unsigned i = 0; i < 8; i++) {
		signed char a = (int)i * 37 - 100; unsigned char b = i * 85; short c = i * -9000; unsigned short d = i * 9001; int e = i * 0x30000001u;
		unsigned g = i * 0x60000007u; long h = i * 0x3000000010000001ul; unsigned long k = i * 0x5000000000000003ul; struct n *p = &nodes[i % 4];
		enum color col = i & 1 ? BLUE : GREEN; enum sign sgn = i & 2 ? MINUS : PLUS;
`
	for _, e := range all {
		source += "\t\tprintf(\"%ld\\n\", (long)(" + e + "));\n"
	}
	source += "\t\tf(a, b, c, d, e, g, h, k, p, col, sgn);\n\t}\n\treturn 0;\n}\n"
	path, img := build(t, "gcc-12", "likec.c", source, "-O1", "-fwrapv", "-fno-strict-aliasing", "-w")
	defer img.Close()
	out, err := exec.Command(path).Output()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); {
		want = append(want, lines.Text())
	}
	var texts []string
	for i := range numPlans {
		text := "f"
		for k, e := range all[i*perPlan:][:perPlan] {
			text += fmt.Sprintf(" x%d=(long)(%s)", k, e)
		}
		texts = append(texts, text)
	}
	for _, e := range all[:numConditions] {
		texts = append(texts, "if="+e+"; f e")
	}
	plans, err := plansOf(img, plan.Options{}, texts...)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	at := make(map[*plan.Plan]int)
	for i, p := range plans {
		at[p] = i
	}
	got := make(map[int]int) // hits of each plan
	wrong, values := 0, 0
	run(t, plans, "", []string{path}, func(_ int, h *tracer.Hit) {
		i := at[h.Plan]
		n := got[i]
		got[i]++
		if i >= numPlans {
			return
		}
		for k := range h.Values {
			text := all[i*perPlan+k]
			values++
			if w := want[n*len(all)+i*perPlan+k]; h.Values[k].String() != w {
				if wrong++; wrong < 20 {
					t.Errorf("run %d: %s is %s, and in C %s", n, text, h.Values[k].String(), w)
				}
			}
		}
	})
	for i := range numConditions {
		hits := 0
		for n := range 8 {
			if want[n*len(all)+i] != "0" {
				hits++
			}
		}
		if got[numPlans+i] != hits {
			t.Errorf("if=%s: %d hits, in C %d", all[i], got[numPlans+i], hits)
		}
	}
	t.Logf("%d values, %d wrong; %d conditions", values, wrong, numConditions)
	if values != 8*len(all) {
		t.Errorf("%d values, want %d", values, 8*len(all))
	}
}
