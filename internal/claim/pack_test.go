package claim

import (
	"reflect"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/bin"
)

// TestPack: a kind and its group are what they were before they were packed, and each cut of them is found to be one.
func TestPack(t *testing.T) {
	for _, k := range []Kind{
		{Shape: 1 << 63, Register: 300, Line: 70000, Column: 200, Params: "cl.x"},
		{Shape: 7, Call: true, Params: "."},
		{Call: true, Target: true, Params: ".."},
		{Shape: 3, Member: true, Params: "."},
	} {
		var g Group
		g.Undecided = 3
		for i := range 25 {
			g.Add(k.Params, 8, uint64(i), i > 5, []uint64{uint64(i), 9, 0, 0}[:len(k.Params)])
		}
		packed := g.Pack(k.Pack(nil))
		unpack := func(d []byte) (Kind, Group, bool) {
			b := bin.Reader{D: d}
			var k Kind
			var g Group
			k.Unpack(&b)
			g.Unpack(&b, &k)
			return k, g, !b.Bad && b.P == len(d)
		}
		if ok, og, whole := unpack(packed); ok != k || !reflect.DeepEqual(og, g) || !whole {
			t.Errorf("%+v %+v: %+v %+v, whole: %v", k, g, ok, og, whole)
		}
		for i := range packed {
			if _, _, whole := unpack(packed[:i]); whole {
				t.Errorf("%d of %d bytes are whole", i, len(packed))
			}
		}
	}
}
