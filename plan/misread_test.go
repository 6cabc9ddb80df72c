package plan_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/bpfprologue/bpfprologue/attachable"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/refusals"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/pack"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
)

// misreadSource is of a kernel module: an inlined body begins with a store of a vector, which kprobes take for a jump.
const misreadSource = `
static inline __attribute__((always_inline)) void store(long *p) { __asm__ volatile("vmovdqa %%ymm0, (%0)" : : "r"(p) : "memory"); }
static inline __attribute__((always_inline)) void clear(long *p) { __asm__ volatile("vpxor %%ymm0, %%ymm0, %%ymm0" : : "r"(p) : "memory"); }
int run(long *p, long *q) { q[1] = 3; store(q); q[2] = 5; clear(p); return 0; }
`

// TestMisread: a kernel's instructions that kprobes run as other ones have no probe, where a pack of the kernel answers too. The kernel
// would accept it.
func TestMisread(t *testing.T) {
	gcc := testenv.Tool(t, "gcc-12")
	path := filepath.Join(t.TempDir(), "vector.o")
	c := exec.Command(gcc, "-g", "-O2", "-c", "-x", "c", "-o", path, "-")
	c.Stdin = bytes.NewReader([]byte(misreadSource))
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	img := testenv.Open(t, path)
	var packed bytes.Buffer
	if _, err := pack.Write(context.Background(), img, pack.Options{}, &packed); err != nil {
		t.Fatal(err)
	}
	packFile := filepath.Join(t.TempDir(), "vector.pack")
	if err := os.WriteFile(packFile, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []*dwarfloc.Image{img, testenv.Open(t, packFile)} {
		table, err := attachable.New(x)
		if err != nil {
			t.Fatal(err)
		}
		for name, harms := range map[string]bool{"store": true, "clear": false} {
			def, err := probe.Parse(name + " p")
			if err != nil {
				t.Fatal(err)
			}
			p, err := plan.New(context.Background(), x, def, plan.Options{})
			if err != nil || len(p.Sites) != 1 {
				t.Fatal(p, err)
			}
			s := &p.Sites[0]
			cause := table.Of(s.Site).String()
			if errors.Is(s.Refused, refusals.ErrHarmful) != harms || cause == "misread" != harms || s.Instance >= 0 == harms {
				t.Errorf("%s: %s: refused for %v, %q", x.Path(), name, s.Refused, cause)
			}
		}
	}
}
