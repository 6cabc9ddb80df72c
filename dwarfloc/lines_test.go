package dwarfloc

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// readelf prints rows with their views and whether they begin a statement:
//
//	queue.c      379  0xffffffff81000000       1       x
func lineText(s *Site) string {
	var callers []string
	for _, c := range s.Callers {
		callers = append(callers, c.Function)
	}
	return fmt.Sprintf("%s %s:%d at %s view %d %v in %v", s.Function, s.File, s.Line, s.SymbolOffset(), s.View, s.AfterPrologue, callers)
}

// TestLinesBothWays: the lines of all functions are the lines of all files, but for
// those of declarations, which belong to functions alone.
func TestLinesBothWays(t *testing.T) {
	for _, name := range append(fixtures.Names(), fixtures.Relocatable()...) {
		t.Run(name, func(t *testing.T) {
			img := openFixture(t, name)
			bodies, err := img.Sites(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			byFunction, err := img.LineSites(t.Context(), bodies, func(*Site, string, int) bool { return true })
			if err != nil {
				t.Fatal(err)
			}
			byFile, err := img.FileLineSites(t.Context(), anyFile{})
			if err != nil {
				t.Fatal(err)
			}
			text := func(sites []*Site) []string {
				var out []string
				for _, s := range sites {
					if s.Kind != SiteLine {
						t.Errorf("%s is of the kind %s", s, s.Kind)
					}
					if _, line, err := s.Declared(); err != nil || line != s.Line {
						out = append(out, lineText(s))
					}
				}
				slices.Sort(out)
				return out
			}
			want, got := text(byFile), text(byFunction)
			if diff := cmp.Diff(want, got); diff != "" || len(got) < 20 {
				t.Errorf("%d sites of lines (-by file +by function):\n%s", len(got), diff)
			}
			if len(byFunction) < len(bodies) {
				t.Errorf("%d bodies have %d lines: each has one that declares it", len(bodies), len(byFunction))
			}
		})
	}
}

// TestLineSites: where lines are, in printed form. The addresses and views are those
// of readelf's decoded line table.
func TestLineSites(t *testing.T) {
	for _, tt := range []struct {
		image, function string
		line            int
		want            []string
	}{
		// Instances without code, at one address: each has its own row, by its view.
		{"basic-gcc12-O2-dwarf5.elf", "note_text", 3, []string{
			"note_text toy.h:173 at queue_classify+0x44 view 11 false in [queue_classify]",
			"note_text toy.h:173 at queue_classify+0x44 view 17 false in [queue_classify]",
			"note_text toy.h:173 at queue_classify+0x44 view 23 false in [queue_classify]",
			"note_text toy.h:173 at queue_classify+0x44 view 29 false in [queue_classify]",
		}},
		{"basic-gcc12-O2-dwarf5.elf", "call_my_funcs", 7, []string{"call_my_funcs queue.c:51 at call_my_funcs+0x2e view 1 false in []"}},
		{"basic-gcc12-O2-dwarf5.elf", "call_my_funcs", 3, nil}, // an empty line
		{"basic-gcc12-O2-dwarf5.elf", "my_func_one_abcd", 2, []string{
			"my_func_one_abcd queue.c:19 at my_func_one_abcd view 1 false in []",
			"my_func_one_abcd queue.c:19 at call_my_funcs view 3 false in [call_my_funcs]",
			"my_func_one_abcd queue.c:19 at call_my_funcs+0x11 view 5 false in [call_my_funcs]",
			"my_func_one_abcd queue.c:19 at call_my_funcs+0x19 view 5 false in [call_my_funcs]",
		}},
		// Built without optimisation: not inside the prologue.
		{"basic-gcc12-O0-dwarf5.elf", "my_func_one_abcd", 1, []string{"my_func_one_abcd queue.c:18 at my_func_one_abcd+0x8 view 0 true in []"}},
	} {
		img := openFixture(t, tt.image)
		bodies, err := img.Sites(t.Context(), Name(tt.function))
		if err != nil {
			t.Fatal(err)
		}
		sites, err := img.LineSites(t.Context(), bodies, func(s *Site, file string, line int) bool {
			at, first, err := s.Declared()
			return err == nil && at == file && line == first+tt.line
		})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range sites {
			got = append(got, lineText(s))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s:%d (-want +got):\n%s", tt.image, tt.function, tt.line, diff)
		}
	}
}

// TestLinesHaveCode: GCC writes rows for the statements after a call that does not return, at
// the end of their sequence. There is no instruction there: it is another function's, or none.
func TestLinesHaveCode(t *testing.T) {
	img := openFixture(t, "run-gcc12-O2-dwarf5.exe")
	bodies, err := img.Sites(t.Context(), Name("syscall3"))
	if err != nil {
		t.Fatal(err)
	}
	sites, err := img.LineSites(t.Context(), bodies, func(*Site, string, int) bool { return true })
	if err != nil || len(sites) == 0 {
		t.Fatal(len(sites), err)
	}
	for _, s := range sites {
		if sec := img.file.SectionAt(s.Addr); sec == nil || !sec.Exec {
			t.Errorf("%s is in no code", lineText(s))
		}
	}
}

// TestSiteAtErrors: addresses that no function holds.
func TestSiteAtErrors(t *testing.T) {
	img := openFixture(t, "basic-gcc12-O2-dwarf5.elf")
	for addr, want := range map[uint64]string{
		0x1234:             "no function holds the address 0x1234: no section of instructions holds it",
		0xffffffff8fffffff: "no section of instructions holds it",
	} {
		s, err := img.SiteAt(t.Context(), addr)
		if s != nil || !errors.Is(err, ErrNoFunction) || !strings.Contains(err.Error(), want) {
			t.Errorf("%#x: %v, %v", addr, s, err)
		}
	}
}

// TestEarly: in the prologue of a function that was built without optimisation its
// slots do not hold the parameters yet.
func TestEarly(t *testing.T) {
	img := openFixture(t, "basic-gcc12-O0-dwarf5.elf")
	sites, err := img.Sites(t.Context(), Name("my_func_one_abcd"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sites {
		if s.Kind != SiteEntry {
			continue
		}
		for addr := s.spot.Start(); addr <= s.Addr; addr += s.Addr - s.spot.Start() {
			at, err := img.SiteAt(t.Context(), addr)
			if err != nil {
				t.Fatal(err)
			}
			v, err := at.Lookup("arg1")
			if err != nil {
				t.Fatal(err)
			}
			if v.Located() != (addr == s.Addr) {
				t.Errorf("%s, %#x bytes before the end of the prologue: arg1 is %s %v", at, s.Addr-addr, v.Loc.Text(img.Arch()), v.Reason)
			}
		}
	}
}
