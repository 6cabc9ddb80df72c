package tracer_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/tracer"
)

const floatSource = `
#include <math.h>
#include <stdbool.h>
enum color { RED, GREEN = 3 };
struct s { double d, e; float f; bool b; const char *who; enum color c; };
volatile long sink;
__attribute__((noinline, noclone)) void use(struct s *s) { sink += (long)(s->d + s->e + s->f) + s->b + (s->who != 0) + s->c; }
int main(void)
{
	double v[] = {-2.5, -0.0, 0.0, 0.1, 1.5, 1e300, INFINITY, -INFINITY, NAN, -NAN};
	for (int i = 0; i < 10; i++) {
		struct s s = {v[i], 1.0, v[i], i & 1, i & 2 ? "me" : 0, i == 3 ? GREEN : RED};
		use(&s);
	}
	return 0;
}
`

// TestFloats: conditions compare floating point numbers as the compiler does, infinities, zeros and what is no number among them.
func TestFloats(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, img := build(t, "gcc-12", "floats.c", floatSource, "-O2")
	for condition, want := range map[string]int{
		"s->d > 1.0": 3, "s->d == 1.5": 1, "s->d >= 1.5": 3, "s->d < 0.0": 2, "s->d <= 0.0": 4, "s->d == 0.0": 2, "s->d != 0.0": 8, "s->d == 0": 2,
		"s->d > -3": 7, "1.5 <= s->d": 3, "s->d == s->d": 8, "s->d != s->d": 2, "s->d < s->e": 5, "!(s->d > 0.0)": 6, "s->d > 1e3 || s->d < -1.0e3": 3,
		"s->f > 0.1": 4, "s->f >= 0.1": 4, "s->f < 0.1": 4, "s->f <= 0.1": 4, "s->f != 0.1": 10, "s->f == 1.5": 1,
		"s->f == true": 0, "s->f > true": 3, "s->f < 16777217": 6, "s->b == true": 5, "false == s->b": 5, "s->who == NULL": 6, "s->who != nullptr": 4,
	} {
		if got := holds(t, img, path, condition); got != want {
			t.Errorf("%s: %d hits, want %d", condition, got, want)
		}
	}
	for condition, want := range map[string]string{
		"s->f == 0.1":     "the condition never holds",
		"s->d == s->f":    "numbers of 8 and of 4 bytes cannot be compared",
		"s->d + 1 > 2.0":  "must be of type float or double",
		"s->b > 1.5":      "must be of type float or double",
		"1.5 == 2.5":      "two constants are compared",
		"s->f == nope":    "no variable \"nope\"",
		"s->f == s->b":    "must be of type float or double",
		"s->d == -1.5e":   "found",
		"s->d + 1.5 == 2": "can only be compared",
		"s->b = true":     "(== compares)",
		`s->c == "GREEN"`: "write GREEN without quotes",
		`s->c == "GREN"`:  `enum color has no "GREN"; nearest: GREEN`,
		"s->c == GREN":    `enum color has no "GREN"; nearest: GREEN`,
		"GREN != s->c":    `enum color has no "GREN"; nearest: GREEN`,
		"s->c == PURPLE":  "there are: s; enumerators of enum color: RED, GREEN",
		`s->c == "BLUE"`:  `enum color has no "BLUE"; there are: RED, GREEN`,
		`s->c ~ "G*"`:     "enum color is no string",
		`comm == "me"`:    "$comm is what the kernel knows of the task",
	} {
		_, err := plansOf(img, plan.Options{}, "if="+condition+"; use s")
		if err == nil {
			var p []*plan.Plan
			if p, err = plansOf(img, plan.Options{}, "if="+condition+"; use s"); err == nil {
				err = p[0].Nothing()
			}
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", condition, err, want)
		}
	}
}

// holds counts the hits for which a condition holds.
func holds(t *testing.T, img *dwarfloc.Image, path, condition string) (hits int) {
	t.Helper()
	r, err := instances.Find(img, instances.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	plans, err := plansOf(img, plan.Options{Target: r.Target()}, "if="+condition+"; use s")
	if err != nil {
		t.Fatalf("%s: %v", condition, err)
	}
	s, err := tracer.Open(context.Background(), r, plans, tracer.Options{})
	if err != nil {
		t.Fatalf("%s: %v", condition, err)
	}
	err = during(t, s, path, func(*tracer.Hit) error {
		hits++
		return nil
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	return hits
}
