package tracer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/prologue"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// TestLargeRecords: records that are too large for the stack have the right values, also while several
// threads hit at once, and each is free again afterwards.
func TestLargeRecords(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	const source = `
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
struct names { char a[200], b[200], c[200], d[100]; };
volatile long sink;
__attribute__((noinline, noclone)) void f(struct names *n, long id, const char *text) { sink += id; __asm__ volatile("" :: "r"(n), "r"(text) : "memory"); }
static void *work(void *p) {
  long thread = (long)p;
  struct names *n = calloc(1, sizeof *n);
  for (int i = 0; i < 500; i++) {
    long id = thread * 1000 + i;
    snprintf(n->a, sizeof n->a, "first %ld", id); snprintf(n->b, sizeof n->b, "second %ld", id);
    snprintf(n->c, sizeof n->c, "third %ld", id); snprintf(n->d, sizeof n->d, "fourth %ld", id);
    f(n, id, n->b);
  }
  return 0;
}
int main(void) {
  pthread_t t[4];
  for (long i = 0; i < 4; i++) pthread_create(&t[i], 0, work, (void *)i);
  for (long i = 0; i < 4; i++) pthread_join(t[i], 0);
  return 0;
}
`
	path, img := build(t, "gcc-12", "large.c", source, "-O1", "-pthread")
	const definition = "f id n->a:string n->b:string n->c:string n->d:string whole=*n text:string"
	for _, sleep := range []bool{false, true} {
		r, err := instances.Find(img, instances.FindOptions{Sleep: sleep})
		if err != nil {
			t.Fatal(err)
		}
		o := plan.Options{Target: r.Target(), StringBytes: 200}
		// A structure of 700 bytes is too large for any record; the stack is too small for the rest.
		text := strings.Replace(definition, "whole=*n ", "", 1)
		var stack *prologue.StackError
		if _, err := plansOf(img, o, text); !errors.As(err, &stack) {
			t.Fatalf("without large records: %v", err)
		}
		o.LargeRecords = true
		plans, err := plansOf(img, o, definition)
		if err != nil {
			t.Fatal(err)
		}
		if plans[0].RecordBytes < 700 {
			t.Errorf("records of %d bytes", plans[0].RecordBytes)
		}
		s, err := tracer.Open(context.Background(), r, plans, tracer.Options{Buffer: 1 << 23})
		if err != nil {
			t.Fatalf("%+v", err)
		}
		seen := make(map[string]bool)
		err = during(t, s, path, func(h *tracer.Hit) error {
			id := h.Values[0].String()
			seen[id] = true
			for i, word := range map[int]string{1: "first", 2: "second", 3: "third", 4: "fourth", 6: "second"} {
				if want := fmt.Sprintf("%q", word+" "+id); h.Values[i].String() != want {
					return fmt.Errorf("%s is %s, want %s", h.Values[i].Name, h.Values[i].String(), want)
				}
			}
			return nil
		})
		not, lostErr := s.Unreported()
		if err := errors.Join(err, lostErr, s.Close()); err != nil {
			t.Fatal(err)
		}
		if len(seen) != 2000 || not.Lost != 0 {
			t.Errorf("sleep %v: %d different hits, %d lost, want 2000", sleep, len(seen), not.Lost)
		}
	}
}
