package entries

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/internal/dw"
)

func TestExtents(t *testing.T) {
	x := &extents{
		all:       []extent{{dw.Range{Lo: 0x1000, Hi: 0x1010}, 2}, {dw.Range{Lo: 0x1000, Hi: 0x1010}, 0}, {dw.Range{Lo: 0xffffffff81000000, Hi: 0xffffffff81000001}, 1}},
		unbounded: []int{3},
	}
	packed := x.pack()
	var got extents
	if !got.unpack(packed, 4) {
		t.Fatal("it is damaged")
	}
	if d := cmp.Diff(x.all, got.all, cmp.AllowUnexported(extent{})) + cmp.Diff(x.unbounded, got.unbounded); d != "" {
		t.Error(d)
	}
	for n := range packed {
		if new(extents).unpack(packed[:n], 4) {
			t.Errorf("%d of its %d bytes are enough", n, len(packed))
		}
	}
	if new(extents).unpack(packed, 3) {
		t.Error("it has a unit that the image has not")
	}
	var img Image
	img.extents.all, img.extents.unbounded = x.all, x.unbounded
	img.extents.once.Do(func() {})
	for _, c := range []struct {
		at   []uint64
		want []int
	}{
		{[]uint64{0xfff}, []int{3}},
		{[]uint64{0x100f}, []int{0, 2, 3}},
		{[]uint64{0x1010, 0xffffffff81000000}, []int{1, 3}},
	} {
		if d := cmp.Diff(c.want, img.UnitsAt(c.at)); d != "" {
			t.Errorf("at %#x: %s", c.at, d)
		}
	}
}
