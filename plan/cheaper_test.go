package plan_test

import (
	"reflect"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestCost: probes of inlined bodies move to where they cost less, forwards only, with the locations of
// where they were; not where nothing can be, and not if they cost nothing.
func TestCost(t *testing.T) {
	const image, definition = "basic-gcc12-O2-dwarf5.elf", "my_func_*_abcd $params"
	plain, err := plantest.Fixture(t, image, definition, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	moved := 0
	for what, cost := range map[string]func(addr uint64) int{
		"farther is cheaper": func(addr uint64) int { return 1<<30 - int(addr&(1<<29-1)) },
		"nowhere else":       func(uint64) int { return -1 },
		"free":               func(uint64) int { return 0 },
	} {
		p, err := plantest.Fixture(t, image, definition, plan.Options{Cost: cost})
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Sites) != len(plain.Sites) {
			t.Fatalf("%s: %d sites, not %d", what, len(p.Sites), len(plain.Sites))
		}
		for i := range p.Sites {
			s, was := &p.Sites[i], &plain.Sites[i]
			if s.MovedFrom != 0 {
				if moved++; what != "farther is cheaper" || s.MovedFrom != was.Addr || s.Addr <= was.Addr || s.Addr > was.Addr+64 {
					t.Errorf("%s: %v moved from %#x to %#x", what, was, s.MovedFrom, s.Addr)
				}
			} else if s.Addr != was.Addr {
				t.Errorf("%s: %v is at %#x", what, was, s.Addr)
			}
			for j := range s.Args {
				if !reflect.DeepEqual(s.Args[j].Variable.Loc, was.Args[j].Variable.Loc) {
					t.Errorf("%s: %v: %s is elsewhere", what, was, s.Args[j].Name)
				}
			}
		}
	}
	if moved == 0 {
		t.Error("nothing moved")
	}
}
