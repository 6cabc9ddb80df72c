package dwarfloc

import "testing"

// TestGivenTypes: what learns from all bodies frees the types that it has read, and none that somebody has: he would find one type twice.
func TestGivenTypes(t *testing.T) {
	img := openFixture(t, "basic-gcc12-O2-dwarf5.elf")
	s := sitesOf(t, img, "pkt_blame", 1)[0]
	before, err := s.Params()
	if err != nil {
		t.Fatal(err)
	}
	for i := range img.units {
		img.units[i].ForgetLearned()
	}
	after, err := s.Params()
	if err != nil {
		t.Fatal(err)
	}
	for i := range before {
		if before[i].Type != after[i].Type {
			t.Errorf("%s has another type once bodies were learned from", before[i].Name)
		}
	}
}
