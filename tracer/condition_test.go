package tracer_test

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// during reports the hits of a session while a program runs.
func during(t *testing.T, s *tracer.Session, path string, f func(*tracer.Hit) error) error {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- exec.Command(path).Run()
		cancel()
	}()
	return errors.Join(s.Run(ctx, f), <-ended)
}

// TestNotResident: what is on a page that is not resident is read by programs that may sleep.
func TestNotResident(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	// Nothing in the program touches the text's page.
	const source = `
volatile long sink;
static const char text[] __attribute__((aligned(4096), section(".rodata.text"))) = "a text that nobody has read";
__attribute__((noinline, noclone)) void g(const char *buf, unsigned long n) { sink += n; __asm__ volatile("" :: "r"(buf)); }
int main(void) { g(text, sizeof text); return 0; }
`
	path, img := build(t, "gcc-12", "resident.c", source, "-O1")
	for _, sleep := range []bool{false, true} {
		r, err := instances.Find(img, instances.FindOptions{Sleep: sleep})
		if err != nil {
			t.Fatal(err)
		}
		if sleep && r.Target().Reads != prologue.ReadSleep {
			testenv.Missing(t, "the kernel's programs of uprobes cannot sleep")
		}
		plans, err := plansOf(img, plan.Options{Target: r.Target()}, `g buf:string first=buf[2]`, `if=buf ~ "*nobody*"; g n`)
		if err != nil {
			t.Fatal(err)
		}
		s, err := tracer.Open(context.Background(), r, plans, tracer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		err = during(t, s, path, func(h *tracer.Hit) error {
			for i := range h.Values {
				got = append(got, h.Values[i].String())
			}
			return nil
		})
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		// The page may be in the cache, and mapped with a neighbour that was read: then both see it.
		want := "\"a text that nobody has read\" 't' 28"
		if text := strings.Join(got, " "); sleep && text != want {
			t.Errorf("sleeping: %s, want %s", text, want)
		} else {
			t.Logf("sleep %v: %s", sleep, text)
		}
	}
}

// TestSpanConditions: of runs for which a condition holds both ends are seen, and of others nothing.
func TestSpanConditions(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	const source = `
volatile long sink;
__attribute__((noinline, noclone)) long g(long n) { sink += n; return n * 2; }
int main(void) { for (long i = 0; i < 100; i++) g(i); return 0; }
`
	path, img := build(t, "gcc-12", "spans.c", source, "-O1")
	r := inFile(t, img)
	def, err := probe.Parse("if=n % 10 == 7; g n twice=$retval+1")
	if err != nil {
		t.Fatal(err)
	}
	span, err := plan.NewSpan(context.Background(), img, def, plan.Options{Target: r.Target()})
	if err != nil {
		t.Fatal(err)
	}
	s, err := tracer.OpenSpans(context.Background(), r, []*plan.Span{span}, tracer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	err = during(t, s, path, func(h *tracer.Hit) error {
		got = append(got, h.Values[0].String()+":"+h.Results[0].String())
		return nil
	})
	u, unpairedErr := s.Unreported()
	if err := errors.Join(err, unpairedErr, s.Close()); err != nil {
		t.Fatal(err)
	}
	const want = "7:15 17:35 27:55 37:75 47:95 57:115 67:135 77:155 87:175 97:195"
	if strings.Join(got, " ") != want || u.Unpaired != (tracer.Unpaired{}) {
		t.Errorf("%v, unpaired %+v, want %s", got, u.Unpaired, want)
	}
}

// TestConditions: exactly the hits for which the program says that a condition holds are reported, in
// both conventions, and those for which it cannot be computed are counted.
func TestConditions(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	const source = `
#include <string.h>
struct node { int n; struct node *next; char name[16]; const char *text; };
struct outer { long a; struct node in; };
enum color { RED, GREEN = 5, BLUE = -1 };
volatile long sink;
__attribute__((noinline, noclone)) void f(struct node *p, long size, unsigned flags, enum color c, void *v) { sink += size + flags + c; __asm__ volatile("" :: "r"(p), "r"(v)); }
int main(void) {
  struct outer o[4];
  memset(o, 0, sizeof o);
  const char *names[] = {"foo", "foobar", "bar", "a longer name..."}; /* the last one has no room for its NUL */
  for (int i = 0; i < 4; i++) {
    o[i].a = i; o[i].in.n = i; memcpy(o[i].in.name, names[i], strlen(names[i])); o[i].in.text = names[i];
    o[i].in.next = i ? &o[i - 1].in : 0;
  }
  for (int i = 0; i < 120; i++)
    f(&o[i % 4].in, i * 100, i & 7, i % 3 == 0 ? RED : i % 3 == 1 ? GREEN : BLUE, &o[i % 4]);
  return 0;
}
`
	path, img := build(t, "gcc-12", "condition.c", source, "-O2")
	tests := []struct {
		condition     string
		hits, missing int
	}{
		{"size > 5000", 69, 0},
		{"size > 5000 && flags & 1 && c == GREEN", 11, 0},
		{"c == BLUE || c == RED", 80, 0},
		{"c < 0", 40, 0},
		{"p->next && p->next->n == 2", 30, 0},
		{"!p->next || p->next->n == 2", 60, 0},
		{"p->next->n == 2", 30, 30},
		{"size > 5000 && p->next->n == 2", 18, 17},
		{"p->next->n == 2 && size > 5000", 18, 17}, // the cheaper one goes first
		{"size / (flags & 1) > 0", 60, 60},
		{`p->name == "foo"`, 30, 0},
		{`p->name != "foo"`, 90, 0},
		{`"foobar" == p->name`, 30, 0},
		{`p->name == "a longer name..."`, 30, 0},
		{`p->name == "a longer name...."`, 0, 0},
		{`p->text == "a longer name..."`, 30, 0},
		{`p->text == "a longer name"`, 0, 0},
		{`p->text == ""`, 0, 0},
		{`p->text ~ ""`, 0, 0},
		{`p->text ~ "*"`, 120, 0},
		{`p->name ~ "foo*"`, 60, 0},
		{`p->name ~ "fo?"`, 30, 0},
		{`p->name ~ "fo??"`, 0, 0},
		{`p->name ~ "foo??*"`, 30, 0},
		{`p->text ~ "?a*" || p->text ~ "a longer*"`, 60, 0},
		{`p->next->text == "bar"`, 30, 30},
		{`p->name ~ "*o*"`, 90, 0},
		{`p->name ~ "*a*r"`, 60, 0},
		{`p->name ~ "*bar"`, 60, 0},
		{`p->name ~ "*..."`, 30, 0},
		{`p->text ~ "*n?m*e*\\..."`, 30, 0},
		{`p->text ~ "*n?m*.\\.?"`, 30, 0},
		{`p->text ~ "**f*o*o"`, 30, 0},
		{`p->next->text ~ "*b*"`, 60, 30},
		{`$comm ~ "*gra*"`, 120, 0},
		{`$comm ~ "*gram?"`, 0, 0},
		{`((struct outer *)v)->a == 3`, 30, 0},
		{`(struct outer *)v->in.name[1] == 'o'`, 60, 0},
		{`container_of(p, struct outer, in)->a >= 2`, 60, 0},
		{`$comm == "program"`, 120, 0},
		{`$comm ~ "prog*"`, 120, 0},
		{`$comm ~ "prograX"`, 0, 0},
		{`$comm != "program"`, 0, 0},
		{`$pid != $tid`, 0, 0},
		{`$pid && $uid == 0 && $cpu < 4096 && $time > 0`, 120, 0},
		{`sizeof(struct outer) == 64 - 16 && sizeof(enum color) == 4 && size < 1000`, 10, 0},
		{`%si == 300`, 1, 0},
		{`%si%1000 == 300`, 12, 0},
	}
	for _, c := range []prologue.Convention{prologue.ConventionRegisters, prologue.ConventionRecord} {
		var texts []string
		for _, x := range tests {
			texts = append(texts, "if="+x.condition+"; f size flags p->n")
		}
		texts = append(texts, "ifmissing=pass; if=p->next->n == 2; f size", "ifmissing=pass; if=p->next->n == 2 && size < 2000; f size")
		plans, err := plansOf(img, plan.Options{Convention: c, CountMissing: true}, texts...)
		if err != nil {
			t.Fatalf("%+v", err)
		}
		at := make(map[*plan.Plan]int)
		for i, p := range plans {
			at[p] = i
		}
		got := make([]int, len(plans))
		run(t, plans, "", []string{path}, func(_ int, h *tracer.Hit) { got[at[h.Plan]]++ })
		for i, x := range tests {
			if got[i] != x.hits {
				t.Errorf("%v: %s: %d hits, want %d", c, x.condition, got[i], x.hits)
			}
		}
		if n := got[len(tests)]; n != 60 {
			t.Errorf("%v: what is missing passes: %d hits, want 60", c, n)
		}
		if n := got[len(tests)+1]; n != 10 {
			t.Errorf("%v: what is missing passes, and the rest is false: %d hits, want 10", c, n)
		}
		for _, i := range []int{0, 6, 7, 9, 25} {
			s, err := tracer.Open(context.Background(), inFile(t, img), plans[i:i+1], tracer.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := exec.Command(path).Run(); err != nil {
				t.Fatal(err)
			}
			if n, err := s.Unreported(); err != nil || n.Missing != uint64(tests[i].missing) {
				t.Errorf("%v: %s: missing %d times, %v, want %d", c, tests[i].condition, n.Missing, err, tests[i].missing)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
