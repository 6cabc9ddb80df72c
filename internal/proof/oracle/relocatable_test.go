package oracle_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/proof/agree"
	"github.com/bpfprologue/bpfprologue/internal/proof/oracle"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// A relocatable file and its linked form, at the same addresses, have the same sites, with
// the same parameters at the same places. Only addresses differ: they have a reason in the
// relocatable file and a location in the linked one.
func TestRelocatable(t *testing.T) {
	apart := 0
	for _, name := range fixtures.Relocatable() {
		t.Run(name, func(t *testing.T) {
			path, err := fixtures.WriteTo(t.TempDir(), name)
			if err != nil {
				t.Fatal(err)
			}
			linked := testenv.Linked(t, t.TempDir(), path)
			apart += compareLinked(t, path, linked)

			// Both readers must agree on the linked image.
			img, err := dwarfloc.Open(linked, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer img.Close()
			if img.Arch().Name != "amd64" {
				return // this reader knows no other registers
			}
			file, err := oracle.Open(t.Context(), linked, "")
			if err != nil {
				t.Fatal(err)
			}
			report(t, compare(t, img, file, file.Units, false), 0)
		})
	}
	if apart == 0 {
		t.Error("no parameter is an address, so addresses were not tested")
	}
}

// The same for a real module.
func TestModule(t *testing.T) {
	if testing.Short() {
		t.Skip("links a whole module")
	}
	path := testenv.Module(t)
	linked := testenv.Linked(t, t.TempDir(), path)
	compareLinked(t, path, linked)
}

// compareLinked returns how many parameters are addresses.
func compareLinked(t *testing.T, path, linked string) (apart int) {
	t.Helper()
	if _, err := os.Stat(linked); err != nil {
		t.Fatal(err)
	}
	open := func(p string) ([]*dwarfloc.Site, *dwarfloc.Image) {
		img, err := dwarfloc.Open(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = img.Close() })
		sites, err := img.Sites(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return sites, img
	}
	mine, img := open(path)
	theirs, other := open(linked)
	if !inside.File(img).IsRelocatable() || inside.File(other).IsRelocatable() {
		t.Fatalf("relocatable: %v, and linked by ld: %v", inside.File(img).IsRelocatable(), inside.File(other).IsRelocatable())
	}
	if len(mine) != len(theirs) || len(mine) == 0 {
		t.Fatalf("%d sites, linked by ld %d", len(mine), len(theirs))
	}
	params, differ := 0, 0
	bad := func(s *dwarfloc.Site, format string, args ...any) {
		if differ++; differ <= agree.MaxExamples {
			t.Errorf("%v (entry %#x): "+format, append([]any{s, s.DIE}, args...)...)
		}
	}
	for i, s := range mine {
		l := theirs[i]
		if s.Function != l.Function || s.Addr != l.Addr || s.View != l.View || s.Kind != l.Kind || s.DIE != l.DIE || s.Section != l.Section || s.SymbolOffset() != l.SymbolOffset() {
			bad(s, "%#x view %d in %s, linked by ld %v at %#x view %d in %s", s.Addr, s.View, s.Section, l, l.Addr, l.View, l.Section)
			continue
		}
		if s.CallFile != l.CallFile || s.CallLine != l.CallLine || len(s.Callers) != len(l.Callers) {
			bad(s, "called from %s:%d, linked by ld %s:%d", s.CallFile, s.CallLine, l.CallFile, l.CallLine)
		}
		a, err := s.Params()
		if err != nil {
			t.Fatal(err)
		}
		b, err := l.Params()
		if err != nil {
			t.Fatal(err)
		}
		if len(a) != len(b) {
			bad(s, "%d parameters, linked by ld %d", len(a), len(b))
			continue
		}
		for j, v := range a {
			w := b[j]
			params++
			at := w.Loc.Text(other.Arch())
			if c := v.Reason.Code; c == w.Reason.Code && (c == reasons.EntryValueOnly || c == reasons.ParameterRef) || w.Loc.Rule >= rule.Caller {
				continue // calls and accesses in a file that is not linked are not resolved
			}
			if v.Reason.Code == reasons.ModuleAddress {
				apart++
				if !strings.Contains(at, "@") {
					bad(s, "%s: %v, linked by ld it is at %s", v.Name, v.Reason, at)
				}
				continue
			}
			if strings.Contains(at, "@") {
				bad(s, "%s: %s (%v), linked by ld it is the address %s", v.Name, v.Loc.Text(img.Arch()), v.Reason, at)
				continue
			}
			// Code that is not linked is not followed either: it does not say how wide an operation is.
			wide := v.Loc.Doubt == reasons.Contradictory && w.Loc.Doubt == reasons.None
			if v.Name != w.Name || v.Type.String() != w.Type.String() || v.Loc.Text(img.Arch()) != at && !wide || v.Reason != w.Reason {
				bad(s, "%s %s: %s (%v), linked by ld %s %s: %s (%v)", v.Type, v.Name, v.Loc.Text(img.Arch()), v.Reason, w.Type, w.Name, at, w.Reason)
			}
		}
	}
	t.Logf("%d sites, %d parameters, %d of them addresses", len(mine), params, apart)
	if differ > agree.MaxExamples {
		t.Errorf("%d differences", differ)
	}
	return apart
}
