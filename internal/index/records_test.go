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
		want := slices.Clone(x.Units[i].Recs)
		got, ok := DecodeRecs(AppendRecs(nil, want))
		for j := range want {
			if want[j].Root >= 0 && int(want[j].Root) != j {
				want[j].Name = NameNone
			}
		}
		if !ok || !slices.Equal(got, want) {
			t.Errorf("unit %d: got %+v, want %+v", i, got, want)
		}
	}
}
