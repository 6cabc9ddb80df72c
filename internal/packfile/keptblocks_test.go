package packfile_test

import (
	"bytes"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/packfile"
)

// sitesOf returns in words what a file says of sites.
func sitesOf(t *testing.T, f *packfile.File, refs []packfile.Ref) []string {
	t.Helper()
	out := make([]string, len(refs))
	err := f.Each(refs, func(i int, s *packfile.Site) error {
		out[i] = withoutPointers.ReplaceAllString(fmt.Sprintf("%+v %+v", *s, *s.Function), "")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestKept: what a list keeps of blocks answers about its sites, and about no others.
func TestKept(t *testing.T) {
	d := section(t, "basic-gcc12-O2-dwarf5.elf")
	f, err := packfile.Open(d, "p")
	if err != nil {
		t.Fatal(err)
	}
	all, err := f.List(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[packfile.Ref]string)
	for i, s := range sitesOf(t, f, all) {
		want[all[i]] = s
	}
	names, err := f.Names()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		f, err := packfile.Open(d, "p")
		if err != nil {
			t.Fatal(err)
		}
		own, err := f.Of(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, refs := range [][]packfile.Ref{own, slices.Concat(own, own), all, own} {
			for i, have := range sitesOf(t, f, refs) {
				if have != want[refs[i]] {
					t.Errorf("after a list of %s, site %v is\n%s\nand not\n%s", name, refs[i], have, want[refs[i]])
				}
			}
		}
	}
}

// TestParallel: on all processors the answers, and the errors, are the same.
func TestParallel(t *testing.T) {
	d := section(t, "basic-gcc12-O2-dwarf5.elf")
	said := func(d []byte, guard func(func() error) error) string {
		f, err := packfile.Open(d, "p")
		if err != nil {
			return err.Error()
		}
		f.Guard = guard
		refs, err := f.List(nil)
		if err != nil {
			return err.Error()
		}
		names, err := f.Names()
		return fmt.Sprint(refs, names, err)
	}
	var calls atomic.Int64
	guard := func(g func() error) error {
		calls.Add(1)
		return g()
	}
	for i := 0; i < len(d); i += 23 {
		x := bytes.Clone(d)
		if i > 0 {
			x[i] ^= 1 << (i % 8)
			packfile.Reseal(x)
		}
		if one, many := said(x, nil), said(x, guard); one != many {
			t.Fatalf("byte %#x: %s\nand on all processors\n%s", i, one, many)
		}
	}
	if calls.Load() == 0 {
		t.Skip("there is one processor, or there are too few blocks")
	}
}
