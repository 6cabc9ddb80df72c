package dwarfloc

import (
	"context"
	"testing"
)

// TestInsideLocalEntry: at an instruction of a function with two entries, variables are resolved there, not where the
// function begins.
func TestInsideLocalEntry(t *testing.T) {
	img := openFixture(t, "foreign-gcc12-ppc64el-O2-dwarf5.elf")
	sites, err := img.Sites(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	local := 0
	for _, s := range sites {
		if s.Kind != SiteEntry || !s.LocalEntry {
			continue
		}
		local++
		if s.here().addr != s.fun.start || s.Addr != s.fun.start+8 {
			t.Errorf("%s: at %#x, resolved at %#x", s, s.Addr, s.here().addr)
		}
		for _, off := range []uint64{0, 8, 12, 16} {
			at, ok, err := s.atOffset(off)
			if err != nil || !ok {
				continue
			}
			same, err := img.SiteAt(context.Background(), s.fun.start+off)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range []*Site{at, same} {
				want := s.fun.start + off
				if off == 8 {
					want = s.fun.start
				}
				if x.Addr != s.fun.start+off || x.LocalEntry != (off == 8 && !x.inside) || !x.inside && x.here().addr != want {
					t.Errorf("%s+%#x: at %#x, resolved at %#x", s, off, x.Addr, x.here().addr)
				}
			}
		}
	}
	lines, err := img.LineSites(context.Background(), sites, func(*Site, string, int) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range lines {
		if at := s.here().addr; s.LocalEntry && at != s.Addr-8 || !s.LocalEntry && at != s.Addr {
			t.Errorf("%s: at %#x, resolved at %#x", s, s.Addr, at)
		}
	}
	if local < 20 || len(lines) < 100 {
		t.Errorf("%d functions with two entries, %d lines", local, len(lines))
	}
}
