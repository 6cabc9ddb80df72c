package coverage_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/attachable"
	"github.com/bpfprologue/bpfprologue/coverage"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/place"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// TestProbes counts what package attachable says of each address, one by one.
func TestProbes(t *testing.T) {
	kernels, programs, relocatable := 0, 0, 0
	for _, name := range append(fixtures.Names(), "object-clang14-arm64-O0-dwarf5.o") {
		img := testenv.Fixture(t, name)
		all, err := coverage.MeasureAll(context.Background(), img)
		if err != nil {
			t.Fatal(err)
		}
		got := all.Probes
		if inside.File(img).IsRelocatable() {
			relocatable++
			if got != nil {
				t.Errorf("%s: %+v", name, got)
			}
			continue
		}
		sites, err := img.Sites(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		table, err := attachable.New(img)
		if err != nil {
			t.Fatal(err)
		}
		kernel, err := place.IsKernel(img)
		if err != nil {
			t.Fatal(err)
		}
		want := &coverage.Probes{Refused: map[string]int{}, Methods: map[string]int{}}
		seen := make(map[uint64]bool)
		for _, s := range sites {
			if s.Kind != dwarfloc.SiteInline || seen[s.Addr] {
				continue
			}
			seen[s.Addr] = true
			want.Addresses++
			method := attachable.UprobeMethod(img, s.Addr)
			if kernel {
				method = table.Method(s.Addr)
				if c := table.At(s.Addr); c != attachable.CauseNone {
					want.Refused[c.String()]++
					continue
				}
			}
			want.Attachable++
			want.Methods[method.String()]++
		}
		if kernel {
			kernels += want.Attachable
		} else {
			programs += want.Attachable
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		report := &coverage.Report{Probes: got}
		var b strings.Builder
		report.Print(&b)
		for method, n := range want.Methods {
			if !strings.Contains(b.String(), "\n  "+method+" ") || n == 0 {
				t.Errorf("%s: the report lacks %q:\n%s", name, method, b.String())
			}
		}
		if d := coverage.Diff(&coverage.Report{}, report); len(d) == 0 && want.Addresses > 0 {
			t.Errorf("%s: no figure differs from none", name)
		}
	}
	if kernels == 0 || programs == 0 || relocatable == 0 {
		t.Errorf("%d addresses in kernels, %d in programs, %d relocatable files", kernels, programs, relocatable)
	}
}
