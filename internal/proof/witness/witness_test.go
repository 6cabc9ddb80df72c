package witness

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// asKernel gives a program the symbol that a kernel's code begins with: instructions speak in kernels alone, and the same code can run here as a program.
const asKernel = "-Wl,--defsym=_stext=main"

// run is a run of an inlined body: which function's, in which one, and what it was given.
type run struct {
	function, in string
	value        uint64
	rule         loc.Rule
	lost         bool
}

// TestLive: what instructions say is what the program passed, each time.
func TestLive(t *testing.T) {
	if os.Geteuid() != 0 || runtime.GOARCH != "amd64" {
		testenv.Missing(t, "programs of amd64 are traced by root")
	}
	testenv.Tool(t, "gcc")
	said, left := make(map[string]int), 0
	for _, options := range [][]string{{"-O2"}, {"-O2", "-no-pie", "-fno-pie"}, {"-Os"}, {"-O3", "-no-pie", "-fno-pie"}, {"-O1"}} {
		name := strings.Join(options, " ")
		path := build(t, options)
		want, got := trace(t, path)
		// The runs of one function in another are in order. An instruction that no probe can be at leaves out all runs of a site.
		type place struct{ function, in string }
		by := make(map[place][]run)
		for _, r := range got {
			by[place{r.function, r.in}] = append(by[place{r.function, r.in}], r)
		}
		all := make(map[place][]run)
		for _, r := range want {
			all[place{r.function, r.in}] = append(all[place{r.function, r.in}], r)
		}
		for at, wanted := range all {
			hits := by[at]
			if len(hits) != len(wanted) {
				t.Logf("%s: %d hits for %d runs of %s in %s", name, len(hits), len(wanted), at.function, at.in)
				continue
			}
			for i, h := range hits {
				switch {
				case h.lost:
					left++
				case h.value != wanted[i].value:
					t.Errorf("%s: %s in %s was given %#x, and rule %v says %#x", name, at.function, at.in, wanted[i].value, h.rule, h.value)
				case rule.ByInstruction(h.rule):
					said[at.function]++
				}
			}
		}
	}
	t.Logf("instructions said %v values, and %d are lost", said, left)
	for function, least := range map[string]int{"set": 110, "get": 130, "mask_get": 130, "up": 170, "test": 280, "test_mask": 50} {
		if said[function] < least {
			t.Errorf("%d values of %s, want %d", said[function], function, least)
		}
	}
}

// compiled opens the program that a compiler makes of a source in C.
func compiled(t *testing.T, compiler, source string, options ...string) *dwarfloc.Image {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	c := exec.CommandContext(t.Context(), testenv.Tool(t, compiler), append(options, "-g", "-x", "c", "-o", path, "-")...)
	c.Stdin = strings.NewReader(source)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return testenv.Open(t, path)
}

func build(t *testing.T, options []string) string {
	t.Helper()
	dir := t.TempDir()
	object := func(name string, more ...string) string {
		out := filepath.Join(dir, name+".o")
		args := append(append(append([]string{"-g"}, options...), more...), "-c", "-o", out, filepath.Join("testdata", name+".c"))
		if text, err := exec.CommandContext(t.Context(), "gcc", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return out
	}
	path := filepath.Join(dir, "program")
	args := append(append([]string{asKernel}, options...), "-o", path, object("known"), object("main"), object("lost", "-fno-var-tracking"))
	if text, err := exec.CommandContext(t.Context(), "gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return path
}

var definitions = []string{"set addr", "get addr", "mask_get m", "up in", "level in", "take in", "test addr", "test_mask m"}

// trace runs a program, and returns what it says of its runs, and what probes fetched of them.
func trace(t *testing.T, path string) (want, got []run) {
	t.Helper()
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	running, err := instances.Find(img, instances.FindOptions{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	var plans []*plan.Plan
	for _, text := range definitions {
		def, err := probe.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.New(t.Context(), img, def, plan.Options{Target: running.Target()})
		if err != nil {
			t.Fatal(err)
		}
		plans = append(plans, p)
	}
	session, err := tracer.Open(t.Context(), running, plans, tracer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var out strings.Builder
	cmd := exec.CommandContext(ctx, path)
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait() // what it printed is compared
		stop()
	}()
	err = session.Run(ctx, func(h *tracer.Hit) error {
		s := &h.Plan.Sites[h.Site]
		v := &h.Values[0]
		r := run{function: s.Function, in: s.Symbol, rule: s.Args[0].Variable.Loc.Rule, lost: v.Lost}
		if !v.Lost {
			r.value = binary.NativeEndian.Uint64(v.Data)
		}
		got = append(got, r)
		return nil
	})
	if err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
	in := ""
	for line := range strings.Lines(out.String()) {
		r := run{in: in}
		if _, err := fmt.Sscanf(line, "%s %d", &r.function, &r.value); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, "caller") || strings.HasPrefix(line, "reader") {
			in = r.function
			continue
		}
		want = append(want, r)
	}
	return want, got
}
