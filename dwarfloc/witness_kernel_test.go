package dwarfloc_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/raced"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// family are parameters that hand the same pointer on, from one body to the one inside it. What an instruction says of one must be what the
// debug information says of another.
type family struct {
	members map[string]string // parameter by function
	back    map[string]int    // least number of sites, by image
}

var families = []family{
	{map[string]string{"_test_bit": "addr", "arch_test_bit": "addr", "constant_test_bit": "addr", "variable_test_bit": "addr", "cpumask_test_cpu": "cpumask"}, map[string]int{"amd64": 4500}},
	{map[string]string{"set_bit": "addr", "arch_set_bit": "addr"}, map[string]int{"amd64": 550}},
	{map[string]string{"clear_bit": "addr", "arch_clear_bit": "addr"}, map[string]int{"amd64": 90}},
	{map[string]string{"spin_unlock": "lock"}, map[string]int{"amd64": 220, "arm64": 300}},
	{map[string]string{"spin_lock": "lock"}, map[string]int{"amd64": 150}},
	{map[string]string{"find_next_bit": "addr"}, map[string]int{"arm64": 400}},
	{map[string]string{"put_page_testzero": "page", "page_ref_dec_and_test": "page"}, map[string]int{"amd64": 400}},
}

// TestWitnesses: what instructions say of pointers that the debug information has lost is what it says of the same pointers where it has not.
func TestWitnesses(t *testing.T) {
	raced.OneGoroutine(t)
	for name, path := range map[string]func(testenv.TB) string{
		"amd64": testenv.Vmlinux,
		"arm64": func(t testenv.TB) string { return testenv.VmlinuxOf(t, "arm64") },
	} {
		t.Run(name, func(t *testing.T) {
			img, err := dwarfloc.Open(path(t), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer img.Close()
			for _, f := range families {
				f.check(t, name, img)
			}
		})
	}
}

// place is where bodies of a family begin that are inside each other, in one state of the machine.
type place struct {
	addr  uint64
	chain string // of the functions that the outermost is inlined into, and where
}

func (f *family) place(s *dwarfloc.Site) place {
	line, callers := s.CallLine, s.Callers
	for len(callers) > 0 && f.members[callers[0].Function] != "" {
		line, callers = callers[0].CallLine, callers[1:]
	}
	return place{s.Addr, fmt.Sprint(line, callers)}
}

func (f *family) check(t *testing.T, name string, img *dwarfloc.Image) {
	t.Helper()
	known := make(map[place]string)
	said := make(map[place]string)
	back, lost := 0, 0
	for function, parameter := range f.members {
		sites, err := img.Sites(context.Background(), dwarfloc.Name(function))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sites {
			params, err := s.Params()
			if err != nil {
				t.Fatal(err)
			}
			at := f.place(s)
			for _, v := range params {
				switch text := v.Loc.Text(img.Arch()); {
				case v.Name != parameter || !s.Inlined():
				case !v.Located():
					lost++
				case rule.ByInstruction(v.Loc.Rule):
					if back++; said[at] != "" && said[at] != text {
						t.Errorf("%v at %#x: instructions say %s and %s", s, s.Addr, said[at], text)
					}
					said[at] = text
				default:
					known[at] = text
				}
			}
		}
	}
	equal := 0
	for at, text := range said {
		switch known[at] {
		case "":
		case text:
			equal++
		default:
			t.Errorf("%s at %#x: an instruction says %s, the debug information %s", at.chain, at.addr, text, known[at])
		}
	}
	t.Logf("%v: %d back, %d still lost; %d places where the debug information knows another one", f.members, back, lost, equal)
	if back < f.back[name] {
		t.Errorf("%v: see above", f.members)
	}
}
