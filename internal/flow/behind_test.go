package flow

import (
	"slices"
	"testing"
)

// TestBetween: all paths from one instruction to another count, those that meet again too, and no others.
func TestBetween(t *testing.T) {
	// test; 2: je 8; 4: nop; 6: jmp 14; 8: test; 10: jne 14; 12: nop; 14: inc; ret
	f := function(t, "amd64", "85c0 7404 6690 eb06 85db 7502 6690 ffc0 c3")
	var g Graph
	g.Follow(f)
	var addrs []uint64
	end := int32(len(g.Insns) - 1)
	for _, n := range g.Between(func(n int32) bool { return n == 0 }, end) {
		addrs = append(addrs, g.Insns[n].Addr-g.Insns[0].Addr)
	}
	slices.Sort(addrs)
	if want := []uint64{0, 2, 4, 6, 8, 10, 12, 14}; !slices.Equal(addrs, want) {
		t.Errorf("%v, want %v", addrs, want)
	}
	if got := g.Between(func(n int32) bool { return g.Insns[n].Addr-g.Insns[0].Addr == 12 }, end); len(got) != 2 {
		t.Errorf("from one side: %v", got)
	}
	if got := g.Between(func(int32) bool { return false }, end); len(got) != 0 {
		t.Errorf("from nowhere: %v", got)
	}
	// nop; 2: inc; 4: test; 6: jne 0; ret. From the test over the branch back to the increment.
	f = function(t, "amd64", "6690 ffc0 85c0 75f8 c3")
	g.Follow(f)
	if got := g.Between(func(n int32) bool { return g.Insns[n].Addr-g.Insns[0].Addr == 4 }, 1); len(got) != 3 {
		t.Errorf("in a loop: %v", got)
	}
}
