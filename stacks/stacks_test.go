package stacks_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/stacks"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// leaf is inlined into middle, which is inlined into two functions. plain is hit at its first instruction, where
// its frame is not there yet.
const source = `
#define HIDE(x) __asm__ volatile("" : : "r"(x) : "memory")
volatile int sink;

static inline __attribute__((always_inline)) void leaf(int n)
{
	HIDE(n);
	sink += n;
	HIDE(n);
}

static inline __attribute__((always_inline)) void middle(int n)
{
	HIDE(n);
	leaf(n + 1);
	HIDE(n);
}

__attribute__((noinline)) void plain(int n)
{
	HIDE(n);
	sink += n;
}

__attribute__((noinline)) void left(int n)
{
	sink += 1;
	middle(n);
	plain(n);
	sink += 2;
}

__attribute__((noinline)) void right(int n)
{
	sink += 3;
	if (n > 0)
		right(n - 1);
	else
		middle(n);
	left(n);
	sink += 4;
}

int main(void)
{
	left(1);
	right(2);
	sink += 6;
	return 0;
}
`

func build(t *testing.T, options ...string) (path string, img *dwarfloc.Image) {
	t.Helper()
	return buildFrom(t, source, options...)
}

func buildFrom(t *testing.T, source string, options ...string) (path string, img *dwarfloc.Image) {
	t.Helper()
	dir := t.TempDir()
	c, path := filepath.Join(dir, "stack.c"), filepath.Join(dir, "program")
	if err := os.WriteFile(c, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append(options, "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-o", path, c)
	if out, err := exec.Command(testenv.Tool(t, "gcc-12"), args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = img.Close() })
	return path, img
}

// traced returns the frames of each hit.
func traced(t *testing.T, path string, img *dwarfloc.Image, definitions ...string) (out [][]stacks.Frame, plans []*plan.Plan) {
	t.Helper()
	r, err := instances.Find(img, instances.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range definitions {
		plans = append(plans, plantest.New(t, img, d, plan.Options{Target: r.Target()}))
	}
	s, err := tracer.Open(t.Context(), r, plans, tracer.Options{Stack: tracer.StackUser})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	go func() {
		defer stop()
		_ = exec.Command(path).Run()
	}()
	names := stacks.New(stacks.Options{Images: []*dwarfloc.Image{img}})
	defer names.Close()
	err = s.Run(ctx, func(h *tracer.Hit) error {
		out = append(out, names.Frames(h.Stack))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out, plans
}

var frameLine = regexp.MustCompile(`^#\d+ +(?:0x[0-9a-f]+ in )?(\S+) \(.*\) at (.*):(\d+)$`)

// TestLikeGDB: stacks equal those that gdb shows at the same places, with inlined functions and lines.
func TestLikeGDB(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	gdb := testenv.Tool(t, "gdb")
	for _, options := range [][]string{{"-O2", "-no-pie"}, {"-O1", "-no-pie"}, {"-O0", "-no-pie"}} {
		path, img := build(t, options...)
		hits, plans := traced(t, path, img, "leaf n", "plain n", "middle n")
		args := []string{"-batch", "-nx", "-iex", "set debuginfod enabled off", "-ex", "set width 0", "-ex", "set print address on"}
		seen := make(map[uint64]bool)
		for _, p := range plans {
			for i := range p.Sites {
				if a := p.Sites[i].Addr; !seen[a] {
					seen[a] = true
					args = append(args, "-ex", fmt.Sprintf("break *%#x", a))
				}
			}
		}
		args = append(args, "-ex", "run", "-ex", "bt")
		for range 40 {
			args = append(args, "-ex", "continue", "-ex", "bt")
		}
		text, _ := exec.Command(gdb, append(args, path)...).Output()
		var want [][]string
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "#0") {
				want = append(want, nil)
			}
			if m := frameLine.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				want[len(want)-1] = append(want[len(want)-1], m[1]+" "+filepath.Base(m[2])+":"+m[3])
			}
		}
		var got [][]string
		for _, frames := range hits {
			var list []string
			for _, f := range frames {
				if f.File != "" {
					list = append(list, fmt.Sprintf("%s %s:%d", f.Function, filepath.Base(f.File), f.Line))
				} else {
					list = append(list, f.String())
				}
				if f.Function == "main" {
					break
				}
			}
			got = append(got, list)
		}
		if diff := cmp.Diff(want, got); diff != "" || len(got) < 8 {
			t.Errorf("%v: %d stacks (-gdb +ours):\n%s", options, len(got), diff)
		}
	}
}

// TestEndedProcess: in a program that is loaded anywhere, the frames of its own image are known after it
// has ended, and folded they are from the outermost to the innermost.
func TestEndedProcess(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, img := build(t, "-O2")
	hits, _ := traced(t, path, img, "leaf n")
	if len(hits) != 5 {
		t.Fatalf("%d hits", len(hits))
	}
	frames := hits[len(hits)-1]
	if i := slices.IndexFunc(frames, func(f stacks.Frame) bool { return f.Function == "main" }); i < 0 {
		t.Errorf("frames %v", frames)
	} else if got := stacks.Folded(frames[:i+1]); got != "main;right;left;middle;leaf" {
		t.Errorf("folded: %s", got)
	}
}

// TestEndedLibrary: the functions of a library, which is anywhere in each process, are known after the process has ended.
func TestEndedLibrary(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	const source = `
#include <stdlib.h>
volatile int sink;
__attribute__((noinline)) int compare(const void *a, const void *b) { sink++; return *(int *)a - *(int *)b; }
int main(void) { int v[3] = {3, 1, 2}; qsort(v, 3, sizeof v[0], compare); return 0; }
`
	path, img := buildFrom(t, source, "-O1")
	r, err := instances.Find(img, instances.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := tracer.Open(t.Context(), r, []*plan.Plan{plantest.New(t, img, "compare", plan.Options{Target: r.Target()})}, tracer.Options{Stack: tracer.StackUser})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	names := stacks.New(stacks.Options{Images: []*dwarfloc.Image{img}})
	defer names.Close()
	if err := exec.Command(path).Run(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop() // what is in the buffer is reported
	n := 0
	err = s.Run(ctx, func(h *tracer.Hit) error {
		n++
		frames := names.Frames(h.Stack)
		if len(frames) < 2 || !strings.Contains(frames[1].Object, "libc") || frames[1].Function == "" {
			t.Errorf("frames %v", frames)
		}
		return nil
	})
	if err != nil || n == 0 {
		t.Fatal(n, err)
	}
}

// TestSummaryStacks: a summary by stacks counts the stacks that a trace has.
func TestSummaryStacks(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, img := build(t, "-O2")
	fromMain := func(folded string) string {
		_, after, _ := strings.Cut(";"+folded, ";main;")
		return "main;" + after
	}
	hits, plans := traced(t, path, img, "leaf n", "plain n")
	want := make(map[string]uint64)
	for _, frames := range hits {
		want[fromMain(stacks.Folded(frames))]++
	}
	names := stacks.New(stacks.Options{Images: []*dwarfloc.Image{img}})
	defer names.Close()
	r, err := instances.Find(img, instances.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := tracer.OpenSummary(t.Context(), r, plans, tracer.SummaryOptions{
		By: []string{"stack", "caller"}, StackText: names.Text, CallerText: names.CallerText,
	}, tracer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := exec.Command(path).Run(); err != nil {
		t.Fatal(err)
	}
	rows, err := s.Rows()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]uint64)
	for _, row := range rows {
		folded := fromMain(row.Keys[0].Text)
		got[folded] += row.Hits
		if all := strings.Split(folded, ";"); row.Keys[1].Text != all[len(all)-2] {
			t.Errorf("%s: the caller is %s", folded, row.Keys[1].Text)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 8 {
		t.Errorf("stacks (-trace +summary):\n%s", diff)
	}
}
