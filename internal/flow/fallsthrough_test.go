package flow

import "testing"

// TestFallsThrough: execution does not go on behind what leaves the function, and does behind a branch.
func TestFallsThrough(t *testing.T) {
	// test; 2: je 5; 4: ret; 5: inc; ret
	f := function(t, "amd64", "85c0 7401 c3 ffc0 c3")
	var g Graph
	g.Follow(f)
	for _, tt := range []struct {
		addr uint64
		want bool
	}{{2, true}, {4, false}, {7, false}} {
		n, ok := g.At(g.Insns[0].Addr + tt.addr)
		if got := g.FallsThrough(g.Block(int32(n))); !ok || got != tt.want {
			t.Errorf("behind %d: %v, want %v", tt.addr, got, tt.want)
		}
	}
}
