package coverage_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/asm"
	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/coverage"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/prologue"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

func measure(t *testing.T, name string) *coverage.Report {
	t.Helper()
	r, err := coverage.Measure(context.Background(), testenv.Fixture(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// emit writes the prologue that fetches parameters with the types of the debug information,
// by nothing that whole images are counted with.
func emit(t *testing.T, s *dwarfloc.Site, params []*dwarfloc.Variable) (insns asm.Instructions, helpers int) {
	t.Helper()
	var args []prologue.Arg
	for _, v := range params {
		typ, err := v.Type.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		size, err := typ.ByteSize()
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, prologue.Arg{Loc: v.Loc, Reason: v.Reason, Size: int(max(size, 0)), Signed: typ.Signed, LowBit: v.LowBit})
	}
	p, err := prologue.Emit(args, prologue.Options{Arch: s.Image.Arch(), BigEndian: inside.File(s.Image).BigEndian(), Convention: prologue.ConventionRegisters})
	if err != nil {
		t.Fatal(err)
	}
	insns = slices.Clone(p.Insns)
	for i := range insns {
		insns[i].Metadata = asm.Metadata{} // without comments
	}
	return insns, p.Helpers
}

// TestMeasure counts what Sites and Params say, one by one.
func TestMeasure(t *testing.T) {
	for _, name := range fixtures.Names() {
		sites, err := testenv.Fixture(t, name).Sites(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var emitted coverage.Emitted
		distinct := make(map[string]bool)
		want := map[dwarfloc.SiteKind]map[string]int{dwarfloc.SiteEntry: {}, dwarfloc.SiteInline: {}}
		for _, s := range sites {
			params, err := s.Params()
			if err != nil {
				t.Fatal(err)
			}
			for chunk := range slices.Chunk(params, prologue.MaxArgs) {
				insns, helpers := emit(t, s, chunk)
				distinct[insns.String()] = true
				emitted.Prologues++
				emitted.Instructions += len(insns)
				emitted.HelperCalls += helpers
			}
			w := want[s.Kind]
			w["sites"]++
			located := 0
			for _, v := range params {
				w["parameters"] += v.Entries
				if v.Located() {
					located++
					w["located"] += v.Entries
				} else {
					w[v.Reason.Code.String()] += v.Entries
				}
			}
			if len(params) > 0 && located == len(params) {
				w["all"]++
			}
		}
		r := measure(t, name)
		if emitted.Distinct = len(distinct); r.Emitted != emitted || emitted.Distinct == 0 {
			t.Errorf("%s: emitted %+v, want %+v", name, r.Emitted, emitted)
		}
		for kind, c := range map[dwarfloc.SiteKind]*coverage.Counts{dwarfloc.SiteEntry: &r.Entry, dwarfloc.SiteInline: &r.Inline} {
			got := map[string]int{"sites": c.Sites, "parameters": c.Parameters, "located": c.Located, "all": c.All}
			for k, n := range c.ByReason {
				got[k] = n
			}
			if diff := cmp.Diff(want[kind], got); diff != "" {
				t.Errorf("%s, %v (-want +got):\n%s", name, kind, diff)
			}
			if n := c.NoParams + c.All + c.Some + c.None; n != c.Sites {
				t.Errorf("%s, %v: the classes of sites add up to %d of %d", name, kind, n, c.Sites)
			}
			rules, kinds := 0, 0
			for _, n := range c.ByRule {
				rules += n
			}
			for _, n := range c.ByKind {
				kinds += n
			}
			if kinds != c.Located {
				t.Errorf("%s, %v: the kinds add up to %d of %d", name, kind, kinds, c.Located)
			}
			if rules != c.Located {
				t.Errorf("%s, %v: the rules add up to %d of %d", name, kind, rules, c.Located)
			}
		}
	}
}

func TestDiff(t *testing.T) {
	gcc, clang := measure(t, "basic-gcc12-O2-dwarf5.elf"), measure(t, "basic-clang14-O2-dwarf5.elf")
	if d := coverage.Diff(gcc, gcc); len(d) != 0 {
		t.Errorf("an image differs from itself: %v", d)
	}
	found := false
	for _, c := range coverage.Diff(gcc, clang) {
		if c.Name == "inline.located" {
			found = c.Old == gcc.Inline.Located && c.New == clang.Inline.Located
		}
		if c.Old == c.New {
			t.Errorf("%s does not differ: %d", c.Name, c.Old)
		}
	}
	if !found {
		t.Error("the difference of inline.located is missing")
	}
}

// TestPrint compares the whole report of a small image.
func TestPrint(t *testing.T) {
	var b strings.Builder
	measure(t, "basic-gcc12-O2-dwarf5.elf").Print(&b)
	golden := filepath.Join("testdata", "report.golden")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(golden, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
