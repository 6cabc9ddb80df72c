package index

import (
	"slices"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// scanned is the index of a fixture, with the records of all units.
func scanned(t testing.TB, name string) *Index {
	t.Helper()
	file, err := fixtures.Bytes(name)
	dwarftest.Must(err)
	x := New(dwarftest.Open(t, name, file), Options{
		Guard: func(f func() error) error { return f() }, Changed: func() error { return nil }, ReadAside: func(bool) {},
	})
	x.addUnits() // Open has read them
	x.unitsOnce.Do(func() {})
	dwarftest.Must(x.Scan(t.Context()))
	return x
}

// FuzzDecodeRecs: any bytes decode to records that are safe to follow, or not.
func FuzzDecodeRecs(f *testing.F) {
	x := scanned(f, "basic-gcc12-O2-dwarf5.elf")
	for i := range x.Units {
		f.Add(AppendRecs(nil, x.Units[i].Recs))
	}
	f.Fuzz(func(t *testing.T, d []byte) {
		recs, ok := DecodeRecs(d)
		if !ok {
			return
		}
		for i, r := range recs {
			if int(r.Parent) >= i || r.Parent < -1 || int(r.Root) >= len(recs) || r.Root < -1 {
				t.Fatalf("record %d: %+v", i, r)
			}
		}
	})
}

// TestAppendRecs: what is written is what is read.
func TestAppendRecs(t *testing.T) {
	x := scanned(t, "basic-clang14-O2-dwarf5.elf")
	for i := range x.Units {
		want := x.Units[i].Recs
		whole := AppendRecs(make([]byte, 8), want)
		for from := range 8 { // in place, and where they cannot be
			copy(whole[from:], whole[8:])
			d := whole[from : len(whole)-8+from]
			if inPlace(d) && from != 0 {
				t.Errorf("%d bytes behind a multiple of 8 is none", from)
			}
			if got, ok := DecodeRecs(d); !ok || !slices.Equal(got, want) {
				t.Errorf("unit %d: got %+v, want %+v", i, got, want)
			}
			whole = AppendRecs(make([]byte, 8), want)
		}
	}
}
