package coverage_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bpfprologue/bpfprologue/coverage"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// TestKept: the next process reads the report of the one before, and it is the same; unless it asks by other rules.
func TestKept(t *testing.T) {
	const name = "run-gcc12-O2-dwarf5.exe"
	path, err := fixtures.WriteTo(t.TempDir(), name)
	if err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(t.TempDir(), "cache")
	measure := func(o dwarfloc.Options, isKept bool) *coverage.Report {
		t.Helper()
		o.Warn = func(err error) { t.Error(err) }
		img, err := dwarfloc.Open(path, &o)
		if err != nil {
			t.Fatal(err)
		}
		if got := inside.Kept(img) != nil; got != isKept {
			t.Errorf("%s: a report is kept: %v, want %v", name, got, isKept)
		}
		r, err := coverage.MeasureAll(context.Background(), img)
		if err != nil {
			t.Fatal(err)
		}
		if err := img.Close(); err != nil {
			t.Error(err)
		}
		return r
	}
	kept := dwarfloc.Options{CacheDir: cache}
	want := measure(dwarfloc.Options{}, false)
	for _, isKept := range []bool{false, true} {
		if diff := cmp.Diff(want, measure(kept, isKept), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s, kept: %v: (-want +got)\n%s", name, isKept, diff)
		}
	}
	measure(dwarfloc.Options{CacheDir: cache, Recover: []string{}}, false)

	want.Ways, want.Probes = nil, nil
	for _, o := range []dwarfloc.Options{{}, kept} {
		img, err := dwarfloc.Open(path, &o)
		if err != nil {
			t.Fatal(err)
		}
		got, err := coverage.Measure(context.Background(), img)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Errorf("%s: without ways: (-want +got)\n%s%v", name, diff, err)
		}
		_ = img.Close()
	}
}

// TestKeptWithoutCode: a program's separate debug information has its build ID, its sections at their addresses, and no code: neither has what was found in the other.
func TestKeptWithoutCode(t *testing.T) {
	program, err := fixtures.WriteTo(t.TempDir(), "run-gcc12-O2-dwarf5.exe")
	if err != nil {
		t.Fatal(err)
	}
	debug := filepath.Join(t.TempDir(), "debug")
	if out, err := exec.Command(testenv.Tool(t, "objcopy"), "--only-keep-debug", program, debug).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, order := range [][2]string{{program, debug}, {debug, program}} {
		cache := filepath.Join(t.TempDir(), "cache")
		for _, path := range order {
			var reports [2]*coverage.Report
			for i, dir := range []string{cache, ""} {
				img, err := dwarfloc.Open(path, &dwarfloc.Options{CacheDir: dir})
				if err != nil {
					t.Fatal(err)
				}
				if reports[i], err = coverage.MeasureAll(context.Background(), img); err != nil {
					t.Fatal(err)
				}
				if err := img.Close(); err != nil {
					t.Error(err)
				}
			}
			if diff := cmp.Diff(reports[1], reports[0], cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: (-without a cache +with one)\n%s", filepath.Base(path), diff)
			}
		}
	}
}
