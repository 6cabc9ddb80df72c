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
		if s.here().Addr != s.spot.Start() || s.Addr != s.spot.Start()+8 {
			t.Errorf("%s: at %#x, resolved at %#x", s, s.Addr, s.here().Addr)
		}
		for _, off := range []uint64{0, 8, 12, 16} {
			at, ok, err := s.atOffset(off)
			if err != nil || !ok {
				continue
			}
			same, err := img.SiteAt(context.Background(), s.spot.Start()+off)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range []*Site{at, same} {
				want := s.spot.Start() + off
				if off == 8 {
					want = s.spot.Start()
				}
				if x.Addr != s.spot.Start()+off || x.LocalEntry != (off == 8 && !x.inside) || !x.inside && x.here().Addr != want {
					t.Errorf("%s+%#x: at %#x, resolved at %#x", s, off, x.Addr, x.here().Addr)
				}
			}
		}
	}
	lines, err := img.LineSites(context.Background(), sites, func(*Site, string, int) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range lines {
		if at := s.here().Addr; s.LocalEntry && at != s.Addr-8 || !s.LocalEntry && at != s.Addr {
			t.Errorf("%s: at %#x, resolved at %#x", s, s.Addr, at)
		}
	}
	if local < 20 || len(lines) < 100 {
		t.Errorf("%d functions with two entries, %d lines", local, len(lines))
	}
}
