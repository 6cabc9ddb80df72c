package runs_test

import (
	"reflect"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/runs"
)

// FuzzPacked: what Append has not written is read as something, or as bad.
func FuzzPacked(f *testing.F) {
	f.Add((&runs.Ways{In: []runs.Way{{Addr: 16, View: 2, Probe: 12, Again: true, Before: []uint64{8, 9}}}, Out: []runs.Way{{Addr: 32, Probe: 32}}, Unknown: "why", NoReturn: 1}).Append(nil))
	f.Fuzz(func(t *testing.T, d []byte) {
		var w runs.Ways
		p := runs.Unpack(d)
		if p.Next(&w); !p.Whole() {
			return
		}
		again := runs.Unpack(w.Append(nil))
		var same runs.Ways
		if again.Next(&same); !again.Whole() || !sameWays(&w, &same) {
			t.Errorf("%x: %+v, then %+v", d, w, same)
		}
	})
}

func sameWays(a, b *runs.Ways) bool {
	same := func(a, b []runs.Way) bool { return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b) }
	return a.Unknown == b.Unknown && a.Within == b.Within && a.NoReturn == b.NoReturn && same(a.In, b.In) && same(a.Out, b.Out)
}
