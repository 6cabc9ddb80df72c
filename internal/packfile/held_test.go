package packfile

import (
	"reflect"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestHeld: ways that were packed are what they were, in memory that was used before too.
func TestHeld(t *testing.T) {
	var w Writer
	all := []Ways{
		{},
		{Known: true, Unknown: "why", Within: true, NoReturn: 3},
		{Known: true, In: []Way{{Addr: 0x1000, Probe: 0xffe, View: lastView, Again: true, Symbol: "f", Offset: 4, Refused: "no",
			Before: []Before{{Addr: 0xff0, Code: []byte{1, 2}, Symbol: "g", Offset: 1}}}, {Addr: 1, Probe: 1}}, Out: []Way{{Addr: 1<<64 - 1, Probe: 5}}},
		{Known: true, Out: make([]Way, heldSize)}, // more than fits into one piece
	}
	held := make([]held, len(all))
	for i := range all {
		held[i] = w.hold(&all[i])
	}
	var got Ways
	for _, i := range []int{2, 0, 3, 1, 2} {
		w.release(held[i], &got)
		if d := cmp.Diff(all[i], got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("ways %d (-want +got):\n%s", i, d)
		}
	}
}

// TestWritten: a kernel has 357,000 sites: the collector need not look into them. Blocks have some more nodes.
func TestWritten(t *testing.T) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[written]()) {
		switch f.Type.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.String, reflect.Map, reflect.Interface, reflect.Func, reflect.Chan:
			t.Errorf("%s is a %s", f.Name, f.Type)
		}
	}
	if n := unsafe.Sizeof(node{}); n > 7*8 {
		t.Errorf("a node has %d bytes", n)
	}
}
