package claim

import "testing"

// TestGroup: a group speaks from so many controls on, all of which must agree; and no further than they went.
func TestGroup(t *testing.T) {
	type control struct {
		times    int
		distance uint64
		constant uint64
	}
	for _, tt := range []struct {
		what      string
		params    string
		controls  []control
		undecided int
		member    bool
		constant  uint64
		distance  uint64
		ok        bool
	}{
		{what: "enough", params: ".", controls: []control{{Enough, 52, 0}}, distance: 52, ok: true},
		{what: "too few", params: ".", controls: []control{{Enough - 1, 52, 0}}},
		{what: "none", params: "."},
		{what: "enough for a member", params: ".", controls: []control{{10 * Enough, 52, 0}}, member: true, distance: 52, ok: true},
		{what: "too few for a member", params: ".", controls: []control{{10*Enough - 1, 52, 0}}, member: true},
		{what: "a contradiction", params: ".", controls: []control{{500, 52, 0}, {1, 0, 0}}},
		{what: "more cannot be compared than can", params: ".", controls: []control{{Enough, 52, 0}}, undecided: Enough + 1},
		{what: "a bit's word", params: "c.", controls: []control{{30, 0, 3}, {30, 8, 70}, {1, 16, 130}}, constant: 65, distance: 8, ok: true},
		{what: "a bit's byte", params: "c.", controls: []control{{30, 0, 3}, {30, 1, 9}, {1, 8, 70}}, constant: 20, distance: 2, ok: true},
		{what: "no form is contradicted, and all agree", params: "c.", controls: []control{{30, 0, 3}, {30, 0, 2}}, constant: 2, distance: 0, ok: true},
		{what: "beyond the controls", params: "c.", controls: []control{{30, 0, 3}, {30, 0, 2}}, constant: 9},
		{what: "before the controls", params: "c.", controls: []control{{30, 0, 3}, {30, 0, 2}}, constant: 1},
	} {
		var g Group
		g.Undecided = tt.undecided
		constants := func(n uint64) []uint64 { return []uint64{n, 0}[:len(tt.params)] }
		for _, c := range tt.controls {
			for range c.times {
				g.Add(tt.params, c.distance, 0, false, constants(c.constant))
			}
		}
		if d, ok := g.Distance(&Kind{Params: tt.params, Member: tt.member}, constants(tt.constant)); ok != tt.ok || ok && d != tt.distance {
			t.Errorf("%s: %d, %v", tt.what, d, ok)
		}
	}
}

// TestAmbiguous: where two ways to understand the controls say different things of a body, the group says nothing.
func TestAmbiguous(t *testing.T) {
	var g Group
	const params = "c."
	for range 30 {
		g.Add(params, 0, 0, false, []uint64{0, 0})
		g.Add(params, 8, 0, false, []uint64{64, 0}) // the word of the bit, and its byte
	}
	if d, ok := g.Distance(&Kind{Params: params}, []uint64{64, 0}); !ok || d != 8 {
		t.Errorf("where they agree: %d, %v", d, ok)
	}
	if d, ok := g.Distance(&Kind{Params: params}, []uint64{8, 0}); ok {
		t.Errorf("%d", d)
	}
	if equal, differ := g.Counts(); equal != 60 || differ != 0 {
		t.Errorf("%d equal, %d differ", equal, differ)
	}
}
