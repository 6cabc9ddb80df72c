package tracer_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/tracer"
)

const (
	librarySource = `volatile int sink; __attribute__((noinline)) int inner(int n, long m) { sink += n; return n + m; }`
	callerSource  = `
int inner(int n, long m);
volatile int sum;
__attribute__((noinline)) void outer(int n) { sum += inner(n, 10); sum++; }
int main(void) { for (int i = 1; i < 4; i++) outer(i); return 0; }
`
)

// programAndLibrary builds a program with a library of its own.
func programAndLibrary(t *testing.T) (path string, images []*dwarfloc.Image) {
	t.Helper()
	dir := t.TempDir()
	library := filepath.Join(dir, "libinner.so")
	path = filepath.Join(dir, "outer")
	if err := os.WriteFile(filepath.Join(dir, "inner.c"), []byte(librarySource), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "outer.c"), []byte(callerSource), 0o600); err != nil {
		t.Fatal(err)
	}
	gcc := testenv.Tool(t, "gcc-12")
	for _, args := range [][]string{
		{"-g", "-O1", "-shared", "-fPIC", "-o", library, filepath.Join(dir, "inner.c")},
		{"-g", "-O1", "-o", path, filepath.Join(dir, "outer.c"), library, "-Wl,-rpath," + dir},
	} {
		if out, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for _, p := range []string{path, library} {
		img, err := dwarfloc.Open(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = img.Close() })
		images = append(images, img)
	}
	return path, images
}

// TestWith: the hits, or runs, of two images are one stream in the order of time.
func TestWith(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, images := programAndLibrary(t)
	for _, whole := range []bool{false, true} {
		var sessions []*tracer.Session
		for i, text := range []string{"outer n", "inner n m"} {
			img := images[i]
			r := inFile(t, img)
			var o tracer.Options
			if i > 0 {
				o.With = sessions[0]
			}
			var s *tracer.Session
			var err error
			if whole {
				s, err = tracer.OpenSpans(t.Context(), r, spans(t, img, text, text), o)
			} else {
				var plans []*plan.Plan
				if plans, err = plansOf(img, plan.Options{Target: r.Target()}, text, text); err == nil {
					s, err = tracer.Open(t.Context(), r, plans, o)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			sessions = append(sessions, s)
		}
		var got []string
		var last time.Duration
		if err := during(t, sessions[0], path, func(h *tracer.Hit) error {
			line := h.Plan.Sites[h.Site].Function
			for _, v := range slices.Concat(h.Values, h.Results) {
				line += " " + v.String()
			}
			if at := h.Time + h.Duration; at < last {
				t.Errorf("%s: at %v, after %v", line, at, last)
			} else {
				last = at
			}
			got = append(got, line)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		want := "outer 1, outer 1, inner 1 10, inner 1 10, outer 2, outer 2, inner 2 10, inner 2 10, outer 3, outer 3, inner 3 10, inner 3 10"
		if whole {
			want = "inner 1 10 11, inner 1 10 11, outer 1, outer 1, inner 2 10 12, inner 2 10 12, outer 2, outer 2, inner 3 10 13, inner 3 10 13, outer 3, outer 3"
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("whole runs %v: %s, want %s", whole, text, want)
		}
		if not, err := sessions[0].Unreported(); err != nil || not != (tracer.Unreported{}) {
			t.Errorf("not reported: %+v, %v", not, err)
		}
		if err := sessions[1].Run(context.Background(), nil); err == nil {
			t.Error("the second session runs")
		}
		// Another kind of session is no part of it.
		r := inFile(t, images[0])
		plans, err := plansOf(images[0], plan.Options{Target: r.Target()}, "outer n")
		if err != nil {
			t.Fatal(err)
		}
		if whole {
			_, err = tracer.Open(t.Context(), r, plans, tracer.Options{With: sessions[1]})
		} else {
			_, err = tracer.OpenSpans(t.Context(), r, spans(t, images[0], "outer n"), tracer.Options{With: sessions[1]})
		}
		if err == nil || !strings.Contains(err.Error(), "not of one stream") {
			t.Errorf("whole runs %v: %v", whole, err)
		}
		if err := errors.Join(sessions[1].Close(), sessions[0].Close()); err != nil {
			t.Error(err)
		}
	}
}
