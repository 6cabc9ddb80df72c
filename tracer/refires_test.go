package tracer_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/attachable"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// Two inlined functions: the body of one begins with the head of its loop, which is
// turned five times in each call, the other's does not.
// Aligned, the first would begin with a NOP.
const loopSource = `
static volatile int sink, left;

static inline __attribute__((always_inline)) void turns(void)
{
	do {
		left = left - 1;
	} while (left > 0);
}

static inline __attribute__((always_inline)) void once(int n)
{
	sink = n;
	if (n > 100)
		sink = 2;
}

__attribute__((noinline)) void caller(int n)
{
	left = n;
	turns();
	sink = 1;
	once(n);
}

int main(void)
{
	caller(5);
	caller(5);
	return 0;
}
`

// TestRefires: what package attachable says of an inlined site's loop is what a probe
// there does.
func TestRefires(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	gcc := testenv.Tool(t, "gcc-12")
	dir := t.TempDir()
	source, path := filepath.Join(dir, "loop.c"), filepath.Join(dir, "loop")
	if err := os.WriteFile(source, []byte(loopSource), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(gcc, "-O2", "-fno-align-loops", "-g", "-o", path, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	img, err := dwarfloc.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	table, err := attachable.New(img)
	if err != nil {
		t.Fatal(err)
	}
	p := plans(t, img, "turns", "once")
	again := make(map[string]bool)
	for _, plan := range p {
		for i := range plan.Sites {
			if s := &plan.Sites[i]; s.Inlined() && s.Callers[0].Function == "caller" {
				is, checked, err := table.Refires(s.Site)
				if err != nil || !checked {
					t.Fatalf("%v: checked %v, %v", s, checked, err)
				}
				again[s.Function] = is
			}
		}
	}
	if diff := cmp.Diff(map[string]bool{"turns": true, "once": false}, again); diff != "" {
		t.Errorf("which fire again (-want +got):\n%s", diff)
	}
	hits := make(map[string]int)
	run(t, p, "", []string{path}, func(pid int, h *tracer.Hit) {
		if h.PID == pid {
			hits[h.Plan.Sites[h.Site].Function]++
		}
	})
	if diff := cmp.Diff(map[string]int{"turns": 10, "once": 2}, hits); diff != "" {
		t.Errorf("hits of two calls (-want +got):\n%s", diff)
	}
}
