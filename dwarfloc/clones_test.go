package dwarfloc

import (
	"testing"
)

// TestCloneSymbols: sites of GCC's clones have the function's name and the clone's
// symbol.
func TestCloneSymbols(t *testing.T) {
	img := openFixture(t, "basic-gcc12-O2-dwarf5.elf")
	for name, want := range map[string]string{
		"ring_fill": "ring_fill.isra.0", "pkt_scale": "pkt_scale.constprop.0", "pkt_drain": "pkt_drain.part.0", "queue_check": "queue_check",
	} {
		sites, err := img.Sites(t.Context(), Name(name))
		if err != nil {
			t.Fatal(err)
		}
		found := ""
		for _, s := range sites {
			if s.Kind == SiteEntry {
				found = s.Symbol
			}
		}
		if found != want {
			t.Errorf("the out-of-line code of %s is at symbol %q, want %q", name, found, want)
		}
	}
	s := sitesOf(t, img, "pkt_blame", 1)[0]
	if s.Symbol != "queue_check.cold" {
		t.Errorf("pkt_blame is in %q, want queue_check.cold", s.Symbol)
	}
}
