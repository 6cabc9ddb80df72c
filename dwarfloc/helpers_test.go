package dwarfloc

import (
	"context"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
)

// What package compute does: see compute_test.go.
var (
	Follow    func(v *Variable, path []syntax.Step) (*Variable, error)
	Resolve   func(s *Site, e *syntax.Expr) (*Variable, error)
	Pointee   func(v *Variable) (*Variable, error)
	MembersOf func(v *Variable) []string // that the type does have, of a path that named another
)

// testImage opens what writeImage writes; its name in errors is "test".
func testImage(t testing.TB, units []dwarftest.CU, more ...dwarftest.Section) *Image {
	t.Helper()
	img, err := FromBytes("test", dwarftest.Image(units, more...), nil)
	if err != nil {
		t.Fatalf("the image that the test wrote: %v", err)
	}
	dwarftest.Must(img.prepare(true))
	if err := img.r.Index.Scan(context.Background()); err != nil {
		t.Fatalf("scan of the image that the test wrote: %v", err)
	}
	for i := range img.units {
		if err := img.units[i].Load(); err != nil {
			t.Fatalf("unit %d of the image that the test wrote: %v", i, err)
		}
	}
	return img
}

// sitesOf returns the sites of a name; there must be n.
func sitesOf(t testing.TB, img *Image, name string, n int) []*Site {
	t.Helper()
	sites, err := img.Sites(context.Background(), Name(name))
	if err != nil {
		t.Fatalf("sites of %s: %v", name, err)
	}
	if len(sites) != n {
		t.Fatalf("sites of %s: got %d, want %d", name, len(sites), n)
	}
	return sites
}
